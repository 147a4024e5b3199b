"""The adaptive limit on a model's calls in flight: it follows the provider's capacity, and its stated rates.

Additive increase, multiplicative decrease: calls that succeed while the limit is used up raise it by one per round
(as many calls as the limit allows). An overload cuts the limit, once for all calls that were sent before the cut. A
provider's Retry-After stops all sending until the time has passed; then calls are sent within the lowered limit.

The size of a cut and the rate of increase depend on what is known. After a round of successes, an overload shows the
provider's capacity, so the cut is small, and the limit rises slowly up to that point again. Without such a round, an
overload only shows that the limit is far too high, so the limit is halved. After an outage, the limit doubles each
round until it is half of what it was before.

When a call is sent, its estimated tokens count against the tokens per minute. The reply replaces the estimate by the
actual number, and updates the ratio of actual to estimated tokens.
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


class Pauses:
    """All pauses of one gateway.

    Attributes:
        is_drained: Whether no more pauses are allowed.
    """

    def __init__(self) -> None:
        self.is_drained = False
        self._drained = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    def now(self) -> float:
        """Return the time in seconds, by the event loop's clock, which times the pauses."""
        return asyncio.get_running_loop().time()

    def add_drain_listener(self, listener: Callable[[], None]) -> None:
        """Register a function that is called when the pauses end."""
        self._listeners.append(listener)

    def drain(self) -> None:
        """End every pause, including future ones. Must be called in the event loop's thread."""
        self.is_drained = True
        self._drained.set()
        for listener in self._listeners:
            listener()

    def ensure_open(self) -> None:
        """Check that waiting is still allowed.

        Raises:
            DrainedError: If waiting is no longer allowed.
        """
        if self.is_drained:
            raise DrainedError("cancelled while waiting, because the work stops")

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds, or until the run is stopped.

        Raises:
            DrainedError: If the run is stopping.
        """
        self.ensure_open()
        try:
            async with asyncio.timeout(seconds):
                await self._drained.wait()
        except TimeoutError:
            return
        self.ensure_open()


_LARGE_CUT, _SMALL_CUT = 0.5, 0.85
"""Factors of a cut: when the provider's capacity is unknown, and when it has just been found."""

_SLOW_INCREASE = 0.25
"""Increase of the limit per round just below the known capacity; elsewhere it is 1."""

_SECONDS_PER_MINUTE = 60.0

_RATIO_WEIGHT = 0.1
"""Weight of one reply in the moving average of the ratio of actual to estimated tokens, so that it averages about ten
replies.
"""

_MIN_WAIT_SECONDS = 0.001
"""Shortest wait for a rate, in seconds, because rounding may leave waits below the clock's resolution."""


