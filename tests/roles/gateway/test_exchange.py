"""One exchange with a model's server: request, answer, context length and window."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Run
from dialoom.roles import ContextError, PermanentProviderError, ProviderError, TransientProviderError
from dialoom.roles.gateway.exchange import HANDLER_VARIABLE, MAX_REDIRECTS
from dialoom.roles.gateway.gateway import MAX_ATTEMPTS, GatewaySettings
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend, load_litellm
from tests.conftest import Command
from tests.hostile.replies import saying
from tests.ledgers import MemoryLedger
from tests.processes import CommandProcess
from tests.roles.gateway.asking import KEY, ask, request
from tests.server import Answer, Response, completion, ended, error, serving, too_long

pytestmark = pytest.mark.usefixtures("keyed")

MODELS = ["openai/m", "hosted_vllm/m", "openrouter/m"]
MIB = 2**20


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("status", [200, 400])
async def test_compressed_body_is_refused_before_it_is_unpacked(model: str, status: int) -> None:
    bomb = gzip.compress(bytes(32 * MIB))
    answer = Response(status, raw=bomb, headers={"Content-Encoding": "gzip"})
    with serving(lambda _body, number: answer if number > 1 else completion("heron")) as server:
        await ask(request(server.url, model))  # imports for the first call are not to be counted as its memory
        tracemalloc.start()
        try:
            with pytest.raises(PermanentProviderError, match=r"compressed \(gzip\), which was not requested") as caught:
                await ask(request(server.url, model))
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert server.encodings == ["identity"] * 2
    assert most < 8 * MIB
    assert (f"({status})" in str(caught.value)) is (status == 400)


async def test_compressed_answer_of_a_busy_server_is_retried() -> None:
    busy = Response(503, raw=gzip.compress(b"later"), headers={"Content-Encoding": "gzip"})
    with serving(lambda _body, number: busy if number == 1 else completion("heron")) as server:
        assert (await ask(request(server.url))).text == "heron"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("status", [200, 500])
async def test_endless_answer_is_refused(model: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoom.roles.gateway.exchange.MAX_RESPONSE_BYTES", MIB)
    endless = Response(status, raw=bytes(MIB // 4), is_endless=True)
    with serving(lambda _body, _number: endless) as server:
        with pytest.raises(PermanentProviderError, match="larger than 1,048,576 bytes"):
            await ask(request(server.url, model))
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", [200, 500])
async def test_endless_answer_ends_at_the_timeout(status: int) -> None:
    drip = Response(status, raw=b" ", is_endless=True)
    with serving(lambda _body, number: completion("heron") if number == 1 else drip) as server:
        await ask(request(server.url))  # the first call in a process is slow
        with pytest.raises(TransientProviderError, match="no answer in time"):
            await LiteLLMBackend(timeout=0.5).complete(request(server.url), "key")


@pytest.mark.parametrize("status", [200, 500])
def test_run_that_reads_an_endless_answer_can_be_interrupted(status: int, tmp_path: Path) -> None:
    control = dialoom.Control()

    def answer(_body: dict[str, Any], _number: int) -> Response:
        control.interrupt()
        control.interrupt()
        return Response(status, raw=b" ", is_endless=True)

    with serving(answer) as server:
        model = dialoom.Model("openai/m", api_base=server.url)
        (tmp_path / "people.jsonl").write_text(json.dumps({"profile": "She keeps hens.", "personality": "Calm."}))
        run = dialoom.play(
            "aloe-eval",
            path=tmp_path / "run.db",
            models={"user": saying("Hi."), "judge": saying('{"score": 3}'), "assistant": model},
            options={"personas": str(tmp_path / "people.jsonl"), "rounds": 1},
            control=control,
        )
    assert (run.status().pending, run.status().failed) == (1, 0)


@pytest.mark.parametrize("model", [*MODELS, "ollama_chat/m", "anthropic/m", "embed:openai/m"])
@pytest.mark.parametrize("status", [302, 308])
async def test_redirect_to_another_server_is_refused(model: str, status: int) -> None:
    ledger = MemoryLedger()
    with serving(lambda _body, _number: completion("heron")) as other:
        there = other.url.replace("http://", "http://me:hidden@") + "/x?token=hidden"
        with serving(lambda _body, _number: Response(status, headers={"Location": there})) as server:
            with pytest.raises(PermanentProviderError) as caught:
                await ask(request(server.url, model), ledger)
            assert len(server.requests) == 1
        assert other.requests == []
    assert f"redirects to another server, {other.url}/x, and nothing was sent there" in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert ledger.records[0].attempts == 1


@pytest.mark.parametrize("model", MODELS)
async def test_redirect_within_the_server_is_followed(model: str) -> None:
    moved = Response(308, headers={"Location": "/v2/chat"})
    with serving(lambda _body, number: moved if number <= MAX_REDIRECTS else completion("heron")) as server:
        assert (await ask(request(server.url, model))).text == "heron"
        assert server.paths[1:] == ["/v2/chat"] * MAX_REDIRECTS
        assert server.requests == server.requests[:1] * (MAX_REDIRECTS + 1)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("status", [301, 302, 303])
async def test_redirect_that_drops_the_request_is_refused(model: str, status: int) -> None:
    with serving(lambda _body, _number: Response(status, headers={"Location": "/v2/chat"})) as server:
        with pytest.raises(PermanentProviderError, match=rf"/v2/chat with status {status}, .* without its body"):
            await ask(request(server.url, model))
        assert len(server.requests) == 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("location", ["/v1/chat/completions", "/{}", "http://x:y/"])
async def test_invalid_or_endless_redirect_costs_one_attempt(model: str, location: str) -> None:
    ledger = MemoryLedger()

    def answer(_body: dict[str, Any], number: int) -> Response:
        return Response(307, headers={"Location": location.format(number)})

    with (
        serving(answer) as server,
        pytest.raises(PermanentProviderError, match=r"redirects (too often|to an invalid address)"),
    ):
        await ask(request(server.url, model), ledger)
    assert ledger.records[0].attempts == 1


@pytest.mark.parametrize("model", [*MODELS, "ollama_chat/m", "anthropic/m"])
@pytest.mark.parametrize("text", ["null", "", '{"choices": [{"message": null}]}'])
async def test_malformed_answer_is_described_in_one_sentence(model: str, text: str) -> None:
    ledger = MemoryLedger()
    with (
        serving(lambda _body, _number: Response(raw=text.encode())) as server,
        pytest.raises(TransientProviderError) as caught,
    ):
        await ask(request(server.url, model), ledger)
    assert str(caught.value) == f"{model}: the response contains no reply: {text or 'it is empty'}"
    assert {attempt.error for _, attempt in ledger.attempts} == {str(caught.value)}


def test_impossible_cost_is_unknown_without_a_warning(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "cost": "1e400"}
    with serving(lambda _body, _number: ended("Hello.", "stop", usage=usage)) as server:
        asked = ("doctor", "--model", "openai/m", "--api-base", server.url)
        with CommandProcess(tmp_path, *asked) as process:
            output, errors = process.communicate()
    assert "1 + 1 tokens at an unknown price" in output
    assert errors == ""


async def test_error_object_with_status_200_is_an_error() -> None:
    refusal = Response(200, error(400, "no such parameter")[1])
    with serving(lambda _body, _number: refusal) as server, pytest.raises(PermanentProviderError, match="no such para"):
        await ask(request(server.url, "hosted_vllm/m"))
        assert len(server.requests) == 1


VALID_USAGE = {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}


async def test_truncated_reply_is_stored_with_its_reason() -> None:
    with serving(lambda _body, _number: ended("half a", "length", VALID_USAGE)) as server:
        reply = await ask(request(server.url))
    assert (reply.text, reply.finish_reason) == ("half a", "length")


async def test_refusal_field_is_the_reply() -> None:
    with serving(lambda _body, _number: ended(None, "stop", VALID_USAGE, refusal="I cannot.")) as server:
        reply = await ask(request(server.url))
    assert (reply.text, reply.finish_reason) == ("I cannot.", "refusal")


async def test_filtered_content_is_stored_with_its_reason() -> None:
    with serving(lambda _body, _number: ended("Well,", "content_filter", VALID_USAGE)) as server:
        reply = await ask(request(server.url))
    assert (reply.text, reply.finish_reason) == ("Well,", "content_filter")


async def test_partly_wrong_usage_is_partly_known() -> None:
    usage = {**VALID_USAGE, "completion_tokens": -1}
    with serving(lambda _body, _number: ended("heron", "stop", usage)) as server:
        reply = await ask(request(server.url))
    assert (reply.input_tokens, reply.output_tokens, reply.cost) == (100, None, None)


async def test_cached_tokens_are_recorded_and_priced_separately() -> None:
    costs: list[float] = []
    for cached in (0, 80):
        usage = {**VALID_USAGE, "prompt_tokens_details": {"cached_tokens": cached}}
        with serving(lambda _body, _number, usage=usage: ended("heron", "stop", usage)) as server:  # type: ignore[misc]
            reply = await ask(request(server.url))
        assert (reply.input_tokens, reply.cached_tokens) == (100, cached)
        assert reply.cost is not None
        costs.append(reply.cost)
    assert costs[0] > costs[1] > 0


async def test_price_under_another_name_does_not_apply_to_a_router(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    status, body = ended("heron", "stop", VALID_USAGE)
    with serving(lambda _body, _number: (status, {**body, "model": "openai/gpt-5-mini"})) as server:
        reply = await ask(request(server.url, "openrouter/openai/gpt-5-mini"))
    assert (reply.output_tokens, reply.cost) == (VALID_USAGE["completion_tokens"], None)


async def test_more_cached_tokens_than_tokens_are_unknown() -> None:
    usage = {**VALID_USAGE, "prompt_tokens_details": {"cached_tokens": 800}}
    with serving(lambda _body, _number: ended("heron", "stop", usage)) as server:
        reply = await ask(request(server.url))
    assert (reply.input_tokens, reply.cached_tokens, reply.cost) == (100, None, None)


async def test_anthropic_cache_writes_cost_money_and_reads_are_recorded() -> None:
    """Of 10 fresh, 100 written and 200 read tokens, all are input and 200 are cached; writing costs money."""
    costs: list[float] = []
    for written in (0, 100):
        usage = {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": 200,
        }
        body = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "c",
            "content": [{"type": "text", "text": "heron"}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        with serving(lambda _body, _number, body=body: Response(200, body)) as server:  # type: ignore[misc]
            reply = await ask(request(server.url + "/messages", "anthropic/claude-sonnet-4-5"))
        assert (reply.text, reply.input_tokens, reply.cached_tokens) == ("heron", 210 + written, 200)
        assert reply.cost is not None
        costs.append(reply.cost)
    assert costs[1] > costs[0] > 0


TOO_LONG: dict[str, tuple[Answer, str]] = {
    "OpenAI": (too_long(), "9,000 tokens; its context window is 8,192"),
    "vLLM": (
        error(
            400,
            "This model's maximum context length is 2048 tokens. However, you requested 2531 tokens (2275 in the "
            "messages, 256 in the completion). Please reduce the length of the messages or completion.",
        ),
        "2,531 tokens; its context window is 2,048",
    ),
    "llama.cpp": (
        error(
            400,
            "the request (5210 tokens) exceeds the available context size (4096 tokens), try increasing it",
            kind="exceed_context_size_error",
        ),
        "5,210 tokens; its context window is 4,096",
    ),
    "llama-cpp-python, with status 500": (
        error(500, "Requested tokens (2600) exceed context window of 2048"),
        "2,600 tokens; its context window is 2,048",
    ),
    "Anthropic": (
        error(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        "210,000 tokens; its context window is 200,000",
    ),
    "Anthropic, whose status 413 LiteLLM reports as 400": (
        error(400, "Request exceeds the maximum size", kind="request_too_large"),
        "(about 6 tokens)",
    ),
    "without a figure": (error(413, "too much"), "(about 6 tokens)"),
}


@pytest.mark.parametrize("server", TOO_LONG)
async def test_request_that_is_too_long_fails_at_once(server: str) -> None:
    ledger = MemoryLedger()
    refusal, lengths = TOO_LONG[server]
    with serving(lambda _body, _number: refusal) as reached:
        with pytest.raises(ContextError, match="exceeds the model's context window") as caught:
            await ask(request(reached.url), ledger)
        assert len(reached.requests) == 1
    assert lengths in str(caught.value)
    assert ledger.records[0].attempts == 1


async def test_status_500_about_a_context_is_retried() -> None:
    """A status 500 that names no exceeded length is treated as transient."""
    trouble = error(500, "could not build the context for this request")
    with serving(lambda _body, number: trouble if number == 1 else completion("heron")) as reached:
        assert (await ask(request(reached.url))).text == "heron"


def test_too_long_request_fails_its_scenario_as_context(tmp_path: Path) -> None:
    failed: list[dialoom.ScenarioFailed] = []

    def hear(event: dialoom.Event) -> None:
        if isinstance(event, dialoom.ScenarioFailed):
            failed.append(event)

    with serving(lambda _body, number: too_long() if number == 1 else completion("That is done.")) as reached:
        run = dialoom.play(
            "personalens",
            path=tmp_path / "run.db",
            models={"assistant": dialoom.Model("openai/small", api_base=reached.url)},
            options={"limit": 2, "judge": False},
            concurrency=1,
            on_event=hear,
        )
        sent = len(reached.requests)
        assert dialoom.retry(run.path).status().failed == 1
        assert len(reached.requests) == sent
        assert dialoom.retry(run.path, context={"openai/small": 9000}).status().failed == 0
    assert [str(event.fault) for event in failed] == ["context"]
    assert run.ended is not None and (run.ended.done, run.ended.failed) == (1, 1)


MODEL = "offline/attentive"
TABLE: dict[str, Any] = {"limit": 4, "turns": [0, 8]}
SHORT, LONG = 400, 4000


def play_table(path: Path, window: int) -> Run:
    """Play two items at two lengths each; a small window fits only the shorter ones."""
    return dialoom.play("prefeval", path=path, options=TABLE, context={MODEL: window})


def states(run: Run) -> list[tuple[int, str, str | None]]:
    """Return each item's number of unrelated turns, its state and its fault."""
    return [(each.facets["turns"], each.state, each.at_fault) for each in run.episodes()]


