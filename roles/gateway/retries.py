"""The attempts at one call: limits, recorded failures, and the waits that providers ask for."""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_random_exponential

from dialoom.roles.errors import ProviderError, TransientProviderError, UnansweredError

from .availability import Availability, Turn
from .budget import tokens_spent
from .calls import Attempt, Completion, Request
from .limits import AdaptiveLimit
from .pauses import Pauses

MAX_ATTEMPTS = 6


class Backend(Protocol):
    """A backend for one kind of model."""

    async def complete(self, request: Request, key: str) -> Completion:
        """Make one attempt.

        Raises:
            ProviderError: If it fails.
        """
        ...


class Attempts:
    """The attempts at one request: until it is answered, permanently rejected, or has failed too often.

    Args:
        backend: The backend that sends the request.
        request: The request.
        key: The call's identity.
        limit: The model's limit.
        availability: The provider's availability: attempts wait while it is unreachable; failures then do not count.
        longest_wait: Longest backoff between attempts, in seconds; a provider's Retry-After may be longer.
        failed: Called for each failed attempt.
        pauses: The gateway's pauses, used between attempts.

    Attributes:
        made: Number of attempts, including those that do not count.
        last_error: The error of the last failed attempt.
    """

    def __init__(
        self,
        backend: Backend,
        request: Request,
        key: str,
        limit: AdaptiveLimit,
        availability: Availability,
        longest_wait: float,
        failed: Callable[[Attempt], Awaitable[None]],
        pauses: Pauses,
    ) -> None:
        self._backend = backend
        self._request = request
        self._key = key
        self._limit = limit
        self._availability = availability
        self._longest_wait = longest_wait
        self._failed = failed
        self._error: ProviderError | None = None
        self._pauses = pauses
        self._begun_at = 0.0
        self._counted = 0
        self.made = 0
        self.last_error: ProviderError | None = None

    async def first(self, turn: Turn) -> Completion | None:
        """Make the first attempt, with the caller's turn; return `None` if it failed and is worth a retry."""
        self._begun_at = self._pauses.now()
        try:
            return await self._once(turn)
        except TransientProviderError as error:
            self._error = error
            return None

    async def further(self) -> Completion:
        """Make the further attempts.

        Raises:
            ProviderError: The last attempt's error.
            DrainedError: If the run is stopping and another attempt would have to wait.
        """
        backoff = wait_random_exponential(multiplier=0.5, max=self._longest_wait)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(TransientProviderError),
            stop=lambda _state: self._counted >= MAX_ATTEMPTS,
            wait=lambda state: 0.0 if self._availability.is_away else self._pause(state, float(backoff(state))),
            sleep=self._pauses.sleep,
            reraise=True,
        )
        return await retrying(self._again)

    def _pause(self, state: RetryCallState, backoff: float) -> float:
        """Return the wait: the provider's Retry-After plus a random backoff, so that not all calls return at once."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, TransientProviderError) else None
        return backoff if asked is None else asked + backoff

    async def _again(self) -> Completion:
        """Make an attempt for tenacity, whose first attempt is the one that has already failed."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        async with self._availability.turn(self._limit, self._request.expected_tokens) as turn:
            return await self._once(turn)

    async def _once(self, turn: Turn) -> Completion:
        self.made += 1
        started = time.monotonic()
        try:
            completion = await self._backend.complete(self._request, self._key)
        except ProviderError as error:
            self.last_error = error
            if isinstance(error, TransientProviderError) and error.is_overload:
                self._limit.overloaded(turn.slot, error.retry_after)
            latency = time.monotonic() - started
            said = error.raw if isinstance(error, UnansweredError) else str(error)
            await self._failed(Attempt(self.made, latency, said, getattr(error, "retry_after", None)))
            is_last = self._counted + 1 >= MAX_ATTEMPTS
            self._counted += self._availability.failed(turn, error, self._begun_at, is_last)
            raise
        self._limit.succeeded(turn.slot, tokens_spent(completion))
        self._availability.answered(turn)
        return completion


LONGEST = 600.0
"""Longest accepted Retry-After, in seconds: a longer one is wrong, hostile, or meant for another day."""

_IN_BODY = re.compile(r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')  # Google's APIs report it there and in no header


def retry_after(headers: Mapping[str, str], body: str = "") -> float | None:
    """Return the seconds that a response asks to wait; `None` if it does not.

    Args:
        headers: The response's headers: `retry-after-ms` is the most exact, then `Retry-After` in seconds or as an HTTP
            date (RFC 9110, section 10.2.3). A date is measured by the server's own clock, if it tells the time.
        body: The response's body.
    """
    said = {name.lower(): value.strip() for name, value in headers.items() if isinstance(value, str)}
    if (milliseconds := _number(said.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    value = said.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    if (moment := _moment(value)) is not None:
        now = _moment(said.get("date", ""))
        return max(0.0, moment - (time.time() if now is None else now))
    found = _IN_BODY.search(body)
    return float(found[1]) if found else None


def capped(seconds: float | None) -> float | None:
    """Return the wait capped at `LONGEST`."""
    return None if seconds is None else min(seconds, LONGEST)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _moment(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