@dataclass(frozen=True, slots=True)
class LimitState:
    """The state of a model's limit.

    Attributes:
        limit: Maximum number of calls in flight at present.
        in_flight: Number of calls in flight.
        waiting: Number of calls that wait for a slot.
        throttled: Number of calls that the provider has rejected so far.
        paused: Seconds until calls are sent again; 0 unless the provider asked for a pause.
    """

    limit: int
    in_flight: int
    waiting: int
    throttled: int
    paused: float


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot for one call.

    Attributes:
        sent_at: Time at which the call is sent.
        estimated_tokens: The estimated number of tokens.
        reserved_tokens: The number of tokens reserved, which is the estimate corrected by experience.
    """

    sent_at: float
    estimated_tokens: int
    reserved_tokens: int


class AdaptiveLimit:
    """The limit of one model, shared by all roles that it plays.

    Args:
        most: Upper bound of the limit, and its initial value.
        rpm: Requests per minute, if the provider states them.
        tpm: Tokens per minute, if the provider states them.
        clock: Returns the time of a monotonic clock in seconds.
        pauses: The gateway's pauses, which end early when the run stops.
        rates: The rates of requests and of tokens, where they are shared with other limits.
        on_overload: Called for each rejected call with the time it was sent and the pause that the provider asks for.
    """

    def __init__(
        self,
        max_limit: int,
        rpm: int | None = None,
        tpm: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        pauses: Pauses | None = None,
        rates: tuple[Rate | None, Rate | None] | None = None,
        on_overload: Callable[[float, float | None], None] = lambda _sent_at, _pause: None,
    ) -> None:
        self._max_limit = max_limit
        self._limit = float(max_limit)
        self._capacity = float(max_limit)
        self._successes_needed = max_limit
        self._clock = clock
        self._in_flight = 0
        self._throttled = 0
        self._cut_at = clock()
        self._paused_until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pauses = pauses or Pauses()
        self._pauses.add_drain_listener(self._wake)
        buckets = (None if rate is None else TokenBucket(rate, clock, self._pauses) for rate in (rpm, tpm))
        requests, tokens = buckets if rates is None else rates
        self._requests: Rate | None = requests
        self._tokens: Rate | None = tokens
        self._on_overload = on_overload
        self._token_ratio = 1.0  # moving average of the ratio of actual to estimated tokens

    @property
    def state(self) -> LimitState:
        """The limit's current state."""
        paused = max(0.0, self._paused_until - self._clock())
        waiting = sum(not future.done() for future in self._waiting)
        return LimitState(int(self._limit), self._in_flight, waiting, self._throttled, paused)

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[Slot]:
        """Wait for a slot for one call.

        The caller then reports the result by `record_success`, `record_overload` or `release`.

        Args:
            tokens: Estimated number of tokens that the call will take.

        Raises:
            DrainedError: If the call would have to pause and the run is stopping.
        """
        await self._acquire()
        try:
            reserved_tokens = await self._wait_for_rates(tokens)
            yield Slot(self._clock(), tokens, reserved_tokens)
        finally:
            self._in_flight -= 1
            self._wake()

    def record_success(self, slot: Slot, tokens: int | None = None) -> None:
        """Record that a call was answered. This may raise the limit if all of its slots were in use.

        Args:
            slot: The call's slot.
            tokens: The number of tokens that the call took; if it is `None`, because it was not reported, the estimate
                stays.
        """
        self._successes_needed -= 1
        if self._in_flight >= int(self._limit) and self._limit < self._max_limit:
            self._limit = min(self._max_limit, self._limit + self._compute_increase())
        if tokens is not None and self._tokens is not None:
            self._tokens.refund(slot.reserved_tokens - tokens)
        if tokens is not None and slot.estimated_tokens:
            self._token_ratio += _RATIO_WEIGHT * (tokens / slot.estimated_tokens - self._token_ratio)

    def release(self, slot: Slot) -> None:
        """Release a slot's reservation of the rates, because nothing was sent."""
        if self._requests is not None:
            self._requests.refund(1)
        if self._tokens is not None:
            self._tokens.refund(slot.reserved_tokens)

    def record_overload(self, slot: Slot, retry_after: float | None) -> None:
        """Record that the provider rejected a call, or asked for a pause; the call counts against the rates.

        Args:
            slot: The call's slot. A call sent before the last cut does not cause another cut.
            retry_after: Seconds that the provider asks to wait.
        """
        self._throttled += 1
        self._on_overload(slot.sent_at, retry_after)
        self.apply_overload(slot.sent_at, retry_after)

    def apply_overload(self, sent_at: float, retry_after: float | None) -> None:
        """Cut the limit because of a rejected call of this or another process, sent at the given time."""
        if sent_at >= self._cut_at:
            is_at_capacity = self._successes_needed <= 0
            if is_at_capacity:
                self._capacity = self._limit
            self._limit = max(1.0, self._limit * (_SMALL_CUT if is_at_capacity else _LARGE_CUT))
            self._successes_needed = int(self._limit)
            self._cut_at = self._clock()
        if retry_after:
            self._paused_until = max(self._paused_until, self._clock() + retry_after)
            self._wake()

    def _compute_increase(self) -> float:
        """Return the increase of the limit after one successful call."""
        if self._limit < self._capacity * _LARGE_CUT:
            return 1.0
        is_near_capacity = self._capacity * _SMALL_CUT - 1 <= self._limit < self._capacity
        return (_SLOW_INCREASE if is_near_capacity else 1.0) / self._limit

    async def _acquire(self) -> None:
        while (is_paused := self._clock() < self._paused_until) or self._in_flight >= int(self._limit):
            if is_paused:
                self._pauses.ensure_open()
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await future
            except asyncio.CancelledError:
                if future.done() and not future.cancelled():
                    self._wake()  # this call was woken and was cancelled: wake the next
                raise
        self._in_flight += 1

    def _wake(self) -> None:
        """Wake as many waiting calls as there are free slots, or all if they may not wait; each checks again.

        During a pause that the provider asks for, this is done when the pause ends.
        """
        free = int(self._limit) - self._in_flight
        if (pause := self._paused_until - self._clock()) > 0:
            free = len(self._waiting) if self._pauses.is_drained else 0
            if not self._pauses.is_drained:
                asyncio.get_running_loop().call_later(pause, self._wake)
        while self._waiting and free > 0:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                free -= 1

    async def _wait_for_rates(self, tokens: int) -> int:
        """Wait until the rates and the provider allow a call; return the number of tokens reserved for it."""
        reserved_tokens = math.ceil(tokens * self._token_ratio)
        acquired: list[tuple[Rate, int]] = []
        try:
            for rate, units in ((self._requests, 1), (self._tokens, reserved_tokens)):
                if rate is not None:
                    await rate.take(units)
                    acquired.append((rate, units))
            while (pause := self._paused_until - self._clock()) > 0:  # it may have begun during the wait for rates
                await self._pauses.sleep(pause)
        except (asyncio.CancelledError, DrainedError):
            for rate, units in acquired:
                rate.refund(units)
            raise
        return reserved_tokens


