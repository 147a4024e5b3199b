"""What a user chooses for making people: how many, from which demographics and schema, and how strictly."""

from __future__ import annotations

from pydantic import Field, model_validator

from dialoom.graphs.option_types import AbsolutePath, EmbedderName
from dialoom.graphs.recipe import RecipeOptions
from dialoom.personas import EMBEDDERS

TWIN_THRESHOLD = 0.8
"""Above it, two people like nearly the same: people who merely share a few listed values are far below."""


class PeopleOptions(RecipeOptions):
    """The options of the recipe `personalens-people`."""

    people: int = Field(40, ge=1, description="How many people.")
    demographics: AbsolutePath | None = Field(
        None, description="Tables of weights (.toml) or people (.csv) to draw from; without it, the shipped tables."
    )
    affinity_schema: AbsolutePath | None = Field(
        None, description="A schema.json of domains and preferences; without it, the shipped one."
    )
    single_tasks: int = Field(4, ge=0, le=40, description="Tasks in each domain.")
    multi_tasks: int = Field(10, ge=0, le=40, description="Tasks over several domains.")
    repairs: int = Field(1, ge=0, le=5, description="How often what a check finds wrong is made again.")
    open_values: bool = Field(
        False, description="Take values that the schema does not list, as the paper does; otherwise they are wrong."
    )
    threshold: float = Field(
        TWIN_THRESHOLD,
        ge=0.0,
        le=1.0,
        description="Leave out who is more similar to somebody before than this, 0 to 1.",
    )
    embedder: EmbedderName = Field("lexical", description=f"What tells how similar people are: {EMBEDDERS}.")

    @model_validator(mode="after")
    def _some_tasks(self) -> PeopleOptions:
        if not self.single_tasks and not self.multi_tasks:
            raise ValueError("single_tasks and multi_tasks are both 0; nobody would have anything to do")
        return self
