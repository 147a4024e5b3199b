"""What a user chooses for a source that models write."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, field_validator

from dialoom.graphs.recipe import RecipeOptions
from dialoom.personas.apollo.source.scripted import ERRANDS, PAIRS_OF_SET, SETS

Until = Literal["users", "preferences", "sessions", "complete"]
UNTIL: tuple[Until, ...] = get_args(Until)


class WriteOptions(RecipeOptions):
    """The options of the recipe `apollo-write`."""

    users: int = Field(2, ge=1, le=1000, description="How many users; 20 make the paper's size.")
    pairs: int = Field(
        PAIRS_OF_SET,
        ge=1,
        le=12,
        description=f"Pairs of a session and a query for each of the {SETS} preferences that a user has for each flow.",
    )
    errands: int = Field(
        ERRANDS, ge=1, le=20, description="Sessions that tell no preference, for each user and unrelated tool."
    )
    offers: int = Field(
        3, ge=1, le=10, description="Preferences for a flow come in threes; so many threes are offered to choose from."
    )
    rewrites: int = Field(2, ge=0, le=5, description="How often something is written again that a check refuses.")
    verify_leaks: int = Field(
        0,
        ge=0,
        le=20,
        description="So often a model answers each query without the history; if it is right once, the pair is out.",
    )
    drafts: Path | None = Field(
        None, description="Go on from a folder of drafts that was exported, accepted and mended by people."
    )
    until: Until = Field(
        "complete", description=f"Stop after a stage, to look at the drafts and mend them: {', '.join(UNTIL)}."
    )
    personas: Path | None = Field(
        None, description="A JSON list of personas, from which users are made; without it, the 100 shipped ones."
    )
    world: int = Field(0, description="The seed of the world that the tools look into.")

    @field_validator("drafts", "personas")
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser().absolute()
