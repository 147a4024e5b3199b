"""How many calls one model may have in flight: it follows what the provider bears, and its stated rates.

Additive increase, multiplicative decrease: calls that succeed while the limit is used up raise it by one in a round (as
many calls as it allows); an overload cuts it, at most once for all calls that were sent before that cut. A provider's
Retry-After stops sending altogether until it has passed; then calls go out at the lowered limit.

How far it is cut, and how fast it climbs, follow from what is known. A cut after a round of successes found the edge of
what the provider bears, so it is a small one, and the limit creeps up to that edge again; a cut without one says only
"far too much", and halves. After an outage the limit doubles each round until it is half of what it was before.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

_FAR, _NEAR = 0.5, 0.85
"""What an overload leaves of the limit: when nothing is known of where the edge is, and when it has just been found."""

_CREEP = 0.25
"""Growth in a round close below the edge; elsewhere it is 1."""

_MINUTE = 60.0


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


class AdaptiveLimit:
    """The limit of one model, shared by all roles that it plays.

    Args:
        most: Upper bound of calls in flight; where it starts.
        rpm: Requests per minute, if the provider states them.
        tpm: Tokens per minute, if the provider states them.
        clock: Seconds of a monotonic clock.
    """

    def __init__(
        self,
        most: int,
        rpm: int | None = None,
        tpm: int | None = None,
        clock: Callable[[], float] = time.monotonic,
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
        self._requests = None if rpm is None else _PerMinute(rpm, clock)
        self._tokens = None if tpm is None else _PerMinute(tpm, clock)
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def state(self) -> LimitState:
        """As it stands now."""
        paused = max(0.0, self._paused_until - self._clock())
        waiting = sum(not future.done() for future in self._waiting)
        return LimitState(int(self._limit), self._in_flight, waiting, self._throttled, paused)

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[float]:
        """A place for one call; gives the moment it was had, for `overloaded`.

        Args:
            tokens: How many the call will take, as far as can be told.
        """
        await self._enter()
        try:
            await self._keep_to_rates(tokens)
            while (pause := self._paused_until - self._clock()) > 0:  # noqa: ASYNC110 - it began during that wait
                await asyncio.sleep(pause)
            yield self._clock()
        finally:
            self._in_flight -= 1
            self._wake()

    def succeeded(self) -> None:
        """A call was answered: if there was no room left, there may be a little more."""
        self._round -= 1
        if self._in_flight >= int(self._limit) and self._limit < self._most:
            self._limit = min(self._most, self._limit + self._growth())

    def overloaded(self, sent_at: float, retry_after: float | None) -> None:
        """The provider turned a call away, or asked for a pause.

        Args:
            sent_at: When that call was sent: what was sent before the last cut says nothing new.
            retry_after: Seconds that the provider asks to wait.
        """
        self._throttled += 1
        if sent_at >= self._cut_at:
            self._cut()
        if retry_after:
            self._paused_until = max(self._paused_until, self._clock() + retry_after)

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

    def _set_alarm(self) -> None:
        """Be woken when the pause is over."""
        pause = self._paused_until - self._clock()
        if pause <= 0 or self._alarm is not None:
            return

        def ring() -> None:
            self._alarm = None
            self._wake()

        self._alarm = asyncio.get_running_loop().call_later(pause, ring)

    async def _keep_to_rates(self, tokens: int) -> None:
        if self._requests is not None:
            await self._requests.take(1)
        if self._tokens is not None:
            await self._tokens.take(tokens)


class _PerMinute:
    """Spends at most so many units a minute: a bucket that fills evenly, full at the start by a second's worth."""

    def __init__(self, units: int, clock: Callable[[], float]) -> None:
        self._rate = units / _MINUTE
        self._most = max(1.0, self._rate)
        self._clock = clock
        self._level = self._most
        self._at = clock()

    async def take(self, units: int) -> None:
        """Wait until the units are there. More than a bucketful is owed, and paid by waiting."""
        now = self._clock()
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now
        self._level -= units
        if self._level < 0:
            try:
                await asyncio.sleep(-self._level / self._rate)
            except asyncio.CancelledError:
                self._level += units  # they were not spent, so those who come later need not wait for them
                raise
