"""Generated people: options, scenarios (one person each), and the reply types of the writer and the judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, field_validator, model_validator

from dialoom.graphs import AbsolutePath, EmbedderName, RecipeOptions, Shared
from dialoom.graphs.embedding import EmbeddingScenario
from dialoom.inputs import Frozen
from dialoom.personas import EMBEDDER_FORMS, Demographics, Situation
from dialoom.personas.profile import DomainSchema, is_withheld

TWIN_THRESHOLD = 0.8
"""Two people whose similarity is higher than this have nearly the same preferences.

People who share only a few of the schema's values are far less similar.
"""


class PeopleOptions(RecipeOptions):
    """The options of the recipe `personalens-people`."""

    people: int = Field(40, ge=1, description="Number of people.")
    demographics: AbsolutePath | None = Field(
        None, description="Tables of weights (.toml) or people (.csv) to draw from; by default the shipped tables."
    )
    affinity_schema: AbsolutePath | None = Field(
        None, description="Domains and preferences, as a schema.json; by default the shipped one."
    )
    single_tasks: int = Field(4, ge=0, le=40, description="Number of tasks per domain.")
    multi_tasks: int = Field(10, ge=0, le=40, description="Number of tasks over several domains.")
    repairs: int = Field(1, ge=0, le=5, description="Maximum number of rewrites of a rejected draft.")
    open_values: bool = Field(False, description="Accept values that the schema does not list, as the paper does.")
    threshold: float = Field(
        TWIN_THRESHOLD,
        ge=0.0,
        le=1.0,
        description="Leave out people whose similarity to an earlier person is higher than this, 0 to 1.",
    )
    embedder: EmbedderName = Field("lexical", description=f"Embedder for comparing people: {EMBEDDER_FORMS}.")

    @model_validator(mode="after")
    def _some_tasks(self) -> PeopleOptions:
        if not self.single_tasks and not self.multi_tasks:
            raise ValueError("single_tasks must be at least 1 without multi_tasks, got 0")
        return self


class PersonScenario(EmbeddingScenario):
    """A person, with everything needed to write the person's data, so that a started run does not read files again.

    Attributes:
        demographics: The drawn demographics.
        domains: The affinity schema.

    All other attributes have the same meaning as the options with the same names.
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


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Interests(Frozen):
    """The domains that are somebody's."""

    domains: Annotated[list[Text], Field(min_length=1)]


class WrittenPreference(Frozen):
    """A preference's values: one, or several where the schema says so."""

    name: Text
    values: list[Text]


class WrittenPreferences(Frozen):
    """Somebody's preferences in a domain."""

    preferences: Annotated[list[WrittenPreference], Field(min_length=1)]


class Contradiction(Frozen):
    """A preference that the demographics, or another preference, rule out."""

    domain: Text
    preference: Text
    reason: Text


class Contradictions(Frozen):
    """What does not go together in a person."""

    contradictions: list[Contradiction]


class ForeignPassages(Frozen):
    """Passages of a summary that tell of preferences which the person does not have."""

    passages: list[Text]


class WrittenTask(Frozen):
    """A task, before anybody is given it; without domains if it stays in one."""

    description: Text
    intent: Text
    goal: Text
    preferences: Annotated[list[Text], Field(min_length=1)]
    domains: list[Text] = []


class WrittenTasks(Frozen):
    """The tasks of a domain, or those over several."""

    tasks: Annotated[list[WrittenTask], Field(min_length=1)]


class WrittenSituation(Frozen):
    """Where somebody is when they have a task; the choices are those of the paper's figure 11."""

    location: Text
    device: Literal["Smartphone", "Laptop", "Smart speaker", "Tablet", "Smartwatch"]
    time_of_day: Literal["Morning", "Afternoon", "Evening", "Night"]
    day_of_week: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    environment: Literal["Quiet", "Noisy"]

    @field_validator("location")
    @classmethod
    def _stated_location(cls, location: str) -> str:
        if is_withheld(location):
            raise ValueError("is empty or meaningless; give a town, or a place in one")
        return location

    def plain(self) -> dict[str, str]:
        """Return the situation in the form of the release."""
        return Situation(**self.model_dump()).model_dump(by_alias=True)


REPLY_TYPES: Mapping[str, type[BaseModel]] = {
    "person-interests": Interests,
    "person-preferences": WrittenPreferences,
    "person-contradictions": Contradictions,
    "foreign-passages": ForeignPassages,
    "written-tasks": WrittenTasks,
    "written-situation": WrittenSituation,
}
