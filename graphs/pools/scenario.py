"""Options of a pool, and its scenario."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from dialoom.graphs.embedding import EmbeddedScenario
from dialoom.graphs.option_types import AbsolutePath, EmbedderName
from dialoom.graphs.recipe import RecipeOptions
from dialoom.personas import EMBEDDERS, PLURALS, THRESHOLD, PoolKind

PAPER_SIZES = {"profile": 330, "personality": 71}
"""The final sizes of the paper's pools (ALOE, section 2.1)."""


class PoolOptions(RecipeOptions):
    """The options of the recipe `persona-pool`."""

    kind: PoolKind = Field("profile", description="What to write: profile or personality.")
    target: int | None = Field(
        None, ge=1, description="Stop at this many, seeds included. [default: 330 profiles, 71 personalities]"
    )
    threshold: float = Field(
        THRESHOLD,
        ge=0.0,
        le=1.0,
        description="Keep a new text if nothing in the pool is more similar than this, 0 to 1.",
    )
    embedder: EmbedderName = Field("lexical", description=f"What tells how similar texts are: {EMBEDDERS}.")
    seeds: AbsolutePath | None = Field(None, description="A pool to start from; without it, the shipped seeds.")
    batch: int = Field(20, ge=1, description="Texts asked for in a round.")
    examples: int = Field(5, ge=1, description="Texts of the pool shown to the writer in a round.")
    patience: int = Field(5, ge=1, description="Stop after this many rounds in a row that kept too few.")
    least: int = Field(1, ge=1, description="What a round must keep so as not to count against the patience.")

    @property
    def size(self) -> int:
        """The target size."""
        return self.target or PAPER_SIZES[self.kind]


class PoolScenario(EmbeddedScenario):
    """A pool with everything that filling it needs, including the seeds, so that a run never reads their file again."""

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
        """Return the scenario of these options and seeds."""
        chosen = options.model_dump(include={"kind", "threshold", "embedder", "batch", "examples", "patience", "least"})
        return cls(target=options.size, seeds=tuple(seeds), **chosen)

    @property
    def label(self) -> str:
        """The kind of texts and the target size."""
        return f"{self.target} {PLURALS[self.kind]}"

    def facets(self) -> dict[str, Any]:
        """Return all fields; of the seeds only their number."""
        return {**self.model_dump(mode="json", exclude={"seeds"}), "seeds": len(self.seeds)}
