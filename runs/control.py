"""The control of running work from any thread, the events of the work, and the rules by which it stops early."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from dialoom.roles.gateway.availability import CallInFlight, ProviderReachable, ProviderUnreachable
from dialoom.roles.gateway.limits import LimitState
from dialoom.text import pluralize

from .configuration.config import RunConfig
from .errors import Fault
from .gateway_setup import BudgetStatus
from .store import RunFile, Status, Usage
from .store.connections import is_written_by_another
from .store.status import CheckErrors, FailureCause


class _Stoppable(Protocol):
    def drain(self) -> None: ...

    def stop(self) -> None: ...


class CallMonitor(Protocol):
    """Access to the calls of work in progress."""

    @property
    def limit_states(self) -> Mapping[str, LimitState]:
        """The state of each model's rate limit."""

    @property
    def in_flight(self) -> Sequence[CallInFlight]:
        """The calls that have no reply yet; those that were sent first come first."""


class Control:
    """A control that stops work from any thread, at once or gracefully, and reports its models' rate limits.

    A control is passed to one operation of the API. It can also be used before the operation begins.

    The command line and the blocking functions pass Ctrl-C to `interrupt` (the command line also SIGTERM). What a press
    does depends on the moment:

    1. Before planning, while a command loads modules: it exits with 130, and nothing is written.
    2. While settings are checked and the run is planned: planning stops at its next scenario, and a new run's file is
       removed (a resumed run stays without a plan). The operation raises `StoppedError`; a command exits with 130.
    3. The first press during the work drains it: no scenario begins, calls in flight are answered and recorded, and
       each conversation stops at its next checkpoint. The command line says so at once.
    4. The second press stops the work: calls in flight are cancelled, and their conversations stay at their last
       checkpoint.
    5. At the end, `Ended` is emitted with `is_complete` false; a command prints how to continue and exits with 3. A
       resumed run continues from the checkpoints and repeats no recorded call.

    A blocking function raises `KeyboardInterrupt` at the end in all cases.

    Example:
        >>> control = dialoom.Control()
        >>> control.drain()  # usually from another thread: conversations stop at their next step
        >>> run = dialoom.plan("personalens", path="later.db", options={"limit": 2})
        >>> run.resume(control=control).status().pending
        2
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_draining = self._is_stopped = False
        self._work: _Stoppable | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: CallMonitor | None = None

    @property
    def is_draining(self) -> bool:
        """Return whether the work was asked to stop."""
        return self._is_draining

    @property
    def limits(self) -> Mapping[str, LimitState]:
        """The state of each called model's rate limit: in flight, throttled, paused."""
        return {} if self._calls is None else self._calls.limit_states

    @property
    def in_flight(self) -> Sequence[CallInFlight]:
        """The calls that were sent and have no reply yet, with role, model and age; the oldest come first."""
        return () if self._calls is None else self._calls.in_flight

    def drain(self) -> None:
        """Begin no new work, and stop each conversation at its next checkpoint."""
        with self._lock:
            self._is_draining = True
        self._notify_work()

    def stop(self) -> None:
        """Cancel the calls in flight. Committed results are kept."""
        with self._lock:
            self._is_draining = self._is_stopped = True
        self._notify_work()

    def interrupt(self) -> None:
        """Handle Ctrl-C: drain the work the first time, and stop it the second time."""
        (self.stop if self.is_draining else self.drain)()

    def attach(self, work: _Stoppable, calls: CallMonitor | None = None) -> None:
        """Begin to control work that runs in the current event loop. The calls of other processes are not known."""
        with self._lock:
            self._work, self._loop, self._calls = work, asyncio.get_running_loop(), calls
        if self.is_draining:
            self._notify_work()

    def detach(self) -> None:
        """Stop controlling the work, because it has ended."""
        with self._lock:
            self._work = self._loop = None

    def _notify_work(self) -> None:
        """Tell the running work, in the thread of its event loop, that it should stop."""
        with self._lock:
            if self._work is not None and self._loop is not None:
                self._loop.call_soon_threadsafe(self._work.stop if self._is_stopped else self._work.drain)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """A run's progress, spend and errors at one moment.

    Attributes:
        status: The numbers of scenarios and calls.
        by_model: The usage of the calls by model.
        bounds: The run's status relative to its limits, and the failed attempts at calls.
        unparsed: The number of unparsed judgements in the run's own set.
        causes: The causes of failed scenarios, the most frequent first; at most ten.
        check_errors: The errors of checks, by metric.
        is_played: Whether another process is writing the run now.
    """

    status: Status
    by_model: Mapping[str, Usage]
    bounds: BudgetStatus
    unparsed: int
    causes: Sequence[FailureCause]
    check_errors: Sequence[CheckErrors]
    is_played: bool

    @classmethod
    def of(cls, run: RunFile) -> RunProgress:
        """Read the progress from a run's file."""
        sets = run.judgement_sets()
        return cls(
            status=run.status(),
            by_model=run.usage_by_model(),
            bounds=BudgetStatus.of(run),
            unparsed=run.unparsed(sets[0].name) if sets else 0,
            causes=run.failure_causes(),
            check_errors=run.check_errors(),
            is_played=is_written_by_another(run.path),
        )


