"""Work in progress: its control from any thread, its events, and the rules by which it stops by itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from dialoom.roles.gateway.availability import CallInFlight, ProviderReachable, ProviderUnreachable
from dialoom.roles.gateway.limits import LimitState

from .configuration.config import RunConfig
from .errors import Fault
from .gateway_setup import BudgetStatus, FailOnError
from .store import RunFile, Status, Usage
from .store.connections import is_written_by_another
from .store.status import FailureCause


class _Stoppable(Protocol):
    def drain(self) -> None: ...

    def stop(self) -> None: ...


class Calls(Protocol):
    """The calls that work makes."""

    @property
    def states(self) -> Mapping[str, LimitState]:
        """The state of each model's rate limit."""
        ...

    @property
    def in_flight(self) -> Sequence[CallInFlight]:
        """The calls without a reply so far, the longest first."""
        ...


class Control:
    """A control that stops work from any thread, at once or gracefully, and reports its models' rate limits.

    It is passed to an operation of the API, can be used once, and works before the operation begins as well.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_draining = self._is_stopped = False
        self._work: _Stoppable | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: Calls | None = None

    @property
    def is_draining(self) -> bool:
        """Return whether the work was asked to stop."""
        return self._is_draining

    @property
    def limits(self) -> Mapping[str, LimitState]:
        """The state of each called model's rate limit: in flight, throttled, paused."""
        return {} if self._calls is None else self._calls.states

    @property
    def in_flight(self) -> Sequence[CallInFlight]:
        """The calls that were sent and have no reply yet, the longest first: their roles, models and ages."""
        return () if self._calls is None else self._calls.in_flight

    def drain(self) -> None:
        """Begin nothing new; let each conversation reach its next checkpoint, and stop there."""
        with self._lock:
            self._is_draining = True
        self._carry_on()

    def stop(self) -> None:
        """Cancel the calls in flight. Committed results are kept."""
        with self._lock:
            self._is_draining = self._is_stopped = True
        self._carry_on()

    def interrupt(self) -> None:
        """Handle Ctrl-C: the first one drains, the second one stops."""
        if self.is_draining:
            self.stop()
        else:
            self.drain()

    def attach(self, work: _Stoppable, calls: Calls) -> None:
        """Begin to control work that the running event loop carries out."""
        with self._lock:
            self._work, self._loop, self._calls = work, asyncio.get_running_loop(), calls
        if self.is_draining:
            self._carry_on()

    def detach(self) -> None:
        """End the control, as the work is over."""
        with self._lock:
            self._work = self._loop = None

    def _carry_on(self) -> None:
        """Notify the work, in its own thread."""
        with self._lock:
            if self._work is not None and self._loop is not None:
                self._loop.call_soon_threadsafe(self._work.stop if self._is_stopped else self._work.drain)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """A run's progress, spend and errors at one moment.

    Attributes:
        status: The numbers of scenarios and calls.
        by_model: The usage of the calls by model.
        bounds: The run's status against its budget, and the rejected calls by provider.
        unparsed: The number of unparsed judgements in its own set.
        causes: The causes of failed scenarios, the most frequent first; at most ten.
        is_played: Whether another process is writing the run now.
    """

    status: Status
    by_model: Mapping[str, Usage]
    bounds: BudgetStatus
    unparsed: int
    causes: Sequence[FailureCause]
    is_played: bool

    @classmethod
    def of(cls, run: RunFile) -> RunProgress:
        """Read the progress from a run's file."""
        sets = run.judgement_sets()
        unparsed = run.unparsed(sets[0].name) if sets else 0
        is_played = is_written_by_another(run.path)
        return cls(run.status(), run.usage_by_model(), BudgetStatus.of(run), unparsed, run.failure_causes(), is_played)


@dataclass(frozen=True, slots=True)
class Noted:
    """A note that planning left, such as a repair of the source data."""

    text: str


@dataclass(frozen=True, slots=True)
class Planned:
    """A new run's file was created, with its plan.

    Attributes:
        path: The run's file.
        config: The run's configuration.
        scenarios: The number of scenarios.
    """

    path: Path
    config: RunConfig
    scenarios: int


@dataclass(frozen=True, slots=True)
class Retrying:
    """Failed or unparsed work was marked to be repeated.

    Attributes:
        failed: The number of failed scenarios (or, for a later set of judgements, judgings) that continue.
        too_long: The number of those that do not: a request exceeded its model's context, and no window was given now.
        anew: The number of scenarios that restart from their beginning; their judgements are deleted.
        unparsed: The number of scenarios whose unparsed judgements are repeated.
        judging: The set of judgements, if there is one.
    """

    failed: int | None = None
    too_long: int = 0
    anew: int | None = None
    unparsed: int | None = None
    judging: str | None = None


