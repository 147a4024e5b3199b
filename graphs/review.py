"""A reviewer of simulated users: verdicts on faults that rules cannot detect, kept beside a run's judgements."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from dialoom.graphs.capabilities import WithGate
from dialoom.graphs.judge import Case, Graph, Judge
from dialoom.graphs.outcome import REVIEWER, USER, Outcome
from dialoom.graphs.recipe import Recipe
from dialoom.graphs.scenario import Scenario

PROMPT = "gate/review"
REVIEWED: Mapping[str, str] = {
    "contradicts_persona": "the user contradicts who they are",
    "invents_facts": "the user invents facts of the task",
    "gives_up": "the user gives up although the goal is open",
    "content_too_soon": "the user is content although it is not done",
    "reveals": "the user gives away what only their instructions say",
}
"""The faults that a reviewer looks for, with one verdict each; true means that the fault is present."""


class Review(Recipe):
    """A recipe that only reviews another recipe's conversations.

    Args:
        recipe: The recipe of the conversations.
    """

    name = "review"
    summary = "What is wrong in how simulated users were played."
    roles: ClassVar[Mapping[str, float]] = {REVIEWER: 0.0}
    prompts = ()

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self.judges = [
            Judge(kind, prompt=PROMPT, role=REVIEWER, target=USER, node=kind, cases=partial(self._case, kind=kind))
            for kind in REVIEWED
        ]

    def _case(self, scenario: Any, outcome: Outcome, kind: str) -> Iterator[Case]:
        """Yield the conversation and its user's instructions; nothing for a scenario without a conversation."""
        if outcome.messages:
            history = [{"speaker": line.role, "content": line.spoken} for line in outcome.messages]
            about = dict(WithGate.of(self._recipe).played_by(scenario))
            yield Case(None, {"user": USER, "about": about, "history": history, "fault": kind})

    def scenarios(self, options: Any, draw: random.Random, note: Callable[[str], None]) -> Iterator[Scenario]:
        """Return the reviewed recipe's scenarios."""
        return self._recipe.scenarios(options, draw, note)

    def graph(self, options: Any) -> Graph:
        """Return the reviewed recipe's graph."""
        return self._recipe.graph(options)

    def initial(self, scenario: Any) -> dict[str, Any]:
        """Return the reviewed recipe's initial state."""
        return self._recipe.initial(scenario)

    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the reviewed recipe's outcome."""
        return self._recipe.outcome(scenario, state, failed)
