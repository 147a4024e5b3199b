"""Requests are made ready in the order in which they came, a few at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dialoom.roles.gateway.admission import AdmissionGate
from dialoom.roles.gateway.litellm_backend import load_litellm


async def test_the_next_passes_when_one_is_on_its_way() -> None:
    """In the order of their coming; who has left the gate may take as long as it likes."""
    gate, passed = AdmissionGate(width=1), list[int]()
    on_its_way, end, second_passed = [asyncio.Event() for _ in range(3)], asyncio.Event(), asyncio.Event()

    async def send(number: int) -> None:
        async with gate.passing() as sent:
            passed.append(number)
            if number == 1:
                second_passed.set()
            await on_its_way[number].wait()
            sent()
            await end.wait()

    async with asyncio.TaskGroup() as tasks:
        for number in range(3):
            tasks.create_task(send(number))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert passed == [0]
        on_its_way[0].set()
        async with asyncio.timeout(5):
            await second_passed.wait()
        assert passed == [0, 1]
        end.set()
        for event in on_its_way:
            event.set()
    assert passed == [0, 1, 2]


async def test_nobody_waits_for_a_provider_that_does_not_say_when_it_sends() -> None:
    """After a moment the next may pass all the same."""
    gate, inside, all_are = AdmissionGate(width=1), list[int](), asyncio.Event()

    async def send(number: int) -> None:
        async with gate.passing():
            inside.append(number)
            if len(inside) == 4:
                all_are.set()
            await all_are.wait()

    async with asyncio.timeout(10):
        await asyncio.gather(*(send(number) for number in range(4)))


async def test_one_that_fails_gives_its_place_away_once() -> None:
    """Whether it said that it was on its way or not."""
    gate = AdmissionGate(width=1)
    for says_so in (True, False, True):
        try:
            async with gate.passing() as sent:
                if says_so:
                    sent()
                raise ConnectionError
        except ConnectionError:
            pass
    async with gate.passing():
        second = asyncio.create_task(_enter(gate))
        await asyncio.sleep(0.01)
        assert not second.done()
    await second


async def _enter(gate: AdmissionGate) -> None:
    async with gate.passing():
        pass


def test_litellm_still_knows_what_the_gateway_turns() -> None:
    """Two switches of LiteLLM's that no document promises: a release without them should be noticed."""
    litellm = load_litellm()
    from litellm._internal_context import is_internal_call

    assert is_internal_call.get() is False
    assert "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER" in Path(litellm.main.__file__).read_text(encoding="utf-8")
