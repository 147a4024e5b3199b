"""The books: whatever a provider does, each call ends with a reply or a reason, and its bill is the ledger's."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.roles import Completion, Gateway, PermanentProviderError, ProviderError, TransientProviderError
from dialoom.roles.gateway.gateway import MAX_ATTEMPTS, Limits
from tests.ledgers import MemoryLedger, a_place
from tests.roles.gateway.asking import KEY, request
from tests.server import Answer, Response, broken_off, busy, completion, error, serving

FAULTS: dict[str, Answer | Response] = {
    "busy": busy(),
    "trouble": error(500, "trouble"),
    "cut": broken_off(),
    "no JSON": Response(raw=b"<html>welcome</html>", headers={"Content-Type": "text/html"}),
    "refused": error(400, "no such thing"),
}


@settings(max_examples=15)
@given(st.lists(st.lists(st.sampled_from(sorted(FAULTS)), max_size=7), min_size=1, max_size=4))
def test_the_ledger_is_what_the_server_billed(faults: list[list[str]]) -> None:
    """Several calls at once, each with a sequence of faults of its own before the provider would answer it."""
    met = [0] * len(faults)
    billed = 0

    def answer(body: dict[str, object], _number: int) -> Answer | Response:
        nonlocal billed
        call = int(str(body["messages"][-1]["content"]))  # type: ignore[index]
        met[call] += 1
        if met[call] <= len(faults[call]):
            return FAULTS[faults[call][met[call] - 1]]
        billed += 10 + call + 5
        return completion("heron", prompt_tokens=10 + call)

    ledger = MemoryLedger()

    async def play(url: str) -> list[Completion | BaseException]:
        gateway = Gateway(ledger, Limits(concurrency=2, longest_wait=0.001))
        asked = [(request(url, content=str(call)), a_place(step=call)) for call in range(len(faults))]
        return await asyncio.gather(*(gateway.complete(*each) for each in asked), return_exceptions=True)

    with serving(answer) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", KEY)
        ends = asyncio.run(play(server.url))
    for call, (end, sequence) in enumerate(zip(ends, faults, strict=True)):
        seen = sequence[:MAX_ATTEMPTS]
        refused = seen.index("refused") + 1 if "refused" in seen else None
        if refused is not None:
            assert isinstance(end, PermanentProviderError)
        elif len(seen) == MAX_ATTEMPTS:
            assert isinstance(end, TransientProviderError)
        else:
            assert isinstance(end, Completion) and end.text == "heron"
        assert met[call] == (refused or min(len(sequence) + 1, MAX_ATTEMPTS))
    records = [ledger.records[number] for number in range(len(ledger.begun))]
    assert len(records) == len(faults), "each call is begun and ended once"
    assert all((record.completion is None) != (record.error is None) for record in records)
    replies = [record.completion for record in records if record.completion is not None]
    assert sum((reply.input_tokens or 0) + (reply.output_tokens or 0) for reply in replies) == billed
    assert len(ledger.attempts) == sum(met) - len(replies)
    assert sum(record.attempts for record in records) == len(server.requests) == sum(met)
    assert not any(isinstance(end, BaseException) and not isinstance(end, ProviderError) for end in ends)
