"""Faults of a provider, rates, prices and prompt-cache markers."""

from __future__ import annotations

import asyncio
import importlib
import shutil
import ssl
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dialoom.prompts import ChatMessage
from dialoom.roles import Completion, Gateway, PermanentProviderError, TransientProviderError
from dialoom.roles.errors import OutageEvidence, PolicyError, UnansweredError
from dialoom.roles.gateway.cache import add_cache_markers, needs_cache_markers
from dialoom.roles.gateway.gateway import GatewaySettings
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend, load_litellm
from dialoom.roles.gateway.wire import convert_messages
from tests.ledgers import MemoryLedger, make_place
from tests.roles.gateway.asking import KEY, ask, request
from tests.server import (
    REQUESTED_MODEL,
    Answer,
    Response,
    broken_off,
    busy,
    completion,
    ended,
    error,
    http_date,
    serving,
    silence,
    too_long,
)

pytestmark = pytest.mark.usefixtures("keyed")

MODELS = ["openai/gpt-4o-mini", "openrouter/openai/gpt-4o-mini", "hosted_vllm/x"]  # LiteLLM handles each differently

TRANSIENT: dict[str, Answer | Response] = {
    "408": error(408, "too slow"),
    "409": error(409, "conflict"),
    "425": error(425, "too early"),
    "429": busy(),
    "500": error(500, "trouble"),
    "502": Response(502, raw=b"<html>bad gateway</html>", headers={"Content-Type": "text/html"}),
    "503": busy(503),
    "504": error(504, "trouble behind"),
    "529": error(529, "overloaded"),
    "cut within the body": broken_off(),
    "cut before the body": Response(*completion("x"), cut=0),
    "reset": Response(is_reset=True),
    "no JSON": Response(raw=b"<html>welcome</html>", headers={"Content-Type": "text/html"}),
    "half of a JSON": Response(raw=b'{"id": "x", "choices": [{"in'),
    "nothing": Response(raw=b""),
    "no choice": Response(body={"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": []}),
    "an error with status 200": Response(body={"error": {"message": "trouble", "code": 500}}),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", TRANSIENT)
async def test_transient_fault_is_retried_with_one_request_an_attempt(fault: str, model: str) -> None:
    ledger = MemoryLedger()
    with serving(lambda _body, number: TRANSIENT[fault] if number < 3 else completion("heron")) as server:
        reply = await ask(request(server.url, model), ledger)
        assert len(server.requests) == 3
    assert reply.text == "heron"
    assert [attempt.number for _, attempt in ledger.attempts] == [1, 2]
    assert ledger.records[0].attempts == 3


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (error(400, "bad parameter"), "so it is not sent again"),
        (error(401, "who are you?"), "_API_KEY"),
        (error(400, "No connected db.", kind="no_db_connection"), "_API_KEY"),  # LiteLLM's proxy, for a wrong key
        (
            error(400, "Invalid model name passed in model=x"),
            "given for the role judge (PROVIDER",
        ),  # and for a wrong model
        (error(403, "not you"), "may not use this model"),
        (error(404, "The model `x` does not exist", "model_not_found"), "given for the role judge (PROVIDER"),
        (error(422, "unprocessable"), "unprocessable"),
        (too_long(), "give the role judge a model with a longer context"),
        (error(400, "Range of input length should be [1, 30720]"), "give the role judge a model with a longer context"),
        (error(413, "Request Entity Too Large"), "give the role judge a model with a longer context"),
        (error(402, "pay first"), "no credit left"),
        (error(429, "You exceeded your current quota.", "insufficient_quota"), "no credit left"),
        (error(400, "Your credit balance is too low to access the Anthropic API."), "no credit left"),
        (ended("", "content_filter"), "content filter"),
        (ended(None, "content_filter"), "content filter"),
    ],
)
async def test_permanent_fault_fails_at_once_with_advice(fault: Answer, advice: str, model: str) -> None:
    ledger = MemoryLedger()
    with serving(lambda _body, _number: fault) as server:
        with pytest.raises(PermanentProviderError, match="(?s)" + model) as caught:
            await ask(request(server.url, model), ledger)
        assert len(server.requests) == 1
    assert advice in str(caught.value)
    assert ledger.records[0].error == str(caught.value)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Your request was rejected as a result of our safety system", "content_policy_violation"),
        ("Output data may contain inappropriate content.", "data_inspection_failed"),
    ],
)
async def test_policy_refusal_is_named(model: str, message: str, code: str) -> None:
    refusal = error(400, message, code)
    with serving(lambda _body, _number: refusal) as server:
        with pytest.raises(PermanentProviderError, match="policy rejects the request"):
            await ask(request(server.url, model))
        assert len(server.requests) == 1


