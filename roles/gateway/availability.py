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

_IN_A_ROW = 3
_SHORTEST, _LONGEST = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class ProviderUnreachable:
    """An event: a provider cannot be reached, and calls to it wait.

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.ProviderUnreachable):
        ...         print(event.provider, "is away:", event.reason)
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
        ...         print(event.provider, "was away for", event.seconds, "s")
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
        finds_out: Whether the request is a probe of an unavailable provider.
    """

    slot: Slot
    finds_out: bool


@dataclass(slots=True)
class _Away:
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

    def __init__(self, provider: str, patience: float, pauses: Pauses, tell: Callable[[ProviderEvent], None]) -> None:
        self._provider = provider
        self._patience = patience
        self._pauses = pauses
        self._tell = tell
        self._away: _Away | None = None
        self._in_a_row = 0
        self._missed_at = 0.0  # time of the first of the consecutive failures
        self._last_reply_at = -1.0
        self._probing = asyncio.Lock()

    @property
    def is_away(self) -> bool:
        """Return whether calls wait for the provider."""
        return self._away is not None

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
            if self._away is None:
                async with limit.slot(tokens) as slot:
                    if not self.is_away:
                        yield Turn(slot, finds_out=False)
                        return
                    limit.unsent(slot)  # the provider became unavailable while the request waited for a slot
            self._pauses.ensure_open()
            async with self._probing:
                if self._away is not None:
                    await self._pauses.sleep(max(0.0, self._away.next_at - self._pauses.now()))
                    async with limit.slot(tokens) as slot:
                        yield Turn(slot, finds_out=True)
                        return

    def answered(self, turn: Turn) -> None:
        """Record that the provider answered, whatever the status."""
        if self._away is not None and not turn.finds_out:
            return
        self._in_a_row = 0
        self._last_reply_at = self._pauses.now()
        if self._away is not None:
            self._tell(ProviderReachable(self._provider, self._last_reply_at - self._away.since))
            self._away = None

    def failed(self, turn: Turn, error: ProviderError, begun_at: float, is_last: bool) -> bool:
        """Record a failed attempt; return whether it counts towards the maximum number of attempts.

        Args:
            turn: The attempt's turn.
            error: The attempt's error.
            begun_at: The time at which the first attempt at the call was sent, by the clock of the pauses.
            is_last: Whether this is the call's last attempt.
        """
        if not isinstance(error, UnansweredError):
            self.answered(turn)
        elif self._away is not None:
            if turn.finds_out:
                self._is_still_away(self._away, error)
        elif self._patience > 0 and error.evidence is not OutageEvidence.NONE:
            self._missed(error, begun_at, is_last)
        return self._away is None

    def _missed(self, error: UnansweredError, begun_at: float, is_last: bool) -> None:
        now = self._pauses.now()
        if error.evidence is OutageEvidence.STRONG:
            self._missed_at = self._missed_at if self._in_a_row else now
            self._in_a_row += 1
        if self._in_a_row >= _IN_A_ROW:
            since = self._missed_at
        elif is_last and self._last_reply_at < begun_at:
            since = begun_at
        else:
            return
        pause = min(_SHORTEST, self._patience)
        self._away = _Away(since, now + pause, pause)
        self._tell(ProviderUnreachable(self._provider, error.reason, pause, self._patience))

    def _is_still_away(self, away: _Away, error: UnansweredError) -> None:
        now = self._pauses.now()
        left = away.since + self._patience - now
        if left > 0:
            away.pause = min(2 * away.pause, _LONGEST)
            away.next_at = now + min(away.pause, left)
            return
        self._tell(ProviderLost(self._provider, error.reason, now - away.since))
        if not self._pauses.is_drained:  # the run was not stopped: let the calls fail
            self._patience, self._away = 0.0, None


@dataclass(frozen=True, slots=True)
class CallInFlight:
    """A call that was sent and has not been answered yet.

    Attributes:
        role: The role that is called.
        model: The role's model.
        began: The time at which it was first sent, on the monotonic clock.
    """

    role: str
    model: str
    began: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds since the call was first sent, including failed attempts and the pauses between them."""
        return time.monotonic() - self.began
