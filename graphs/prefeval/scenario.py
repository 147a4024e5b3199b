"""A PrefEval item: one pair, told in one form, asked about by one method after so much unrelated talk."""

from __future__ import annotations

from typing import Any

from dialoom.graphs.outcome import Line
from dialoom.graphs.scenario import Scenario
from dialoom.graphs.shared import Shared
from dialoom.personas.preferences import PreferencePair

from .options import Arm, Method, Task


class PrefEvalScenario(Scenario):
    """One item.

    Attributes:
        pair: Preference and question, in the item's form.
        task: A free answer, or one of four options.
        method: How the assistant is helped.
        turns: How many distractor turns there are (n).
        tokens: The tokens of all that precedes the question, without the model's own replies to preferences.
        token_limit: The length asked for, where it was given in tokens; else 0.
        counter: What counted them.
        position: The share of the distractors that stands before the preference's block.
        extras: Explicit preferences of other topics, spread evenly; in the conflict setting the one that comes first.
        arm: Which arm of the conflict setting it is; empty outside it.
        retrieved: How many messages rag retrieves; 0 for the other methods.
        embedder: What rag compares texts with; empty for the other methods.
        order: The places of the stored options in the order in which they are shown; empty for generation.
        distractors: The first n turns of the pool, which all items of one length share.
    """

    pair: PreferencePair
    task: Task
    method: Method
    turns: int
    tokens: int
    token_limit: int = 0
    counter: str
    position: float = 0.0
    extras: tuple[PreferencePair, ...] = ()
    arm: Arm = ""
    retrieved: int = 0
    embedder: str = ""
    order: tuple[int, ...] = ()
    distractors: Shared[tuple[Line, ...]]

    @property
    def label(self) -> str:
        """Topic and row, form, method and length, e.g. `travel_hotel-3 explicit reminder 8`."""
        parts = [self.pair.id, self.pair.form, self.method, str(self.turns), self.arm]
        return " ".join([*(part for part in parts if part), *(["choose"] if self.task == "classification" else [])])

    def facets(self) -> dict[str, Any]:
        """Return the axes of the tables."""
        return {
            "topic": self.pair.topic,
            "index": self.pair.index,
            "form": self.pair.form,
            "task": self.task,
            "method": self.method,
            "turns": self.turns,
            "tokens": self.tokens,
            "token_limit": self.token_limit,
            "position": self.position,
            "preferences": 1 + len(self.extras),
            "arm": self.arm,
            "retrieved": self.retrieved,
        }

    def described(self) -> dict[str, Any]:
        """Return the facets, and what preference and question say."""
        return {
            **self.facets(),
            "counter": self.counter,
            "preference": self.pair.preference,
            "question": self.pair.question,
            "explanation": self.pair.explanation,
        }