async def test_request_that_cannot_fit_is_not_sent() -> None:
    ledger = MemoryLedger()
    with serving(lambda _body, _number: completion("heron")) as reached:
        asked = request(reached.url)
        with pytest.raises(
            ContextError, match=r"not sent, because .* \(16 tokens by cl100k_base; its context window is 15\)"
        ) as caught:
            await ask(asked, ledger, settings=GatewaySettings(context={asked.model: 15}))
        assert asked.role in str(caught.value)
        assert not reached.requests and not ledger.records
        assert (await ask(asked, settings=GatewaySettings(context={asked.model: 16}))).text == "heron"


def test_items_that_fit_are_played(tmp_path: Path) -> None:
    run = play_table(tmp_path / "run.db", SHORT)
    assert states(run) == [(0, "done", None), (8, "failed", "context")] * 2
    failed = [each for each in run.episodes() if each.state == "failed"]
    assert all(f"and 300 for the reply; its context window is {SHORT}" in str(each.error) for each in failed)
    tables = {table.name: table for table in run.report().tables}
    (accuracy,) = tables["accuracy"].rows
    assert accuracy[-3] is not None and accuracy[-2] is None
    lengths = tables["dialogues"]
    assert [row[lengths.columns.index("too long")] for row in lengths.rows] == [0, 2]


