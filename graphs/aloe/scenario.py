"""Options of a set of trees, and their scenarios: a persona, and the tree's size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field, model_validator

from dialoom.graphs.option_types import AbsolutePath
from dialoom.graphs.recipe import RecipeOptions
from dialoom.graphs.scenario import Scenario
from dialoom.personas.persona import Persona, combined, read_personas
from dialoom.personas.pools import shipped_seeds

SPOKEN = 300
"""The most tokens of users' and assistants' messages (the release's limit); structured replies have no limit."""
_SAMPLES = 20


class PersonaOptions(RecipeOptions):
    """The personas, and the number of rounds."""

    personas: AbsolutePath | None = Field(
        None, description="JSONL of personas, with profile and personality; without it, the shipped samples."
    )
    rounds: int = Field(10, ge=1, le=100, description="Messages of the user in each conversation.")
    limit: int | None = Field(None, ge=1, description="Take no more than this many personas, from the first on.")

    def people(self) -> Sequence[Persona]:
        """Return the personas in the file's order, or random combinations of the shipped profiles and personalities.

        Raises:
            DataError: If the file is invalid.
        """
        if self.personas is not None:
            return read_personas(self.personas)
        return list(combined(shipped_seeds("profile"), shipped_seeds("personality"), _SAMPLES, seed=0))


class AloeOptions(PersonaOptions):
    """The options of the recipe `aloe`."""

    branching: int = Field(
        0, ge=0, le=8, description="Follow both replies in this many of the first rounds: 2^D conversations each."
    )
    verify_pairs: bool = Field(False, description="Let a judge compare the two replies of each round, in both orders.")

    @model_validator(mode="after")
    def _branching_within_rounds(self) -> AloeOptions:
        if self.branching > self.rounds:
            raise ValueError(f"branching {self.branching} is more than rounds {self.rounds}")
        return self


class PersonaScenario(Scenario):
    """A conversation with a persona over a number of rounds.

    Attributes:
        person: The persona's id.
        profile: The facts of the person's life, one sentence each.
        personality: The traits, one sentence each.
        rounds: The number of the person's messages in each conversation.
    """

    person: str
    profile: str
    personality: str
    rounds: int

    @property
    def label(self) -> str:
        """The persona's id."""
        return self.person

    def facets(self) -> dict[str, Any]:
        """Return the persona's id and the rounds."""
        return {"persona": self.person, "rounds": self.rounds}

    def described(self) -> dict[str, Any]:
        """Return the facets and the persona's texts."""
        return {**self.facets(), **self.persona()}

    def persona(self) -> dict[str, str]:
        """Return the persona as inputs of prompts."""
        return {"profile": self.profile, "personality": self.personality}


class AloeScenario(PersonaScenario):
    """One persona's tree.

    Attributes:
        branching: The number of first rounds in which both replies are followed.
    """

    branching: int = 0

    def facets(self) -> dict[str, Any]:
        """Return the persona's id and the tree's size."""
        return {**super().facets(), "branching": self.branching}
