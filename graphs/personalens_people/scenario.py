"""One person to be made."""

from __future__ import annotations

from typing import Any

from dialoom.graphs.scenario import Scenario
from dialoom.graphs.shared import Shared
from dialoom.personas import Demographics
from dialoom.personas.schema import DomainSchema


class PersonScenario(Scenario):
    """All that making a person needs, so that a run never reads a file again.

    Attributes:
        demographics: The person's, as drawn.
        domains: The affinity schema.

    All others are as the options say.
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

    @property
    def loads(self) -> tuple[str, ...]:
        """An embedder that runs here, unless it is the one that only counts words."""
        return (self.embedder,) if self.embedder.startswith("st:") else ()

    def domain(self, name: str) -> DomainSchema:
        """A domain of the schema."""
        return next(each for each in self.domains.value if each.domain == name)

    def facets(self) -> dict[str, Any]:
        """The person."""
        return {"user": self.user}

    def described(self) -> dict[str, Any]:
        """With the demographics, and what was chosen."""
        chosen = self.model_dump(mode="json", exclude={"demographics", "domains"})
        return {**self.demographics.model_dump(), **self.facets(), **chosen}
