"""The attempts at one call: their limit, their recorded failures, and the waits that providers ask for."""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, Self

from tenacity import AttemptManager, DoAttempt, DoSleep, RetryCallState, Retrying, retry_if_exception_type
from tenacity.wait import wait_random_exponential

from dialoom.roles.errors import ProviderError, TransientProviderError, UnansweredError

from .availability import Availability, Turn
from .budget import sum_tokens
from .calls import Attempt, Completion, Request
from .limits import AdaptiveLimit, Pauses

MAX_ATTEMPTS = 6


class Backend(Protocol):
    """A backend for one kind of model."""

    async def complete(self, request: Request, key: str) -> Completion:
        """Make one attempt.

        Raises:
            ProviderError: If it fails.
        """


class Attempts(Retrying):
    """The attempts at one call, until it is answered, is permanently rejected, or has failed too often.

    `async for` makes the attempts, with pauses between them. It raises the last attempt's error, or a `DrainedError` if
    the run is stopping and another attempt would have to wait.

    This is tenacity's loop with an asynchronous pause. Tenacity's own `AsyncRetrying` also accepts conditions that are
    coroutines, and inspects and wraps each of them in every call. This takes a twentieth of a call's processing time;
    the conditions here are plain functions.

    Args:
        limit: The model's limit.
        availability: The provider's availability. While the provider is unreachable, attempts wait, and failures do not
            count.
        max_backoff: Longest backoff between attempts, in seconds; a provider's Retry-After may be longer.
        pauses: The gateway's pauses, used between attempts.

    Attributes:
        count: Number of attempts, including those that do not count.
        last_error: The error of the last failed attempt.
        billed: The tokens and cost of all unusable replies; `None` for none.
    """

    def __init__(self, limit: AdaptiveLimit, availability: Availability, max_backoff: float, pauses: Pauses) -> None:
        backoff = wait_random_exponential(multiplier=0.5, max=max_backoff)

        def pause(state: RetryCallState) -> float:
            """Return the provider's Retry-After plus a random backoff, which spreads the calls, in seconds."""
            asked = self.last_error.retry_after if self.last_error is not None else None
            return 0.0 if availability.is_unavailable else (asked or 0.0) + float(backoff(state))

        super().__init__(
            retry=retry_if_exception_type(TransientProviderError),
            stop=lambda _state: self._failure_count >= MAX_ATTEMPTS,
            wait=pause,
            reraise=True,
        )
        self._limit = limit
        self._availability = availability
        self._pauses = pauses
        self._state = RetryCallState(self, fn=None, args=(), kwargs={})
        self._started_at = 0.0
        self._failure_count = 0
        self.count = 0
        self.last_error: ProviderError | None = None
        self.billed: Completion | None = None

    def __aiter__(self) -> Self:
        self.begin()
        return self

    async def __anext__(self) -> AttemptManager:
        step = self.iter(self._state)
        while isinstance(step, DoSleep):
            self._state.prepare_for_next_attempt()
            await self._pauses.sleep(step)
            step = self.iter(self._state)
        if isinstance(step, DoAttempt):
            return AttemptManager(self._state)
        raise StopAsyncIteration

    async def make(
        self, turn: Turn, send: Awaitable[Completion], record_failure: Callable[[Attempt], Awaitable[None]]
    ) -> Completion:
        """Make one attempt, and report its result to the limit and to the provider's availability.

        Args:
            turn: The attempt's turn.
            send: Sends the request.
            record_failure: Records a failed attempt.

        Raises:
            ProviderError: If the attempt fails.
        """
        self.count += 1
        started = time.monotonic()
        if self.count == 1:
            self._started_at = self._pauses.now()
        try:
            completion = await send
        except ProviderError as error:
            self.last_error = error
            if error.billed is not None:
                self.billed = error.billed.add_usage(self.billed)
            error.billed = self.billed
            if error.is_overload:
                self._limit.record_overload(turn.slot, error.retry_after)
            message = error.raw_message if isinstance(error, UnansweredError) else str(error)
            await record_failure(Attempt(self.count, time.monotonic() - started, message, error.retry_after))
            is_last = self._failure_count + 1 >= MAX_ATTEMPTS
            self._failure_count += self._availability.record_failure(turn, error, self._started_at, is_last)
            raise
        self._limit.record_success(turn.slot, sum_tokens(completion))
        self._availability.record_answer(turn)
        return completion


MAX_RETRY_AFTER_SECONDS = 600.0
"""Longest wait for a Retry-After, in seconds; a longer time is an error, or is too long for a run to wait."""

_RETRY_DELAY = re.compile(r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')  # Google's APIs state it in the body and in no header


def parse_retry_after(headers: Mapping[str, str], body: str = "") -> float | None:
    """Return the seconds that a response asks to wait; `None` if it states no time.

    Args:
        headers: The response's headers: `retry-after-ms` is the most exact, then `Retry-After` in seconds or as an HTTP
            date (RFC 9110, section 10.2.3). A date is compared with the server's own clock (`Date`), if the response
            has it.
        body: The response's body.
    """
    values = {name.lower(): value.strip() for name, value in headers.items() if isinstance(value, str)}
    if (milliseconds := _parse_number(values.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    value = values.get("retry-after", "")
    if (seconds := _parse_number(value)) is not None:
        return seconds
    if (date := _parse_date(value)) is not None:
        now = _parse_date(values.get("date", ""))
        return max(0.0, date - (time.time() if now is None else now))
    match = _RETRY_DELAY.search(body)
    return float(match[1]) if match else None


def _parse_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _parse_date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
