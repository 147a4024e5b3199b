"""How a run gets on, whoever plays it: what is read again and again while it is watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .bounds import RunBounds
from .store import RunFile, Status, Usage
from .store.lock import is_written_by_another
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