@pytest.mark.parametrize("model", MODELS)
async def test_flagged_request_is_no_matter_of_the_key(model: str) -> None:
    """OpenRouter answers like this to a request that a moderated model refuses."""
    status, body = error(403, "Input was flagged")
    body["error"]["metadata"] = {"reasons": ["violence"], "flagged_input": "Say heron."}
    with serving(lambda _body, _number: (status, body)) as server:
        with pytest.raises(PolicyError, match="policy rejects the request") as caught:
            await ask(request(server.url, model))
        assert len(server.requests) == 1
    assert "API_KEY" not in str(caught.value)


async def test_advice_on_a_key_names_no_other_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_API_KEY", KEY)
    with serving(lambda _body, _number: error(401, "Access denied due to invalid subscription key.")) as server:
        with pytest.raises(
            PermanentProviderError, match=r"a key that the provider accepts is needed in AZURE_API_KEY$"
        ):
            await ask(request(server.url.removesuffix("/v1"), "azure/house"))
        assert len(server.requests) == 1


@pytest.mark.parametrize("model", MODELS)
async def test_silent_provider_times_out(model: str) -> None:
    with serving(lambda _body, number: completion("heron") if number == 1 else silence()) as server:
        await ask(request(server.url, model))  # the first call in a process is slow
        with pytest.raises(TransientProviderError, match="no answer in time"):
            await LiteLLMBackend(timeout=0.5).complete(request(server.url, model), "key")
        assert len(server.requests) <= 2, "on a slow machine it can time out before it is sent"


