"""A common call is made once, however many want it at the same time, and its failure is everybody's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dialoom.prompts import ChatMessage
from dialoom.roles import Completion, Gateway, ProviderError
from dialoom.roles.gateway import Request
from tests.ledgers import MemoryLedger, a_place, a_request

MODEL = "object:model"


class Asked:
    """A model that replies when it may.

    Attributes:
        texts: What it was asked.
        asked: Is set when it is.
        may_reply: Whether it may.
        error: What it raises instead of a reply.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.asked = asyncio.Event()
        self.may_reply = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """The number of the call."""
        self.texts.append(messages[-1]["content"])
        number = len(self.texts)
        self.asked.set()
        await self.may_reply.wait()
        if self.error is not None:
            raise self.error
        return f"reply {number}"


def wanted(gateway: Gateway, *scenarios: str, text: str = "Hello.") -> list[asyncio.Task[Completion]]:
    """Scenarios that want the same."""
    request = a_request(MODEL, text)
    return [asyncio.create_task(_want(gateway, request, scenario)) for scenario in scenarios]


async def _want(gateway: Gateway, request: Request, scenario: str) -> Completion:
    return await gateway.complete(request, replace(a_place(scenario=scenario), is_common=True))


async def all_wait(model: Asked, count: int = 1) -> None:
    """Until a model was asked so often, and everybody else has come to wait."""
    while len(model.texts) < count:
        model.asked.clear()
        await model.asked.wait()
    for _ in range(50):
        await asyncio.sleep(0)


async def test_it_is_made_once() -> None:
    """For those that want it together, and for those that come later; what is asked otherwise is another call."""
    model, ledger = Asked(), MemoryLedger()
    gateway = Gateway(ledger, objects={MODEL: model})
    tasks = [*wanted(gateway, "a", "b", "c"), *wanted(gateway, "d", text="Something else.")]
    await all_wait(model, 2)
    model.may_reply.set()
    replies = [(await task).text for task in tasks]
    assert sorted(model.texts) == ["Hello.", "Something else."]
    assert len(set(replies[:3])) == 1 and len(set(replies)) == 2
    (later,) = wanted(gateway, "e")
    assert (await later).text == replies[0]
    assert len(ledger.begun) == 2


async def test_its_failure_is_everybody_s_and_a_resume_tries_again() -> None:
    """One call for all that waited and all that come later, then another one when the run is gone on with."""
    model, ledger = Asked(), MemoryLedger()
    gateway = Gateway(ledger, objects={MODEL: model})
    model.error = ValueError("not today")
    tasks = wanted(gateway, "a", "b", "c")
    await all_wait(model)
    model.may_reply.set()
    failures = await asyncio.gather(*tasks, return_exceptions=True)
    failures += await asyncio.gather(*wanted(gateway, "d"), return_exceptions=True)
    assert [isinstance(each, ProviderError) for each in failures] == [True] * 4
    assert len(model.texts) == 1
    model.error = None
    resumed = Gateway(ledger, objects={MODEL: model})
    again = await asyncio.gather(*wanted(resumed, "a", "b", "c"))
    assert {each.text for each in again} == {"reply 2"}


async def test_who_asks_may_be_stopped_without_stopping_the_others() -> None:
    """Then one of them asks."""
    model = Asked()
    gateway = Gateway(MemoryLedger(), objects={MODEL: model})
    first, *others = wanted(gateway, "a", "b", "c")
    await all_wait(model)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await all_wait(model, 2)
    model.may_reply.set()
    assert {each.text for each in await asyncio.gather(*others)} == {"reply 2"}
