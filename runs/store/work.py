"""What there is to do with a scenario: play it, judge what came of it, or make its unparsed judgements again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dialoom.graphs import Outcome, Scenario


@dataclass(frozen=True, slots=True)
class PlayWork:
    """A scenario to be played.

    Attributes:
        position: Its place in the plan, from 0.
        scenario: The scenario.
        thread: The thread of its checkpoints.
        sample: 0; another number gets replies of its own instead of those that the ledger holds.
    """

    position: int
    scenario: Scenario
    thread: str
    sample: int = 0


@dataclass(frozen=True, slots=True)
class JudgeWork:
    """A finished scenario that a set of judgements has none of yet.

    Attributes:
        position: Its place in the plan, from 0.
        scenario: The scenario.
        thread: The thread of the judging's checkpoints.
        judgement_set: The name of the set that the judgements go to.
        outcome: What came of the scenario, without judgements.
    """

    position: int
    scenario: Scenario
    thread: str
    judgement_set: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class RejudgeWork:
    """A finished scenario whose unparsed judgements in a set are to be made again.

    Attributes:
        position: Its place in the plan, from 0.
        scenario: The scenario.
        thread: The thread of the judging's checkpoints.
        judgement_set: The name of the set.
        sample: Has replies of its own, so that the judge is really asked again.
        outcome: What came of the scenario, with those judgements of the set that stay.
    """

    position: int
    scenario: Scenario
    thread: str
    judgement_set: str
    sample: int
    outcome: Outcome


Work: TypeAlias = PlayWork | JudgeWork | RejudgeWork
"""Any of these."""
