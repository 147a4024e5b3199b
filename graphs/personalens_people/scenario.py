"""Options for making people, and their scenarios: one person each."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from dialoom.graphs.embedding import EmbeddedScenario
from dialoom.graphs.option_types import AbsolutePath, EmbedderName
from dialoom.graphs.recipe import RecipeOptions
from dialoom.graphs.shared import Shared
from dialoom.personas import EMBEDDERS, Demographics
from dialoom.personas.profile import DomainSchema

TWIN_THRESHOLD = 0.8
"""Above it, two people have nearly the same preferences; people who share a few listed values are far below."""


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


class PersonScenario(EmbeddedScenario):
    """A person with everything that writing the person's data needs, so that a run never reads a file again.

    Attributes:
        demographics: The drawn demographics.
        domains: The affinity schema.

    All other attributes are the options'.
    """

    demographics: Demographics
    domains: Shared[tuple[DomainSchema, ...]]
    single_tasks: int
    multi_tasks: int
    repairs: int
    open_values: bool
    threshold: float
    embedder: str

    @property
    def user(self) -> str:
        """The person's id."""
        return self.demographics.user_id

    @property
    def label(self) -> str:
        """The person's id, age and country."""
        return f"{self.user} {self.demographics.age} {self.demographics.reside_country}"

    def domain(self, name: str) -> DomainSchema:
        """Return a domain of the schema."""
        return next(each for each in self.domains.value if each.domain == name)

    def facets(self) -> dict[str, Any]:
        """Return the person's id."""
        return {"user": self.user}

    def described(self) -> dict[str, Any]:
        """Return the demographics, and the options."""
        chosen = self.model_dump(mode="json", exclude={"demographics", "domains"})
        return {**self.demographics.model_dump(), **self.facets(), **chosen}