@dataclass(frozen=True, slots=True)
class Notice:
    """A message that planning reported, such as a repair of the source data.

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.Notice):
        ...         print(event.text)
        >>> run = dialoom.resume("run.db", on_event=on_event)
    """

    text: str


@dataclass(frozen=True, slots=True)
class Planned:
    """A new run's file was created, with its plan.

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.Planned):
        ...         print(event.scenarios, "scenarios in", event.path)
        >>> run = dialoom.resume("run.db", on_event=on_event)

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

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.Retrying):
        ...         print(event.failed, "failed scenarios are retried")
        >>> run = dialoom.resume("run.db", on_event=on_event)

    Attributes:
        failed: The number of failed scenarios that continue; for a later set of judgements, the number of failed
            judgings.
        too_long: The number of failed scenarios that do not continue, because a request exceeded its model's context
            window and no other window was given.
        anew: The number of scenarios that restart from their beginning. Their judgements are deleted.
        unparsed: The number of scenarios whose unparsed judgements are repeated.
        judging: The set of judgements, if there is one.
    """

    failed: int | None = None
    too_long: int = 0
    anew: int | None = None
    unparsed: int | None = None
    judging: str | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """Playing or judging has begun.

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.Started):
        ...         assert event.action == "playing"
        >>> run = dialoom.resume("run.db", on_event=on_event)

    Attributes:
        path: The run's file.
        action: `playing`, `judging` or `judging again`.
        scenarios: The number of scenarios to play or judge.
        judging: The set to which the judgements are added, if scenarios are judged.
    """

    path: Path
    action: str
    scenarios: int
    judging: str | None = None


@dataclass(frozen=True, slots=True)
class ScenarioDone:
    """A scenario is done (or judged).

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.ScenarioDone):
        ...         print(event.number, event.id)
        >>> run = dialoom.resume("run.db", on_event=on_event)

    Attributes:
        number: Its number in the plan, from 1.
        id: Its id.
    """

    number: int
    id: str


@dataclass(frozen=True, slots=True)
class ScenarioFailed:
    """A scenario failed; the others continue.

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.ScenarioFailed):
        ...         print(event.id, event.error)
        >>> run = dialoom.resume("run.db", on_event=on_event)

    Attributes:
        number: Its number in the plan, from 1.
        id: Its id.
        fault: The party at fault.
        error: The error message.
        cause: A string that is the same for all scenarios that failed with the same permanent error of a provider.
    """

    number: int
    id: str
    fault: Fault
    error: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class NodeMessage:
    """A node's message about a long-running operation. It is not stored.

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.NodeMessage):
        ...         print(event.id, event.text)
        >>> run = dialoom.resume("run.db", on_event=on_event)
    """

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """The work stops early, without being asked to: no new scenario begins.

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.Stopping):
        ...         print("stopped:", event.reason)
        >>> run = dialoom.resume("run.db", on_event=on_event)

    Attributes:
        fault: `budget` if the budget is used up, `provider, away` if a provider was unavailable for too long,
            `provider, permanent` if several scenarios in a row failed with the same error; `None` if too many failed.
        reason: The reason, in a sentence.
        setting: The setting that limits the work.
    """

    fault: Fault | None
    reason: str
    setting: str | None = None


