"""Requests and tokens per minute through the gateway: what counts is what calls have taken, not what was thought."""

from __future__ import annotations

import asyncio

import pytest

from dialoom.roles import Gateway
from dialoom.roles.gateway.gateway import Limits
from tests.ledgers import MemoryLedger, a_place
from tests.roles.gateway.asking import request
from tests.server import busy, completion, serving

pytestmark = pytest.mark.usefixtures("keyed")

LONG = 240
"""Seconds after which a test gives up; by what was thought, each of these would take several minutes."""


def test_a_reply_puts_right_what_its_call_was_said_to_take() -> None:
    """Some 260 tokens are set aside for each of 200 calls, and they take two, of 6,000 a minute."""

    async def play(url: str) -> None:
        gateway = Gateway(MemoryLedger(), Limits(tpm={"": 6_000}))
        async with asyncio.timeout(LONG):
            for step in range(200):
                await gateway.complete(request(url), a_place(step=step))

    with serving(lambda _body, _number: completion("heron", 1, 1)) as server:
        asyncio.run(play(server.url))
        assert len(server.requests) == 200


def test_an_attempt_after_the_first_is_put_right_too() -> None:
    """Each call is turned away once: that counts as a request, and its reply tells the tokens."""

    async def play(url: str) -> None:
        gateway = Gateway(MemoryLedger(), Limits(rpm={"": 60_000}, tpm={"": 60_000}, longest_wait=0.01))
        async with asyncio.timeout(LONG):
            for step in range(30):
                await gateway.complete(request(url), a_place(step=step))

    with serving(lambda _body, number: busy() if number % 2 else completion("heron", 1, 1)) as server:
        asyncio.run(play(server.url))
        assert len(server.requests) == 60


def test_replies_that_the_ledger_holds_take_nothing_of_the_rates() -> None:
    """A sitting at one request and ten tokens a minute gets thirty replies of the sitting before."""
    ledger = MemoryLedger()

    async def play(url: str, limits: Limits) -> None:
        gateway = Gateway(ledger, limits)
        async with asyncio.timeout(LONG):
            await asyncio.gather(*(gateway.complete(request(url), a_place(step=step)) for step in range(30)))

    with serving(lambda _body, _number: completion("heron")) as server:
        asyncio.run(play(server.url, Limits()))
        asyncio.run(play(server.url, Limits(rpm={"": 1}, tpm={"": 10})))
        assert len(server.requests) == 30
    assert ledger.replays == 30