@pytest.mark.parametrize("model", [*MODELS, "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize(
    ("headers", "least", "most"), [({"retry_after": "7"}, 7, 7), ({}, None, None), ("date", 200, 301)]
)
async def test_requested_wait_is_read_from_the_answer(
    headers: dict[str, str] | str, least: float | None, most: float | None, status: int, model: str
) -> None:
    def answer(_body: dict[str, Any], _number: int) -> Response:
        refusal = busy(status, **({"retry_after": http_date(300)} if isinstance(headers, str) else headers))
        if status == 529:
            return Response(529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, refusal.headers)
        return refusal

    with serving(answer) as server:
        url = server.url + ("/messages" if model.startswith("anthropic") else "")
        with pytest.raises(TransientProviderError) as caught:
            await LiteLLMBackend().complete(request(url, model), "key")
        assert len(server.requests) == 1
    assert caught.value.is_overload
    if least is None or most is None:
        assert caught.value.retry_after is None
    else:
        assert caught.value.retry_after is not None and least <= caught.value.retry_after <= most


@pytest.mark.parametrize(("reason", "expected"), [("model_context_window_exceeded", "length"), ("end_turn", "stop")])
async def test_reply_cut_off_at_the_context_window_of_claude_is_incomplete(reason: str, expected: str) -> None:
    text = 'The log says "model_context_window_exceeded"'
    usage = {"input_tokens": 7, "output_tokens": 3}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
    body = {**message, "content": [{"type": "text", "text": text}], "stop_reason": reason}
    with serving(lambda _body, _number: (200, body)) as server:
        found = await ask(request(server.url + "/messages", "anthropic/claude-sonnet-4-5"))
    assert (found.text, found.finish_reason) == (text, expected)


async def test_fault_that_is_no_overload_is_not_reported_as_one() -> None:
    with (
        serving(lambda _body, _number: error(500, "trouble")) as server,
        pytest.raises(TransientProviderError) as caught,
    ):
        await LiteLLMBackend().complete(request(server.url), "key")
    assert not caught.value.is_overload


@pytest.mark.parametrize("status", [401, 500])
async def test_error_neither_shows_a_key_nor_links_to_one(status: int) -> None:
    message = f"{'x' * 560} Incorrect API key provided: {KEY}"
    with (
        serving(lambda _body, _number: error(status, message)) as server,
        pytest.raises((PermanentProviderError, TransientProviderError)) as caught,
    ):
        await LiteLLMBackend().complete(request(server.url), "key")
    assert "planted" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


async def test_unreachable_server_is_retried_until_attempts_are_used_up() -> None:
    with serving(lambda _body, _number: completion("x")) as server:
        url = server.url
    ledger = MemoryLedger()
    with pytest.raises(TransientProviderError):
        await ask(request(url), ledger)
    assert len(ledger.attempts) == 6


@pytest.mark.parametrize("model", [*MODELS, "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize(
    ("kind", "evidence", "message"),
    [
        ("nobody", OutageEvidence.STRONG, "connection refused"),
        ("no TLS", OutageEvidence.STRONG, "TLS handshake failed"),
        ("broken off", OutageEvidence.WEAK, "connection"),
        ("502", OutageEvidence.WEAK, "502"),
        ("504", OutageEvidence.WEAK, "504"),
    ],
)
async def test_request_without_an_answer_is_described_in_plain_words(
    model: str, kind: str, evidence: OutageEvidence, message: str
) -> None:
    answer = broken_off() if kind == "broken off" else Response(*error(504 if kind == "504" else 502, "Bad gateway"))
    with serving(lambda _body, _number: answer) as server:
        url = server.url.replace("http:", "https:") if kind == "no TLS" else server.url
        if kind != "nobody":
            with pytest.raises(UnansweredError) as caught:
                await LiteLLMBackend().complete(request(url, model), "key")
    if kind == "nobody":
        with pytest.raises(UnansweredError) as caught:
            await LiteLLMBackend().complete(request(url, model), "key")
    text = str(caught.value)
    assert caught.value.evidence is evidence
    assert message in text
    assert "object at 0x" not in text
    if kind not in ("502", "504"):
        assert url in text
        assert "(500)" in caught.value.raw_message
        assert "Error" not in text


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Return the file of a self-signed certificate and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    made = ["-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "own.pem", "-out", "own.crt"]
    subprocess.run(["openssl", "req", "-x509", *made], cwd=tmp_path, check=True, capture_output=True)
    with (tmp_path / "own.pem").open("a") as both:
        both.write((tmp_path / "own.crt").read_text())
    return tmp_path / "own.pem"


@pytest.mark.parametrize("model", MODELS)
async def test_certificate_that_is_not_accepted_is_named(certificate: Path, model: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", ssl=context) as server:
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}/v1"
        with pytest.raises(UnansweredError, match=r"its certificate is not accepted \(self.signed certificate"):
            await LiteLLMBackend().complete(request(url, model), "key")


TIMEOUT = 240
"""The timeout of a test in seconds; if reservations were not corrected, each would take several minutes."""


def test_reply_corrects_the_estimated_tokens() -> None:
    """200 calls reserve some 260 tokens each and use two, at 6,000 tokens a minute."""

    async def play(url: str) -> None:
        gateway = Gateway(MemoryLedger(), GatewaySettings(tpm={"": 6_000}))
        async with asyncio.timeout(TIMEOUT):
            for step in range(200):
                await gateway.complete(request(url), make_place(step=step))

    with serving(lambda _body, _number: completion("heron", 1, 1)) as server:
        asyncio.run(play(server.url))
        assert len(server.requests) == 200


def test_retried_attempt_is_corrected_too() -> None:
    async def play(url: str) -> None:
        gateway = Gateway(MemoryLedger(), GatewaySettings(rpm={"": 60_000}, tpm={"": 60_000}, max_backoff=0.01))
        async with asyncio.timeout(TIMEOUT):
            for step in range(30):
                await gateway.complete(request(url), make_place(step=step))

    with serving(lambda _body, number: busy() if number % 2 else completion("heron", 1, 1)) as server:
        asyncio.run(play(server.url))
        assert len(server.requests) == 60


def test_replies_from_the_ledger_use_no_rate() -> None:
    ledger = MemoryLedger()

    async def play(url: str, settings: GatewaySettings) -> None:
        gateway = Gateway(ledger, settings)
        async with asyncio.timeout(TIMEOUT):
            await asyncio.gather(*(gateway.complete(request(url), make_place(step=step)) for step in range(30)))

    with serving(lambda _body, _number: completion("heron")) as server:
        asyncio.run(play(server.url, GatewaySettings()))
        asyncio.run(play(server.url, GatewaySettings(rpm={"": 1}, tpm={"": 10})))
        assert len(server.requests) == 30
    assert ledger.replays == 30


USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of models that LiteLLM computes a cost for, one entry per computation."""
    litellm, asked = load_litellm(), list[str]()
    original = litellm.response_cost_calculator

    def recorded(*args: Any, **kwargs: Any) -> Any:
        asked.append(kwargs["model"])
        return original(*args, **kwargs)

    monkeypatch.setattr(litellm, "response_cost_calculator", recorded)
    return asked


async def test_model_without_a_price_is_looked_up_once(priced: list[str]) -> None:
    backend = LiteLLMBackend()
    with serving(lambda _body, _number: ended("heron", "stop", USAGE)) as server:
        replies = [await backend.complete(request(server.url, "openai/of-ones-own"), "") for _ in range(3)]
    assert [reply.cost for reply in replies] == [None] * 3
    assert [reply.input_tokens for reply in replies] == [1000] * 3
    assert len(priced) == 1


async def test_hooks_of_litellms_code_for_gemini_do_not_count(priced: list[str]) -> None:
    """That code creates a cache on import, which registers hooks that do nothing."""
    importlib.import_module("litellm.llms.vertex_ai.context_caching.vertex_ai_context_caching")
    assert "cache" in load_litellm().success_callback
    await test_model_without_a_price_is_looked_up_once(priced)


async def test_free_model_is_looked_up_once(priced: list[str]) -> None:
    backend = LiteLLMBackend()
    asked = replace(request(None, "offline/generic"), prompt_id="personalens/judge-coherence")
    replies = [await backend.complete(asked, "") for _ in range(3)]
    assert [reply.cost for reply in replies] == [0.0] * 3
    assert len(priced) == 1


async def test_model_with_a_price_is_priced_each_time(priced: list[str]) -> None:
    nothing = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    usages = [nothing, USAGE, {**USAGE, "prompt_tokens": 2000, "total_tokens": 2100}]
    backend = LiteLLMBackend()
    with serving(lambda _body, number: ended("heron", "stop", usages[number - 1])) as server:
        costs = [(await backend.complete(request(server.url), "")).cost for _ in usages]
    assert costs == [None, pytest.approx(0.00021), pytest.approx(0.00036)]
    assert len(priced) == 3


@pytest.mark.parametrize(
    ("model", "named", "cost"),
    [
        ("openai/gpt-4o-mini", "gpt-4o", 0.00021),
        ("openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18", 0.00021),
        ("openai/gpt-4o", "gpt-4o-2024-05-13", 0.0065),  # an edition with a price of its own
        ("openai/local", "gpt-4o", None),
    ],
)
async def test_price_is_that_of_the_configured_model(model: str, named: str, cost: float | None) -> None:
    status, body = ended("heron", "stop", USAGE)
    with serving(lambda _body, _number: (status, {**body, "model": named})) as server:
        reply = await LiteLLMBackend().complete(request(server.url, model), "")
    assert reply.cost == pytest.approx(cost)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [(USAGE, (1000, 100)), ({**USAGE, "prompt_tokens": "many"}, (None, 100)), ([USAGE], (None, None))],
)
async def test_tokens_of_a_reply_in_another_form_are_counted(usage: Any, tokens: tuple[int | None, int | None]) -> None:
    """LiteLLM reads neither a reply in parts nor usage figures in words."""
    answer = ended("heron", "stop", usage)
    answer[1]["choices"][0]["message"]["content"] = [{"type": "text", "text": "heron"}]
    with serving(lambda _body, _number: answer) as server:
        reply = await LiteLLMBackend().complete(request(server.url), "")
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("heron", *tokens)


@pytest.mark.parametrize(("thought", "is_known"), [(0, True), (100, True), (101, False), (-1, False)])
async def test_cost_of_inconsistent_reasoning_tokens_is_unknown(thought: int, is_known: bool) -> None:
    usage = {**USAGE, "completion_tokens_details": {"reasoning_tokens": thought}}
    with serving(lambda _body, _number: ended("heron", "stop", usage)) as server:
        reply = await LiteLLMBackend().complete(request(server.url), "")
    assert reply.cost == (pytest.approx(0.00021) if is_known else None)


async def test_price_registered_later_counts_in_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    litellm, model = load_litellm(), "openai/priced-between-runs"
    monkeypatch.setattr(litellm, "model_cost", dict(litellm.model_cost))
    with serving(lambda _body, _number: completion("heron")) as server:
        assert (await LiteLLMBackend().complete(request(server.url, model), "")).cost is None
        prices = {"input_cost_per_token": 1e-3, "output_cost_per_token": 1e-3, "litellm_provider": "openai"}
        litellm.register_model({model: {**prices, "mode": "chat"}})
        after = (await LiteLLMBackend().complete(request(server.url, model), "")).cost
    assert after is not None
    assert after > 0


def embedded(*vectors: Any, tokens: int | None = 10, indices: Sequence[int] = (0, 1)) -> Answer:
    """Return an answer with embeddings."""
    data = [{"object": "embedding", "index": at, "embedding": each} for at, each in zip(indices, vectors, strict=False)]
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    return 200, {"object": "list", "model": REQUESTED_MODEL, "data": data, **usage}


EMBEDDED = "embed:openai/text-embedding-3-small"
VECTORS = ([0.5, 0.5], [1.0, 0.0])


@pytest.mark.parametrize("model", [EMBEDDED, "embed:mistral/mistral-embed"])
@pytest.mark.parametrize("fault", [busy(), error(500, "trouble"), broken_off(), Response(is_reset=True)])
async def test_attempt_at_embeddings_is_one_request(
    fault: Answer | Response, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    ledger = MemoryLedger()
    with serving(lambda _body, number: fault if number < 3 else embedded(*VECTORS)) as server:
        reply = await ask(request(server.url, model), ledger)
        assert len(server.requests) == 3
    assert ledger.records[0].attempts == 3
    assert (reply.input_tokens, reply.output_tokens) == (10, 0)
    assert reply.cost == pytest.approx(2e-7 if model == EMBEDDED else 1e-6)


@pytest.mark.parametrize(
    "answer",
    [
        embedded([0.5, 0.5], [1.0]),
        embedded([0.5, 0.5], None),
        embedded([0.5, 0.5], [0.0, 0.0]),
        embedded([0.5, 0.5], ["a", "b"]),
        embedded([0.5, 0.5], []),
        embedded([0.5, 0.5]),
        embedded(*VECTORS, indices=(0, 0)),
        embedded(*VECTORS, [1.0, 1.0], indices=(0, 1, 2)),
        (200, {**embedded()[1], "data": None}),
    ],
)
async def test_unusable_embeddings_are_not_recorded_as_a_reply(answer: Answer) -> None:
    """Otherwise a retry would use them again. Their tokens count as billed."""
    ledger = MemoryLedger()
    with serving(lambda _body, _number: answer) as server, pytest.raises(PermanentProviderError, match="embeddings"):
        await ask(request(server.url, EMBEDDED), ledger)
    assert ledger.records[0].completion is None
    assert ledger.records[0].billed == Completion("", 10, 0)


async def test_embeddings_without_usage_have_unknown_tokens_and_cost() -> None:
    with serving(lambda _body, _number: embedded(*VECTORS, tokens=None)) as server:
        reply = await ask(request(server.url, EMBEDDED))
    assert (reply.input_tokens, reply.cost) == (None, None)


async def test_embeddings_of_another_model_have_unknown_cost() -> None:
    status, body = embedded(*VECTORS)
    with serving(lambda _body, _number: (status, {**body, "model": "text-embedding-3-small"})) as server:
        reply = await ask(request(server.url, "embed:openai/local"))
    assert (reply.input_tokens, reply.cost) == (10, None)


DIALOGUE: tuple[ChatMessage, ...] = (
    {"role": "system", "content": "You are Ann."},
    {"role": "user", "content": "Begin."},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "Hi."},
    {"role": "user", "content": "Write your next message."},
)


def marks(messages: list[dict[str, Any]]) -> list[str]:
    """Return the texts of the marked parts."""
    return [part["text"].strip() for message in messages for part in message["content"] if "cache_control" in part]


def test_instructions_and_all_but_the_last_message_are_marked() -> None:
    messages = add_cache_markers(DIALOGUE)
    assert marks(messages) == ["You are Ann.", "Hi."]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]


def test_marking_changes_no_text() -> None:
    joined = [
        {"role": each["role"], "content": "".join(part["text"] for part in each["content"])}
        for each in add_cache_markers(DIALOGUE)
    ]
    assert joined == convert_messages(DIALOGUE)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (DIALOGUE[:1], ["You are Ann."]),
        (DIALOGUE[1:2], []),
        (DIALOGUE[:2], ["You are Ann."]),
        (DIALOGUE[:3], ["You are Ann.", "Begin."]),
        (({"role": "system", "content": " "}, *DIALOGUE[1:2]), []),
    ],
)
def test_short_requests_have_fewer_marks(messages: tuple[ChatMessage, ...], expected: list[str]) -> None:
    assert marks(add_cache_markers(messages)) == expected


@pytest.mark.parametrize(
    ("model", "is_wanted"),
    [
        ("anthropic/claude-sonnet-4-5", True),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("vertex_ai/claude-sonnet-4-5", True),
        ("openrouter/anthropic/claude-sonnet-4", True),
        ("openai/gpt-4o-mini", False),
        ("openrouter/openai/gpt-4o-mini", False),
        ("gemini/gemini-2.5-flash", False),
        ("hosted_vllm/claude-like", False),
    ],
)
def test_only_anthropic_models_get_marks(model: str, is_wanted: bool) -> None:
    assert needs_cache_markers(load_litellm(), model) is is_wanted


async def test_marks_are_sent_to_anthropic() -> None:
    content = [{"type": "text", "text": "Hm."}]
    usage = {"input_tokens": 10, "output_tokens": 5}
    body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn"}
    answer = Response(body={**body, "content": content, "usage": usage})
    with serving(lambda _body, _number: answer) as server:
        await ask(request(server.url + "/messages", "anthropic/claude-sonnet-4-5", messages=DIALOGUE))
    (sent,) = server.requests
    ephemeral = {"type": "ephemeral"}
    assert sent["system"] == [{"type": "text", "text": "You are Ann.", "cache_control": ephemeral}]
    last = sent["messages"][-1]["content"]
    assert [part.get("cache_control") for part in last] == [ephemeral, None]


async def test_plain_text_is_sent_to_other_providers() -> None:
    with serving(lambda _body, _number: completion("Hm.")) as server:
        await ask(request(server.url, messages=DIALOGUE))
    assert all(isinstance(message["content"], str) for message in server.requests[0]["messages"])
