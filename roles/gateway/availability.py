"""Provider availability: while a provider is unavailable, its calls wait, and one call at a time probes it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from dialoom.roles.errors import OutageEvidence, ProviderError, UnansweredError

from .limits import AdaptiveLimit, Pauses, Slot

_MAX_CONSECUTIVE_FAILURES = 3
_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class ProviderUnreachable:
    """An event: a provider cannot be reached, and calls to it wait.

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.ProviderUnreachable):
        ...         print(event.provider, "is unavailable:", event.reason)
        >>> run = dialoom.resume("run.db", on_event=on_event)

    Attributes:
        provider: The provider's name, with its address if that is not the default one.
        reason: The error of the last attempt.
        pause: Seconds until the next attempt; later pauses are longer.
        patience: Total seconds of unavailability after which the run is stopped.
    """

    provider: str
    reason: str
    pause: float
    patience: float


@dataclass(frozen=True, slots=True)
class ProviderReachable:
    """An event: a provider that was unavailable is available again.

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.ProviderReachable):
        ...         print(event.provider, "was unavailable for", event.seconds, "s")
        >>> run = dialoom.resume("run.db", on_event=on_event)

    Attributes:
        provider: The provider's name, with its address if that is not the default one.
        seconds: Seconds for which it was unavailable.
    """

    provider: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ProviderLost:
    """An event: a provider has been unavailable for longer than the patience allows, so the run should stop.

    Attributes:
        provider: The provider's name, with its address if that is not the default one.
        reason: The error of the last attempt.
        seconds: Seconds for which it has been unavailable.
    """

    provider: str
    reason: str
    seconds: float


ProviderEvent: TypeAlias = "ProviderUnreachable | ProviderReachable | ProviderLost"


@dataclass(frozen=True, slots=True)
class Turn:
    """Permission to send a request.

    Attributes:
        slot: The request's slot in the model's limit.
        is_probe: Whether the request is a probe of an unavailable provider.
    """

    slot: Slot
    is_probe: bool


@dataclass(slots=True)
class _Outage:
    since: float
    next_at: float
    pause: float


class Availability:
    """The availability of one provider at one address, shared by all of its models at that address.

    Args:
        provider: The provider's name.
        patience: Seconds that the provider may be unavailable; with 0, calls fail instead of waiting.
        pauses: The gateway's pauses, which end early when the run stops.
        tell: Called when the provider becomes unavailable, when it is available again, and when it has been unavailable
            for longer than `patience`.
    """

    def __init__(self, provider: str, patience: float, pauses: Pauses, notify: Callable[[ProviderEvent], None]) -> None:
        self._provider = provider
        self._patience = patience
        self._pauses = pauses
        self._notify = notify
        self._outage: _Outage | None = None
        self._consecutive_failures = 0
        self._first_failure_at = 0.0  # time of the first of the consecutive failures
        self._last_reply_at = -1.0
        self._probe_lock = asyncio.Lock()

    @property
    def is_unavailable(self) -> bool:
        """Return whether calls wait for the provider."""
        return self._outage is not None

    @asynccontextmanager
    async def turn(self, limit: AdaptiveLimit, tokens: int) -> AsyncIterator[Turn]:
        """Wait for a slot in the limit, and until the provider is available or this request is the next probe.

        Args:
            limit: The model's limit.
            tokens: Estimated number of tokens that the request will take.

        Raises:
            DrainedError: If the request would have to wait and the run is stopping.
        """
        while True:
            if self._outage is None:
                async with limit.slot(tokens) as slot:
                    if not self.is_unavailable:
                        yield Turn(slot, is_probe=False)
                        return
                    limit.release(slot)  # the provider became unavailable while the request waited for a slot
            self._pauses.ensure_open()
            async with self._probe_lock:
                if self._outage is not None:
                    await self._pauses.sleep(max(0.0, self._outage.next_at - self._pauses.now()))
                    async with limit.slot(tokens) as slot:
                        yield Turn(slot, is_probe=True)
                        return

    def record_answer(self, turn: Turn) -> None:
        """Record that the provider answered, whatever the status."""
        if self._outage is not None and not turn.is_probe:
            return
        self._consecutive_failures = 0
        self._last_reply_at = self._pauses.now()
        if self._outage is not None:
            self._notify(ProviderReachable(self._provider, self._last_reply_at - self._outage.since))
            self._outage = None

    def record_failure(self, turn: Turn, error: ProviderError, started_at: float, is_last: bool) -> bool:
        """Record a failed attempt; return whether it counts towards the maximum number of attempts.

        Args:
            turn: The attempt's turn.
            error: The attempt's error.
            started_at: The time at which the first attempt at the call was sent, by the clock of the pauses.
            is_last: Whether this is the call's last attempt.
        """
        if not isinstance(error, UnansweredError):
            self.record_answer(turn)
        elif self._outage is not None:
            if turn.is_probe:
                self._extend_outage(self._outage, error)
        elif self._patience > 0 and error.evidence is not OutageEvidence.NONE:
            self._handle_unanswered(error, started_at, is_last)
        return self._outage is None

    def _handle_unanswered(self, error: UnansweredError, started_at: float, is_last: bool) -> None:
        now = self._pauses.now()
        if error.evidence is OutageEvidence.STRONG:
            self._first_failure_at = self._first_failure_at if self._consecutive_failures else now
            self._consecutive_failures += 1
        if self._consecutive_failures >= _MAX_CONSECUTIVE_FAILURES:
            since = self._first_failure_at
        elif is_last and self._last_reply_at < started_at:
            since = started_at
        else:
            return
        pause = min(_MIN_PAUSE_SECONDS, self._patience)
        self._outage = _Outage(since, now + pause, pause)
        self._notify(ProviderUnreachable(self._provider, error.reason, pause, self._patience))

    def _extend_outage(self, outage: _Outage, error: UnansweredError) -> None:
        now = self._pauses.now()
        remaining = outage.since + self._patience - now
        if remaining > 0:
            outage.pause = min(2 * outage.pause, _MAX_PAUSE_SECONDS)
            outage.next_at = now + min(outage.pause, remaining)
            return
        self._notify(ProviderLost(self._provider, error.reason, now - outage.since))
        if not self._pauses.is_drained:  # the run was not stopped: let the calls fail
            self._patience, self._outage = 0.0, None


@dataclass(frozen=True, slots=True)
class CallInFlight:
    """A call that was sent and has not been answered yet.

    Attributes:
        role: The role that is called.
        model: The role's model.
        started_at: The time at which it was first sent, on the monotonic clock.
    """

    role: str
    model: str
    started_at: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds since the call was first sent, including failed attempts and the pauses between them."""
        return time.monotonic() - self.started_at
