"""How many calls one model may have in flight: it follows what the provider bears, and its stated rates.

Additive increase, multiplicative decrease: calls that succeed while the limit is used up raise it by one in a round (as
many calls as it allows); an overload cuts it, at most once for all calls that were sent before that cut. A provider's
Retry-After stops sending altogether until it has passed; then calls go out at the lowered limit.

How far it is cut, and how fast it climbs, follow from what is known. A cut after a round of successes found the edge of
what the provider bears, so it is a small one, and the limit creeps up to that edge again; a cut without one says only
"far too much", and halves. After an outage the limit doubles each round until it is half of what it was before.

What a call will take of the tokens per minute is a guess when it is sent. Its reply puts that right, to the token, and
teaches how far such guesses are off.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from dialoom.roles.errors import DrainedError

from .pauses import Pauses

_FAR, _NEAR = 0.5, 0.85
"""What an overload leaves of the limit: when nothing is known of where the edge is, and when it has just been found."""

_CREEP = 0.25
"""Growth in a round close below the edge; elsewhere it is 1."""

_MINUTE = 60.0

_LESSON = 0.1
"""How much one reply changes what is thought of guesses: some ten of them outweigh what was thought before."""

_NAP = 0.001
"""Shortest wait for a rate, in seconds: what rounding leaves of one may be too short for a clock to notice."""


@dataclass(frozen=True, slots=True)
class LimitState:
    """How a model's limit stands.

    Attributes:
        limit: How many calls may be in flight at present.
        in_flight: How many are.
        waiting: How many would like to be.
        throttled: How many calls the provider has turned away so far.
        paused: Seconds until calls are sent again; 0 unless the provider asked for a pause.
    """

    limit: int
    in_flight: int
    waiting: int
    throttled: int
    paused: float


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one call.

    Attributes:
        sent_at: When the call is sent.
        guess: How many tokens it was said to take.
        reserved: How many are set aside for it.
    """

    sent_at: float
    guess: int
    reserved: int


