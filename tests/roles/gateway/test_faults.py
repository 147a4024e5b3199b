"""A provider's bad days: what is tried again, what fails at once and with which advice; one attempt, one request."""

from __future__ import annotations

from typing import Any

import pytest

from dialoom.roles import PermanentProviderError, TransientProviderError
from dialoom.roles.errors import Absence, UnansweredError
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend
from tests.ledgers import MemoryLedger
from tests.roles.gateway.asking import KEY, ask, request
from tests.server import (
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

MODELS = ["openai/gpt-4o-mini", "openrouter/openai/gpt-4o-mini", "hosted_vllm/x"]  # LiteLLM has a way for each

PASSING: dict[str, Answer | Response] = {
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
    "no JSON": Response(raw=b"<html>welcome</html>", headers={"Content-Type": "text/html"}),
    "half of a JSON": Response(raw=b'{"id": "x", "choices": [{"in'),
    "nothing": Response(raw=b""),
    "no choice": Response(body={"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": []}),
    "an error with status 200": Response(body={"error": {"message": "trouble", "code": 500}}),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", PASSING)
async def test_a_passing_fault_is_tried_again_and_each_attempt_is_one_request(fault: str, model: str) -> None:
    """Twice the fault, then an answer: three requests at the server, two failed attempts in the ledger."""
    ledger = MemoryLedger()
    with serving(lambda _body, number: PASSING[fault] if number < 3 else completion("heron")) as server:
        reply = await ask(request(server.url, model), ledger)
        assert len(server.requests) == 3
    assert reply.text == "heron"
    assert [attempt.number for _, attempt in ledger.attempts] == [1, 2]
    assert ledger.records[0].attempts == 3


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (error(400, "bad parameter"), "the same one is not sent again"),
        (error(401, "who are you?"), "_API_KEY"),
        (error(400, "No connected db.", kind="no_db_connection"), "_API_KEY"),  # LiteLLM's proxy, of a wrong key
        (
            error(400, "Invalid model name passed in model=x"),
            "given for the role judge (PROVIDER",
        ),  # and of a wrong model
        (error(403, "not you"), "may not use this model"),
        (
            error(404, "The model `x` does not exist", "model_not_found"),
            "given for the role judge (PROVIDER",
        ),
        (error(422, "unprocessable"), "unprocessable"),
        (too_long(), "give the role judge a model with a longer context"),
        (error(402, "pay first"), "no credit left"),
        (error(429, "You exceeded your current quota.", "insufficient_quota"), "no credit left"),
        (ended("", "content_filter"), "content filter"),
        (ended(None, "content_filter"), "content filter"),
    ],
)
async def test_a_fault_that_will_stay_fails_at_once_with_advice(fault: Answer, advice: str, model: str) -> None:
    """One request, one attempt in the ledger, and the call's error says what to do."""
    ledger = MemoryLedger()
    with serving(lambda _body, _number: fault) as server:
        with pytest.raises(PermanentProviderError, match="(?s)" + model) as caught:
            await ask(request(server.url, model), ledger)
        assert len(server.requests) == 1
    assert advice in str(caught.value)
    assert ledger.records[0].error == str(caught.value)


@pytest.mark.parametrize("model", MODELS)
async def test_a_policys_refusal_says_so(model: str) -> None:
    """It is not the request's form that is wrong."""
    refusal = error(400, "Your request was rejected as a result of our safety system", "content_policy_violation")
    with serving(lambda _body, _number: refusal) as server:
        with pytest.raises(PermanentProviderError, match="content policy stands against"):
            await ask(request(server.url, model))
        assert len(server.requests) == 1


@pytest.mark.parametrize("model", MODELS)
async def test_a_provider_that_is_silent_is_given_up_after_the_time_out(model: str) -> None:
    """A hung connection is a passing fault."""
    with serving(lambda _body, number: completion("heron") if number == 1 else silence()) as server:
        await ask(request(server.url, model))  # the first call in a process takes its time
        with pytest.raises(TransientProviderError, match="no answer in time"):
            await LiteLLMBackend(timeout=0.5).complete(request(server.url, model), "key")
        assert len(server.requests) <= 2, "on a slow machine, its time is over before it is sent"


async def test_a_slow_answer_is_an_answer() -> None:
    """Slower than most, and within the time-out."""
    with serving(lambda _body, _number: Response(*completion("heron"), delay=0.3)) as server:
        assert (await ask(request(server.url))).text == "heron"


@pytest.mark.parametrize("model", [*MODELS, "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize(
    ("headers", "least", "most"), [({"retry_after": "7"}, 7, 7), ({}, None, None), ("date", 200, 301)]
)
async def test_what_the_provider_asks_to_wait_is_read_from_its_answer(
    headers: dict[str, str] | str, least: float | None, most: float | None, status: int, model: str
) -> None:
    """In seconds or as a date; none is none. An overload is told as one."""

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


async def test_a_fault_that_is_no_overload_is_not_told_as_one() -> None:
    """A server's own trouble says nothing of how much it bears."""
    with (
        serving(lambda _body, _number: error(500, "trouble")) as server,
        pytest.raises(TransientProviderError) as caught,
    ):
        await LiteLLMBackend().complete(request(server.url), "key")
    assert not caught.value.is_overload


@pytest.mark.parametrize("status", [401, 500])
async def test_an_error_neither_shows_a_key_nor_leads_to_one(status: int) -> None:
    """Not even where the message is cut short, and no cause is shown beside it."""
    said = f"{'x' * 560} Incorrect API key provided: {KEY}"
    with (
        serving(lambda _body, _number: error(status, said)) as server,
        pytest.raises((PermanentProviderError, TransientProviderError)) as caught,
    ):
        await LiteLLMBackend().complete(request(server.url), "key")
    assert "planted" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


async def test_a_server_that_is_not_there_is_tried_again_in_vain() -> None:
    """It fails as a lost connection, after all attempts."""
    with serving(lambda _body, _number: completion("x")) as server:
        url = server.url
    ledger = MemoryLedger()
    with pytest.raises(TransientProviderError):
        await ask(request(url), ledger)
    assert len(ledger.attempts) == 6


@pytest.mark.parametrize("model", [*MODELS, "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize(
    ("kind", "absence", "said"),
    [
        ("nobody", Absence.CERTAIN, "connection refused"),
        ("no TLS", Absence.CERTAIN, "TLS handshake failed"),
        ("broken off", Absence.POSSIBLE, "connection"),
        ("502", Absence.POSSIBLE, "502"),
    ],
)
async def test_a_request_without_an_answer_is_told_in_plain_words(
    model: str, kind: str, absence: Absence, said: str
) -> None:
    """What happened and where, and nothing of the libraries that it went through; these words are kept apart."""
    answer = broken_off() if kind == "broken off" else Response(*error(502, "Bad gateway"))
    with serving(lambda _body, _number: answer) as server:
        url = server.url.replace("http:", "https:") if kind == "no TLS" else server.url
        if kind != "nobody":
            with pytest.raises(UnansweredError) as caught:
                await LiteLLMBackend().complete(request(url, model), "key")
    if kind == "nobody":
        with pytest.raises(UnansweredError) as caught:
            await LiteLLMBackend().complete(request(url, model), "key")
    told = str(caught.value)
    assert caught.value.absence is absence
    assert said in told
    assert "object at 0x" not in told
    if kind != "502":
        assert url in told
        assert "(500)" in caught.value.raw
        assert "Error" not in told
