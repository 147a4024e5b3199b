"""Requests are made ready in the order in which they came, a few at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.roles.gateway.litellm_tuning import PATIENCE, AdmissionGate
from tests.virtual_time import now, passing


def test_the_next_passes_when_one_is_on_its_way() -> None:
    """In the order of their coming; who has left the gate may take as long as it likes."""
    passed = list[int]()

    async def play() -> float:
        gate, end, second_passed = AdmissionGate(width=1), asyncio.Event(), asyncio.Event()
        on_its_way = [asyncio.Event() for _ in range(3)]

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
            await asyncio.sleep(PATIENCE / 2)
            assert passed == [0]
            on_its_way[0].set()
            await second_passed.wait()
            assert passed == [0, 1]
            second_passed_at = now()
            end.set()
            for event in on_its_way:
                event.set()
        return second_passed_at

    assert passing(play()) == PATIENCE / 2, "at once"
    assert passed == [0, 1, 2]


def test_nobody_waits_for_a_provider_that_does_not_say_when_it_sends() -> None:
    """After a moment the next may pass all the same."""

    async def play() -> list[float]:
        gate, inside, all_are = AdmissionGate(width=1), list[float](), asyncio.Event()

        async def send() -> None:
            async with gate.passing():
                inside.append(now())
                if len(inside) == 4:
                    all_are.set()
                await all_are.wait()

        await asyncio.gather(*(send() for _ in range(4)))
        return inside

    assert passing(play()) == [number * PATIENCE for number in range(4)]


def test_one_that_fails_gives_its_place_away_once() -> None:
    """Whether it said that it was on its way or not."""

    async def play() -> None:
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
            await asyncio.sleep(PATIENCE / 2)
            assert not second.done()
        await second

    passing(play())


async def _enter(gate: AdmissionGate) -> None:
    async with gate.passing():
        pass


def test_litellm_still_knows_what_the_gateway_turns() -> None:
    """Two switches of LiteLLM's that no document promises: a release without them should be noticed."""
    litellm = load_litellm()
    from litellm._internal_context import is_internal_call

    assert is_internal_call.get() is False
    assert "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER" in Path(litellm.main.__file__).read_text(encoding="utf-8")
