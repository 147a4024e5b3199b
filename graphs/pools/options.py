"""What a user chooses for a pool."""

from __future__ import annotations

from pydantic import Field

from dialoom.graphs.option_types import AbsolutePath, EmbedderName
from dialoom.graphs.recipe import RecipeOptions
from dialoom.personas import EMBEDDERS, THRESHOLD, PoolKind

PAPER_SIZES = {"profile": 330, "personality": 71}
"""The sizes with which the paper's pools ended (ALOE, section 2.1)."""


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
        """The size at which to stop."""
        return self.target or PAPER_SIZES[self.kind]