class AdaptiveLimit:
    """The limit of one model, shared by all roles that it plays.

    Args:
        most: Upper bound of calls in flight; where it starts.
        rpm: Requests per minute, if the provider states them.
        tpm: Tokens per minute, if the provider states them.
        clock: Seconds of a monotonic clock.
        pauses: The gateway's, which may be cut short.
        rates: The rates of requests and of tokens, where they are not this limit's alone.
        on_overload: Is told of each call that was turned away: when it was sent, and what pause the provider asks for.
    """

    def __init__(
        self,
        most: int,
        rpm: int | None = None,
        tpm: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        pauses: Pauses | None = None,
        rates: tuple[Rate | None, Rate | None] | None = None,
        on_overload: Callable[[float, float | None], None] = lambda _sent_at, _pause: None,
    ) -> None:
        self._most = most
        self._limit = float(most)
        self._edge = float(most)
        self._round = most
        self._clock = clock
        self._in_flight = 0
        self._throttled = 0
        self._cut_at = clock()
        self._paused_until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pauses = pauses or Pauses()
        self._pauses.when_drained(self._wake_all)
        self._requests: Rate | None
        self._tokens: Rate | None
        own = [None if rate is None else PerMinute(rate, clock, self._pauses) for rate in (rpm, tpm)]
        self._requests, self._tokens = own if rates is None else rates
        self._on_overload = on_overload
        self._truth = 1.0  # what calls take of what they were said to take
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def state(self) -> LimitState:
        """As it stands now."""
        paused = max(0.0, self._paused_until - self._clock())
        waiting = sum(not future.done() for future in self._waiting)
        return LimitState(int(self._limit), self._in_flight, waiting, self._throttled, paused)

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[Slot]:
        """A place for one call, to be told of when it is answered, turned away or not sent at all.

        Args:
            tokens: How many the call will take, as far as can be told.

        Raises:
            DrainedError: If it would have to pause, and the work is to stop.
        """
        await self._enter()
        try:
            reserved = await self._keep_to_rates(tokens)
            yield Slot(self._clock(), tokens, reserved)
        finally:
            self._in_flight -= 1
            self._wake()

    def succeeded(self, slot: Slot, took: int | None = None) -> None:
        """A call was answered: if there was no room left, there may be a little more.

        Args:
            slot: The call's.
            took: How many tokens it took; `None` if the provider does not say, then the guess stands.
        """
        self._round -= 1
        if self._in_flight >= int(self._limit) and self._limit < self._most:
            self._limit = min(self._most, self._limit + self._growth())
        if took is None:
            return
        if self._tokens is not None:
            self._tokens.give(slot.reserved - took)
        if slot.guess:
            self._truth += _LESSON * (took / slot.guess - self._truth)

    def unsent(self, slot: Slot) -> None:
        """Nothing was sent after all, so nothing was taken of the rates."""
        if self._requests is not None:
            self._requests.give(1)
        if self._tokens is not None:
            self._tokens.give(slot.reserved)

    def overloaded(self, slot: Slot, retry_after: float | None) -> None:
        """The provider turned a call away, or asked for a pause. It counts that call in its rates, and so do we.

        Args:
            slot: The call's: what was sent before the last cut says nothing new.
            retry_after: Seconds that the provider asks to wait.
        """
        self._throttled += 1
        self._on_overload(slot.sent_at, retry_after)
        self.hear_overload(slot.sent_at, retry_after)

    def hear_overload(self, sent_at: float, retry_after: float | None) -> None:
        """Somebody's call was turned away that was sent at that time."""
        if sent_at >= self._cut_at:
            self._cut()
        if retry_after:
            self._paused_until = max(self._paused_until, self._clock() + retry_after)
            if self._pauses.is_drained:
                self._wake_all()

    def _growth(self) -> float:
        """How much one success raises the limit."""
        if self._limit < self._edge * _FAR:
            return 1.0
        is_close = self._edge * _NEAR - 1 <= self._limit < self._edge
        return (_CREEP if is_close else 1.0) / self._limit

    def _cut(self) -> None:
        is_edge = self._round <= 0
        if is_edge:
            self._edge = self._limit
        self._limit = max(1.0, self._limit * (_NEAR if is_edge else _FAR))
        self._round = int(self._limit)
        self._cut_at = self._clock()

    async def _enter(self) -> None:
        while not self._has_room():
            if self._clock() < self._paused_until:
                self._pauses.ensure_open()
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            self._set_alarm()
            try:
                await future
            except asyncio.CancelledError:
                if future.done() and not future.cancelled():
                    self._wake()  # it had been this one's turn: let it be another's
                raise
        self._in_flight += 1

    def _has_room(self) -> bool:
        return self._in_flight < int(self._limit) and self._clock() >= self._paused_until

    def _wake(self) -> None:
        """Wake as many as there is room for; each looks again whether there is."""
        if self._clock() < self._paused_until:
            self._set_alarm()
            return
        room = int(self._limit) - self._in_flight
        while self._waiting and room > 0:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                room -= 1

    def _wake_all(self) -> None:
        """Have all look again whether they may wait."""
        while self._waiting:
            if not (future := self._waiting.popleft()).done():
                future.set_result(None)

    def _set_alarm(self) -> None:
        """Be woken when the pause is over."""
        pause = self._paused_until - self._clock()
        if pause <= 0 or self._alarm is not None:
            return

        def ring() -> None:
            self._alarm = None
            self._wake()

        self._alarm = asyncio.get_running_loop().call_later(pause, ring)

    async def _keep_to_rates(self, tokens: int) -> int:
        """Wait until the rates and the provider allow a call; returns how many tokens are set aside for it."""
        reserved = math.ceil(tokens * self._truth)
        taken: list[tuple[Rate, int]] = []
        try:
            for rate, units in ((self._requests, 1), (self._tokens, reserved)):
                if rate is not None:
                    await rate.take(units)
                    taken.append((rate, units))
            while (pause := self._paused_until - self._clock()) > 0:  # it began during that wait
                await self._pauses.sleep(pause)
        except (asyncio.CancelledError, DrainedError):
            for rate, units in taken:
                rate.give(units)
            raise
        return reserved


class Rate(Protocol):
    """So many units a minute."""

    async def take(self, units: int) -> None:
        """Wait until the units are there. Who gives up takes nothing."""
        ...

    def give(self, units: int) -> None:
        """Units that were taken were not spent; or, below 0, more of them were."""
        ...


class PerMinute:
    """Spends so many units a minute: a bucket of a second's worth that fills evenly, and is full at the start.

    Who wants more than a bucketful waits for a full one; the rest is owed, and those who come next wait for it.
    """

    def __init__(self, units: int, clock: Callable[[], float], pauses: Pauses) -> None:
        self._pauses = pauses
        pauses.when_drained(lambda: self._given.set())
        self._rate = units / _MINUTE
        self._most = max(1.0, self._rate)
        self._clock = clock
        self._level = self._most
        self._at = clock()
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._given = asyncio.Event()

    async def take(self, units: int) -> None:
        """Wait until the units are there, in the order in which they are asked for. Who gives up takes nothing."""
        self._waiting += 1
        try:
            async with self._turn:
                await self._until_there_are(min(units, self._most))
                self._level -= units
        finally:
            self._waiting -= 1

    def give(self, units: int) -> None:
        """Units that were taken were not spent; or, below 0, more of them were."""
        self._level = self._filled() + units
        if self._waiting:
            self._given.set()  # whoever waits may take from more than a bucketful: it was paid for in waiting
        else:
            self._level = min(self._most, self._level)

    async def _until_there_are(self, units: float) -> None:
        while (lacking := units - self._filled()) > 0:
            self._pauses.ensure_open()
            self._given.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(lacking / self._rate, _NAP)):
                    await self._given.wait()

    def _filled(self) -> float:
        """How many units are there."""
        now = self._clock()
        self._level = max(self._level, min(self._most, self._level + (now - self._at) * self._rate))
        self._at = now
        return self._level