def test_too_long_items_are_retried_only_with_another_window(dialoom: Command, tmp_path: Path) -> None:
    play_table(tmp_path / "run.db", SHORT)
    assert "2 stay failed" in dialoom("retry", "run.db", code=1).stdout
    output = dialoom("retry", "run.db", "--context", f"{MODEL}={LONG}").stdout
    assert "2 failed scenarios are retried" in output
    status = json.loads(dialoom("status", "run.db", "--json").stdout)
    assert (status["scenarios"]["done"], status["limits"]["context"]) == (4, {MODEL: LONG})
    assert f"{MODEL}: context window of {LONG:,} tokens" in dialoom("status", "run.db").stdout


@pytest.mark.parametrize("wrong", ["8000", "offline/attentive=few", "offline/attentive=0"])
def test_malformed_window_is_refused(dialoom: Command, wrong: str) -> None:
    done = dialoom("run", "prefeval", "--context", wrong, "-o", "run.db", code=2)
    assert done.stderr.startswith("dialoom: --context ") and " must be " in done.stderr


@pytest.mark.parametrize(
    ("setting", "expected"), [(None, [False, True, False]), ("False", [True] * 3), ("True", [False] * 3)]
)
async def test_handler_is_chosen_only_for_calls_of_dialoom(
    setting: str | None, expected: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LiteLLM's own handler sends dialoom's calls; others go through OpenAI's client, which adds headers.

    If the environment variable is set, it decides for all calls.
    """
    monkeypatch.delenv(HANDLER_VARIABLE, raising=False)
    if setting is not None:
        monkeypatch.setenv(HANDLER_VARIABLE, setting)
    with serving(lambda _body, _number: completion("heron")) as server:
        await ask(request(server.url))
        await load_litellm().acompletion(
            model="openai/gpt-4o-mini", messages=[{"role": "user", "content": "Say heron."}], api_base=server.url
        )
        await ask(request(server.url))
        is_of_openai = ["x-stainless-lang" in headers for headers in server.headers]
    assert is_of_openai == expected
    assert os.environ.get(HANDLER_VARIABLE) == setting


CALLS = [{"id": "7", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "hosted_vllm/m", "offline/generic"])
@pytest.mark.parametrize(
    "answer",
    [
        completion("heron"),
        ended("heron", "length", USAGE, reasoning_content="Birds."),
        ended(None, "tool_calls", USAGE, tool_calls=CALLS),
        (200, {"choices": []}),
        error(401, "no such key"),
        error(500, "broken"),
        too_long(),
    ],
)
async def test_reply_without_hooks_equals_that_of_litellms_public_function(
    model: str, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without hooks LiteLLM's inner function is called, with a hook its public function; the replies are equal."""
    results = list[object]()
    with serving(lambda _body, _number: answer) as server:
        address = None if model.startswith("offline/") else server.url
        asked = replace(request(address, model), prompt_id="personalens/judge-coherence")
        for hooks in ([], [lambda _said: True]):
            monkeypatch.setattr(load_litellm(), "post_call_rules", hooks)
            try:
                results.append(await LiteLLMBackend().complete(asked, "key"))
            except ProviderError as failure:
                results.append((type(failure), str(failure)))
        assert server.requests[:1] == server.requests[1:]
    assert results[0] == results[1]


@pytest.mark.parametrize("text", ["", "The heron stood in"])
@pytest.mark.parametrize("model", MODELS)
async def test_error_in_a_choice_is_an_error(model: str, text: str) -> None:
    """OpenRouter reports a provider that fails during a reply like this; LiteLLM turns it into a complete reply."""
    usage = {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42}
    status, body = ended(text, "error", usage)
    body["choices"][0]["error"] = {"code": 502, "message": "The upstream is broken."}
    ledger = MemoryLedger()
    with serving(lambda _body, number: (status, body) if number == 1 else completion("heron")) as server:
        reply = await ask(request(server.url, model), ledger)
    assert reply.text == "heron"
    assert (reply.input_tokens, reply.output_tokens) == (40 + 10, 2 + 5)
    assert "the provider failed during the reply: The upstream is broken." in ledger.attempts[0][1].error


@pytest.mark.parametrize(
    ("model", "answer", "tokens"),
    [
        (
            "anthropic/claude-sonnet-4-5",
            {
                "type": "message",
                "content": None,
                "usage": {
                    "input_tokens": 5,
                    "cache_creation_input_tokens": 7,
                    "cache_read_input_tokens": 30,
                    "output_tokens": 4,
                },
            },
            (42, 4, 30),
        ),
        (
            "gemini/gemini-2.5-flash",
            {
                "candidates": [None],
                "usageMetadata": {
                    "promptTokenCount": 42,
                    "cachedContentTokenCount": 30,
                    "candidatesTokenCount": 4,
                    "thoughtsTokenCount": 6,
                },
            },
            (42, 10, 30),
        ),
        (
            "gemini/gemini-2.5-flash",
            {"candidates": [None], "usageMetadata": {"promptTokenCount": 42, "thoughtsTokenCount": 6}},
            (42, 6, None),
        ),
        ("ollama_chat/llama3.1", {"message": None, "prompt_eval_count": 42, "eval_count": 4}, (42, 4, None)),
        ("ollama_chat/llama3.1", {"message": None, "prompt_eval_count": 42}, None),
        (
            "openai/responses/gpt-5",
            {
                "object": "response",
                "output": None,
                "usage": {"input_tokens": 42, "input_tokens_details": {"cached_tokens": 30}, "output_tokens": 4},
            },
            (42, 4, 30),
        ),
    ],
)
async def test_tokens_of_unusable_answers_are_counted_in_every_form(
    model: str, answer: dict[str, Any], tokens: tuple[int, int, int | None] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    ledger = MemoryLedger()
    with serving(lambda _body, _number: (200, answer)) as server:
        url = server.url if model.startswith("openai") else server.url.removesuffix("/v1")
        with pytest.raises(TransientProviderError):
            await ask(request(url, model), ledger)
        count = len(server.requests)
    billed = ledger.records[0].billed
    assert count == ledger.records[0].attempts == MAX_ATTEMPTS
    if tokens is None:
        assert billed is None
    else:
        expected = tuple(each and count * each for each in tokens)
        assert billed is not None
        assert (billed.input_tokens, billed.output_tokens, billed.cached_tokens) == expected


@pytest.mark.parametrize(("details", "expected"), [({}, None), ({"output_tokens_details": {"thinking_tokens": 9}}, 9)])
async def test_reasoning_tokens_are_not_estimated(details: dict[str, Any], expected: int | None) -> None:
    """Claude's visible thinking is a summary, so that LiteLLM's estimate from it is not what is billed."""
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    usage: dict[str, Any] = {"input_tokens": 7, "output_tokens": 30, **details}
    thinking = {"type": "thinking", "thinking": "It is tall and grey.", "signature": "x"}
    body = {
        **message,
        "content": [thinking, {"type": "text", "text": "heron"}],
        "stop_reason": "end_turn",
        "usage": usage,
    }
    with serving(lambda _body, _number: (200, body)) as server:
        reply = await ask(request(server.url + "/messages", "anthropic/claude-sonnet-4-5"))
    assert (reply.output_tokens, reply.reasoning_tokens) == (30, expected)


@pytest.mark.parametrize(
    ("counts", "tokens"),
    [
        ({"prompt_eval_count": 42, "eval_count": 4}, (42, 4)),
        ({"eval_count": 4}, (None, 4)),
        ({"prompt_eval_count": 42}, (42, None)),
        ({}, (None, None)),
    ],
)
async def test_tokens_that_ollama_does_not_report_are_unknown(
    counts: dict[str, int], tokens: tuple[int | None, int | None]
) -> None:
    """Ollama reports no tokens of a request that it has in its cache; LiteLLM replaces them by an estimate."""
    body = {"model": "llama3.1", "message": {"role": "assistant", "content": "heron"}, "done": True, **counts}
    with serving(lambda _body, _number: (200, {**body, "done_reason": "stop"})) as server:
        reply = await ask(request(server.url.removesuffix("/v1"), "ollama_chat/llama3.1"))
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("heron", *tokens)
