"""Events, progress and stop rules of work under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dialoom.roles.gateway.availability import ProviderAway, ProviderBack

from .budget_status import RunBounds
from .config import RunConfig
from .errors import Fault
from .limits import FailOnError
from .store import RunFile, Status, Usage
from .store.connections import is_written_by_another
from .store.status import FailureCause


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is, what it has taken, and what went wrong, at one moment.

    Attributes:
        status: Scenarios and calls.
        by_model: What the calls took, by model.
        bounds: How it stands to its budget, and what providers turned away.
        unparsed: Judgements of its own set whose replies could not be read.
        causes: Of what its failed scenarios failed, the most frequent first; no more than ten.
        is_played: Whether another process writes it now.
    """

    status: Status
    by_model: Mapping[str, Usage]
    bounds: RunBounds
    unparsed: int
    causes: Sequence[FailureCause]
    is_played: bool

    @classmethod
    def of(cls, run: RunFile) -> RunProgress:
        """Read from a run's file."""
        sets = run.judgement_sets()
        unparsed = run.unparsed(sets[0].name) if sets else 0
        is_played = is_written_by_another(run.path)
        return cls(run.status(), run.usage_by_model(), RunBounds.of(run), unparsed, run.failure_causes(), is_played)


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that planning found worth saying, such as what was mended in the source."""

    text: str


@dataclass(frozen=True, slots=True)
class Planned:
    """A new run's file is there, with its plan.

    Attributes:
        path: The run's file.
        config: What the run was told.
        scenarios: How many there are.
    """

    path: Path
    config: RunConfig
    scenarios: int


@dataclass(frozen=True, slots=True)
class Retrying:
    """What had not come out well is to be done again.

    Attributes:
        failed: Failed scenarios (or, of a later set of judgements, judgings) that go on.
        too_long: Those that do not: a request was longer than its model reads, and no window was given now.
        anew: Scenarios that start from their beginning; what was judged of them is dropped.
        unparsed: Scenarios whose unparsed judgements are made again.
        judging: The set of judgements, if it is one.
    """

    failed: int | None = None
    too_long: int = 0
    anew: int | None = None
    unparsed: int | None = None
    judging: str | None = None


@dataclass(frozen=True, slots=True)
class Began:
    """Work begins.

    Attributes:
        path: The run's file.
        action: `playing`, `judging` or `judging again`.
        scenarios: How many are to be worked on.
        judging: The set of judgements that they go to, if it is a judging.
    """

    path: Path
    action: str
    scenarios: int
    judging: str | None = None


@dataclass(frozen=True, slots=True)
class ScenarioDone:
    """A scenario is done (or judged).

    Attributes:
        number: Its place in the plan, from 1.
        id: Its id.
    """

    number: int
    id: str


@dataclass(frozen=True, slots=True)
class ScenarioFailed:
    """A scenario failed; the others go on.

    Attributes:
        number: Its place in the plan, from 1.
        id: Its id.
        fault: Whose fault it is.
        error: What went wrong.
        cause: Equal for scenarios that failed by the same permanent error of a provider; see `lasting_cause`.
    """

    number: int
    id: str
    fault: Fault
    error: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class NodeSaid:
    """A node has something to say of a long piece of work. Nothing of it is kept."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """The work is stopped early, of its own accord: nothing new begins.

    Attributes:
        fault: `budget` if it is used up, `provider, away` if there is no more patience with a provider, `provider,
            permanent` if one scenario after the other meets the same error; `None` if too many scenarios failed.
        reason: Why, in a sentence.
        setting: The option that bounds the work.
    """

    fault: Fault | None
    reason: str
    setting: str | None = None


@dataclass(frozen=True, slots=True)
class Worked:
    """Workers are done.

    Attributes:
        seconds: From the first deal to the end.
        busy: Seconds of these in which each worker had scenarios under way.
    """

    seconds: float
    busy: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """A piece of work is over. The last event; `retry` may have two pieces.

    Attributes:
        path: The run's file.
        done: Scenarios that came out.
        failed: Scenarios that failed.
        is_complete: Whether every scenario was reached: not after an interrupt, nor when the work was stopped.
        stopped: Why it was stopped of its own accord, if it was.
        judging: The set of judgements, if it was a judging.
    """

    path: Path
    done: int
    failed: int
    is_complete: bool
    stopped: Stopping | None = None
    judging: str | None = None


Event: TypeAlias = (
    "Noted | Planned | Retrying | Began | ScenarioDone | ScenarioFailed | NodeSaid | ProviderAway | ProviderBack | "
    "Stopping | Worked | Ended"
)


SAME_IN_A_ROW = 5
"""So many scenarios in a row that fail by the same permanent error of a provider stop the work."""


class WorkTally:
    """Counts results, passes them on, and stops the work when going on makes no sense.

    Args:
        on_event: Is told of each result.
        fail_on_error: When failures stop the work.
        drain: Has the work stop as an interrupt does.

    Attributes:
        done: Scenarios that came out.
        failed: Scenarios that failed.
        stopped: Why the work stopped of its own accord.
        is_draining: Whether it was asked to stop, by anybody.
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
        """Stop as an interrupt does; the first reason is the one that counts."""
        if not self.is_draining:
            self.stopped = stopping
            self._on_event(stopping)
            self._drain()