class Rate(Protocol):
    """A limit on the units (requests or tokens) that are used per minute."""

    async def take(self, units: int) -> None:
        """Wait until the units are available. A cancelled wait takes nothing."""

    def refund(self, units: int) -> None:
        """Return units that were taken and not spent; a negative number takes more."""


class TokenBucket:
    """A token bucket of one second's worth of units that fills evenly, and is full at the start.

    A request for more units than the bucket holds waits for a full bucket. The rest becomes a debt, which delays later
    requests.
    """

    def __init__(self, units: int, clock: Callable[[], float], pauses: Pauses) -> None:
        self._pauses = pauses
        pauses.add_drain_listener(lambda: self._refunded.set())
        self._rate = units / _SECONDS_PER_MINUTE
        self._size = max(1.0, self._rate)
        self._clock = clock
        self._level = self._size
        self._refilled_at = clock()
        self._queue = asyncio.Lock()
        self._waiting = 0
        self._refunded = asyncio.Event()

    async def take(self, units: int) -> None:
        """Wait until the units are available, in the order of the requests. A cancelled wait takes nothing."""
        self._waiting += 1
        try:
            async with self._queue:
                await self._wait_for_units(min(units, self._size))
                self._level -= units
        finally:
            self._waiting -= 1

    def refund(self, units: int) -> None:
        """Return units that were taken and not spent; a negative number takes more."""
        self._level = self._refill() + units
        if self._waiting:
            self._refunded.set()  # for waiting calls, the level may exceed the bucket's size
        else:
            self._level = min(self._size, self._level)

    async def _wait_for_units(self, units: float) -> None:
        while (missing := units - self._refill()) > 0:
            self._pauses.ensure_open()
            self._refunded.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(missing / self._rate, _MIN_WAIT_SECONDS)):
                    await self._refunded.wait()

    def _refill(self) -> float:
        """Add the units since the last refill, and return the current number."""
        now = self._clock()
        self._level = max(self._level, min(self._size, self._level + (now - self._refilled_at) * self._rate))
        self._refilled_at = now
        return self._level
