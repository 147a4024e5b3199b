"""One exchange with a model's server: where a request goes, how much of an answer is read, and what is said of it."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.roles import PermanentProviderError, TransientProviderError
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend
from tests.hostile.replies import saying
from tests.ledgers import MemoryLedger
from tests.processes import Started
from tests.roles.gateway.asking import ask, request
from tests.server import Response, completion, ended, error, serving, silence

pytestmark = pytest.mark.usefixtures("keyed")

MODELS = ["openai/m", "hosted_vllm/m", "openrouter/m"]
MIB = 2**20


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("status", [200, 400])
async def test_a_small_body_that_unpacks_to_a_large_one_is_not_unpacked(model: str, status: int) -> None:
    """Compression is not asked for; of a compressed answer nothing is read, and a status is told as it is."""
    bomb = gzip.compress(bytes(32 * MIB))
    answer = Response(status, raw=bomb, headers={"Content-Encoding": "gzip"})
    with serving(lambda _body, number: answer if number > 1 else completion("heron")) as server:
        await ask(request(server.url, model))  # what is imported for the first call is none of its memory
        tracemalloc.start()
        try:
            with pytest.raises(PermanentProviderError, match=r"compressed \(gzip\), which was not asked for") as caught:
                await ask(request(server.url, model))
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert server.encodings == ["identity"] * 2
    assert most < 8 * MIB
    assert (f"({status})" in str(caught.value)) is (status == 400)


async def test_a_compressed_answer_of_a_busy_server_is_tried_again() -> None:
    """Its status says that it may pass."""
    busy = Response(503, raw=gzip.compress(b"later"), headers={"Content-Encoding": "gzip"})
    with serving(lambda _body, number: busy if number == 1 else completion("heron")) as server:
        assert (await ask(request(server.url))).text == "heron"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("status", [200, 500])
async def test_an_endless_answer_is_given_up(model: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, at so many bytes, whatever its status."""
    monkeypatch.setattr("dialoom.roles.gateway.exchange.MOST_BYTES", MIB)
    endless = Response(status, raw=bytes(MIB // 4), is_endless=True)
    with serving(lambda _body, _number: endless) as server:
        with pytest.raises(PermanentProviderError, match="larger than 1,048,576 bytes"):
            await ask(request(server.url, model))
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", [200, 500])
async def test_an_endless_answer_does_not_outlast_the_time_out(status: int) -> None:
    """However slowly it comes."""
    drip = Response(status, raw=b" ", is_endless=True)
    with serving(lambda _body, number: completion("heron") if number == 1 else drip) as server:
        await ask(request(server.url))  # the first call in a process takes its time
        with pytest.raises(TransientProviderError, match="no answer in time"):
            await LiteLLMBackend(timeout=0.5).complete(request(server.url), "key")


@pytest.mark.parametrize("status", [200, 500])
def test_a_run_that_reads_an_endless_answer_can_be_interrupted(status: int, tmp_path: Path) -> None:
    """By what Ctrl-C does: first it waits for the answer, then it stops; nothing has failed."""
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
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_server_is_refused(model: str, status: int) -> None:
    """With its target, but for what may be secret in it; nothing is sent there, and there is one attempt."""
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
async def test_a_redirect_within_the_server_is_followed(model: str) -> None:
    """With the whole request."""
    moved = Response(308, headers={"Location": "/v2/chat"})
    with serving(lambda _body, number: moved if number == 1 else completion("heron")) as server:
        assert (await ask(request(server.url, model))).text == "heron"
        assert server.paths[1] == "/v2/chat"
        assert server.requests[0] == server.requests[1]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("location", ["/v1/chat/completions", "/{}", "http://x:y/"])
async def test_a_redirect_that_leads_nowhere_costs_one_attempt(model: str, location: str) -> None:
    """In a circle, on and on, or to no address."""
    ledger = MemoryLedger()

    def answer(_body: dict[str, Any], number: int) -> Response:
        return Response(307, headers={"Location": location.format(number)})

    with serving(answer) as server, pytest.raises(PermanentProviderError, match=r"redirects (again|to no address)"):
        await ask(request(server.url, model), ledger)
    assert ledger.records[0].attempts == 1


@pytest.mark.parametrize("model", [*MODELS, "ollama_chat/m", "anthropic/m"])
@pytest.mark.parametrize("text", ["null", "[1,2,3]", '"hello"', "3", "", '{"choices": [{"message": null}]}'])
async def test_an_answer_that_is_no_reply_is_told_in_one_sentence(model: str, text: str) -> None:
    """With what it was, and nothing of the code that could not read it."""
    ledger = MemoryLedger()
    with (
        serving(lambda _body, _number: Response(raw=text.encode())) as server,
        pytest.raises(TransientProviderError) as caught,
    ):
        await ask(request(server.url, model), ledger)
    assert str(caught.value) == f"{model}: the answer holds no reply: {text or 'it is empty'}"
    assert {attempt.error for _, attempt in ledger.attempts} == {str(caught.value)}


async def test_a_time_out_is_kept_with_words() -> None:
    """Python's exception has none."""
    ledger = MemoryLedger()
    with (
        serving(lambda _body, _number: silence()) as server,
        pytest.raises(TransientProviderError, match="no answer in time"),
    ):
        await ask(request(server.url, timeout=0.1), ledger)
    assert {attempt.error.split(": ")[-1] for _, attempt in ledger.attempts} == {"no answer in time"}


def test_a_cost_that_cannot_be_is_unknown_and_prints_no_warning(tmp_path: Path) -> None:
    """The reply is used."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "cost": "1e400"}
    with serving(lambda _body, _number: ended("Hello.", "stop", usage=usage)) as server:
        asked = ("doctor", "--model", "openai/m", "--api-base", server.url)
        with Started(tmp_path, *asked) as process:
            said, errors = process.communicate()
    assert "1 + 1 tokens at an unknown price" in said
    assert errors == ""


async def test_what_a_provider_says_of_an_error_is_not_taken_for_an_answer() -> None:
    """A status of success does not make it one."""
    refusal = Response(200, error(400, "no such parameter")[1])
    with serving(lambda _body, _number: refusal) as server, pytest.raises(PermanentProviderError, match="no such para"):
        await ask(request(server.url, "hosted_vllm/m"))
        assert len(server.requests) == 1
