"""One topic for which pairs are built."""

from __future__ import annotations

from typing import Any, Literal

from dialoom.graphs.scenario import Scenario
from dialoom.graphs.shared import Shared
from dialoom.personas.preferences import Draft, PairTopic, RatedPair

from .options import PairsOptions, Until


class PairsScenario(Scenario):
    """All that building a topic's pairs needs, so that a run never reads a file again.

    Attributes:
        topic: The topic.
        drafts: Those to go on from; then no pairs are written.
        answerers: The roles that answer without knowing the preference.
        rated: The rater's examples.
        personas: Who may tell a preference.

    All others are as the options say.
    """

    topic: PairTopic
    drafts: tuple[Draft, ...] = ()
    until: Until
    per_call: int
    calls: int
    answerers: tuple[str, ...]
    least_rate: float
    least_probability: Literal["low", "medium", "high"]
    least_difficulty: Literal["low", "high"]
    keep: int
    threshold: float
    embedder: str
    candidates: int
    shortest: int
    longest: int
    rated: Shared[tuple[RatedPair, ...]]
    personas: Shared[tuple[str, ...]]

    @classmethod
    def of(
        cls,
        options: PairsOptions,
        topic: PairTopic,
        drafts: tuple[Draft, ...],
        rated: Shared[tuple[RatedPair, ...]],
        personas: Shared[tuple[str, ...]],
    ) -> PairsScenario:
        """The scenario of a topic."""
        plain = options.model_dump(include=_AS_CHOSEN)
        calls = 0 if drafts else options.calls
        return cls(
            topic=topic,
            drafts=drafts,
            calls=calls,
            answerers=options.answering(),
            rated=rated,
            personas=personas,
            **plain,
        )

    @property
    def label(self) -> str:
        """The topic, and the stage after which it ends, if that is not the last."""
        return self.topic.topic if self.until == "complete" else f"{self.topic.topic} {self.until}"

    @property
    def loads(self) -> tuple[str, ...]:
        """An embedder that runs here, unless it is the one that only counts words."""
        return (self.embedder,) if self.embedder.startswith("st:") else ()

    def facets(self) -> dict[str, Any]:
        """The topic, and until where."""
        return {"topic": self.topic.topic, "until": self.until}

    def described(self) -> dict[str, Any]:
        """With what was chosen, and how many drafts it began with."""
        chosen = self.model_dump(mode="json", include={*_AS_CHOSEN, "calls", "answerers"})
        return {**self.facets(), "description": self.topic.description, "drafts": len(self.drafts), **chosen}


_AS_CHOSEN = {
    "until",
    "per_call",
    "least_rate",
    "least_probability",
    "least_difficulty",
    "keep",
    "threshold",
    "embedder",
    "candidates",
    "shortest",
    "longest",
}
