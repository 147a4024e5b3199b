"""One pool to be filled."""

from __future__ import annotations

from typing import Any

from dialoom.graphs.scenario import Scenario
from dialoom.personas import PLURALS, PoolKind

from .options import PoolOptions


class PoolScenario(Scenario):
    """All that filling a pool needs; the seeds are part of it, so that a run never reads their file again."""

    kind: PoolKind
    target: int
    threshold: float
    embedder: str
    batch: int
    examples: int
    patience: int
    least: int
    seeds: tuple[str, ...]

    @classmethod
    def of(cls, options: PoolOptions, seeds: list[str]) -> PoolScenario:
        """The scenario of these options and seeds."""
        chosen = options.model_dump(include={"kind", "threshold", "embedder", "batch", "examples", "patience", "least"})
        return cls(target=options.size, seeds=tuple(seeds), **chosen)

    @property
    def label(self) -> str:
        """What is written, and how many at most."""
        return f"{self.target} {PLURALS[self.kind]}"

    @property
    def loads(self) -> tuple[str, ...]:
        """An embedder that runs here, unless it is the one that only counts words."""
        return (self.embedder,) if self.embedder.startswith("st:") else ()

    def facets(self) -> dict[str, Any]:
        """Everything but the seeds, of which only the number is told."""
        return {**self.model_dump(mode="json", exclude={"seeds"}), "seeds": len(self.seeds)}
