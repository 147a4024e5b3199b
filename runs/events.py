"""What happens while work is under way, as whoever watches it is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dialoom.roles.gateway.presence import ProviderAway, ProviderBack

from .config import RunConfig
from .errors import Fault


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