@dataclass(frozen=True, slots=True)
class Worked:
    """All workers of the run have finished.

    Attributes:
        seconds: The time from the first lease to the end.
        busy: For each worker, the number of seconds during which it had scenarios in progress.
    """

    seconds: float
    busy: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The operation has ended. This is the last event; `retry`, which may play and then judge, emits it twice.

    Example:
        >>> def on_event(event):
        ...     if isinstance(event, dialoom.Ended):
        ...         assert event.failed == 0
        >>> run = dialoom.resume("run.db", on_event=on_event)

    Attributes:
        path: The run's file.
        done: The number of scenarios that succeeded.
        failed: The number of scenarios that failed.
        is_complete: Whether every scenario was reached; false after an interrupt, or if the work stopped early.
        stopped: The reason if the work stopped by itself.
        judging: The set of judgements, if scenarios were judged.
    """

    path: Path
    done: int
    failed: int
    is_complete: bool
    stopped: Stopping | None = None
    judging: str | None = None


Event: TypeAlias = (
    Notice
    | Planned
    | Retrying
    | Started
    | ScenarioDone
    | ScenarioFailed
    | NodeMessage
    | ProviderUnreachable
    | ProviderReachable
    | Stopping
    | Worked
    | Ended
)
"""Any event, for listeners: `def on_event(event: dialoom.Event) -> None: ...`."""


_MIN_FINISHED = 20
"""The number of finished scenarios below which no share of failures is computed."""

MAX_CONSECUTIVE_ERRORS = 5
"""The number of scenarios in a row with the same permanent error of a provider after which the work stops."""


class StopRule:
    """A counter of results that forwards them to a listener, and stops the work when continuing is pointless.

    Args:
        on_event: Called with each result.
        fail_on_error: The number of failures that stops the work, or the percentage, such as `5%`; `None` for neither.
        drain: Called to stop the work gracefully, as an interrupt does.

    Attributes:
        done: The number of scenarios that succeeded.
        failed: The number of scenarios that failed.
        stopped: The reason if the work stopped by itself.
        is_draining: Whether the work was asked to stop, by the user or by this rule.
    """

    def __init__(
        self, on_event: Callable[[Event], None], fail_on_error: int | str | None, drain: Callable[[], None]
    ) -> None:
        self._on_event = on_event
        self._limit = None if fail_on_error is None else str(fail_on_error)
        self._drain = drain
        self._cause: str | None = None
        self._consecutive_failures = 0
        self.done = self.failed = 0
        self.stopped: Stopping | None = None
        self.is_draining = False

    def count(self, result: ScenarioDone | ScenarioFailed) -> None:
        """Count a result; stop the work if too many scenarios failed, or several in a row with one permanent error."""
        if isinstance(result, ScenarioDone):
            self.done += 1
            self._cause = None
        else:
            self.failed += 1
            self._consecutive_failures = self._consecutive_failures + 1 if result.cause == self._cause else 1
            self._cause = result.cause
        self._on_event(result)
        if (reason := self._describe_excess()) is not None:
            self.stop(Stopping(None, f"{reason} failed (fail_on_error {self._limit})", "fail_on_error"))
        elif (
            isinstance(result, ScenarioFailed)
            and result.cause is not None
            and self._consecutive_failures >= MAX_CONSECUTIVE_ERRORS
        ):
            message = (
                f"{MAX_CONSECUTIVE_ERRORS} scenarios in a row failed with the same permanent error: {result.error}"
            )
            self.stop(Stopping(Fault.PROVIDER_PERMANENT, message))

    def _describe_excess(self) -> str | None:
        """Return the number of failures in words if it reaches the limit; otherwise `None`."""
        finished = self.failed + self.done
        if self._limit is None:
            return None
        if not self._limit.endswith("%"):
            return pluralize(self.failed, "scenarios") if self.failed >= int(self._limit) else None
        is_exceeded = finished >= _MIN_FINISHED and self.failed * 100 > float(self._limit[:-1]) * finished
        return f"{self.failed:,} of {finished:,} scenarios" if is_exceeded else None

    def stop(self, stopping: Stopping) -> None:
        """Stop the work gracefully, as an interrupt does. Only the first reason is kept."""
        if not self.is_draining:
            self.stopped = stopping
            self._on_event(stopping)
            self._drain()