@dataclass(frozen=True, slots=True)
class Began:
    """Work has begun.

    Attributes:
        path: The run's file.
        action: `playing`, `judging` or `judging again`.
        scenarios: The number of scenarios to work on.
        judging: The set that the judgements are added to, if it is a judging.
    """

    path: Path
    action: str
    scenarios: int
    judging: str | None = None


@dataclass(frozen=True, slots=True)
class ScenarioDone:
    """A scenario is done (or judged).

    Attributes:
        number: Its number in the plan, from 1.
        id: Its id.
    """

    number: int
    id: str


@dataclass(frozen=True, slots=True)
class ScenarioFailed:
    """A scenario failed; the others continue.

    Attributes:
        number: Its number in the plan, from 1.
        id: Its id.
        fault: The party at fault.
        error: The error message.
        cause: Equal for scenarios that failed by the same permanent error of a provider; see `lasting_cause`.
    """

    number: int
    id: str
    fault: Fault
    error: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class NodeSaid:
    """A node's message about a long-running operation. It is not stored."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """The work stops early, by itself: nothing new begins.

    Attributes:
        fault: `budget` if it is used up, `provider, away` if a provider was unreachable for too long, `provider,
            permanent` if scenario after scenario meets the same error; `None` if too many scenarios failed.
        reason: The reason, in a sentence.
        setting: The option that bounds the work.
    """

    fault: Fault | None
    reason: str
    setting: str | None = None


@dataclass(frozen=True, slots=True)
class Worked:
    """The workers have finished.

    Attributes:
        seconds: The time from the first lease to the end.
        busy: The seconds of it in which each worker had scenarios in progress.
    """

    seconds: float
    busy: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """A piece of work is over. The last event; `retry` may have two pieces.

    Attributes:
        path: The run's file.
        done: The number of scenarios that succeeded.
        failed: The number of scenarios that failed.
        is_complete: Whether every scenario was reached: not after an interrupt, nor when the work was stopped.
        stopped: The reason if the work stopped by itself.
        judging: The set of judgements, if it was a judging.
    """

    path: Path
    done: int
    failed: int
    is_complete: bool
    stopped: Stopping | None = None
    judging: str | None = None


Event: TypeAlias = (
    Noted
    | Planned
    | Retrying
    | Began
    | ScenarioDone
    | ScenarioFailed
    | NodeSaid
    | ProviderUnreachable
    | ProviderReachable
    | Stopping
    | Worked
    | Ended
)


SAME_IN_A_ROW = 5
"""The number of consecutive scenarios failing by the same permanent error of a provider that stops the work."""


class StopRule:
    """A counter of results that forwards them, and stops the work when continuing is pointless.

    Args:
        on_event: Called with each result.
        fail_on_error: The bound on failures that stops the work.
        drain: Stops the work gracefully, as an interrupt does.

    Attributes:
        done: The number of scenarios that succeeded.
        failed: The number of scenarios that failed.
        stopped: The reason if the work stopped by itself.
        is_draining: Whether the work was asked to stop, by anyone.
    """

    def __init__(
        self, on_event: Callable[[Event], None], fail_on_error: FailOnError, drain: Callable[[], None]
    ) -> None:
        self._on_event = on_event
        self._fail_on_error = fail_on_error
        self._drain = drain
        self._cause: str | None = None
        self._in_a_row = 0
        self.done = self.failed = 0
        self.stopped: Stopping | None = None
        self.is_draining = False

    def count(self, result: ScenarioDone | ScenarioFailed) -> None:
        """Count a result; stop when too many have failed, or several in a row by the same lasting cause."""
        if isinstance(result, ScenarioDone):
            self.done += 1
            self._cause = None
        else:
            self.failed += 1
            self._in_a_row = self._in_a_row + 1 if result.cause == self._cause else 1
            self._cause = result.cause
        self._on_event(result)
        if reason := self._fail_on_error.exceeded(self.failed, self.failed + self.done):
            self.stop(Stopping(None, reason, "fail_on_error"))
        elif isinstance(result, ScenarioFailed) and result.cause is not None and self._in_a_row >= SAME_IN_A_ROW:
            said = f"{SAME_IN_A_ROW} scenarios in a row failed with the same permanent error: {result.error}"
            self.stop(Stopping(Fault.PROVIDER_PERMANENT, said))

    def stop(self, stopping: Stopping) -> None:
        """Stop gracefully, as an interrupt does; only the first reason is kept."""
        if not self.is_draining:
            self.stopped = stopping
            self._on_event(stopping)
            self._drain()
