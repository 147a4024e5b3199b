"""PrefEval items: one pair in one form, with one method, after a number of unrelated turns."""

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
        method: The way in which the assistant is helped.
        turns: The number of distractor turns (n).
        tokens: The tokens before the question, without the model's own replies to preferences.
        token_limit: The requested length in tokens; 0 if the length was given in turns.
        counter: The name of the token counter.
        position: The share of the distractors before the preference.
        extras: Explicit preferences of other topics, spread evenly; in the conflict setting the one that comes first.
        arm: The arm of the conflict setting; empty outside it.
        retrieved: The number of messages that rag retrieves; 0 for other methods.
        embedder: The embedder of rag; empty for other methods.
        order: The indices of the stored options in the order shown; empty for generation.
        distractors: The first n turns of the pool, shared by all items of one length.
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
        """Return the facets, and the texts of the pair."""
        return {
            **self.facets(),
            "counter": self.counter,
            "preference": self.pair.preference,
            "question": self.pair.question,
            "explanation": self.pair.explanation,
        }
