"""What a user chooses for a set of trees."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, model_validator

from dialoom.graphs.option_types import AbsolutePath
from dialoom.graphs.recipe import RecipeOptions
from dialoom.personas.persona import Persona, combined, read_personas
from dialoom.personas.pools import shipped_seeds

_SAMPLES = 20


def samples() -> Sequence[Persona]:
    """The personas to try things with: shipped profiles and personalities, drawn together."""
    profiles, personalities = (shipped_seeds(kind) for kind in ("profile", "personality"))
    return list(combined(profiles, personalities, _SAMPLES, seed=0))


class PersonaOptions(RecipeOptions):
    """Which people, and for how many rounds."""

    personas: AbsolutePath | None = Field(
        None, description="JSONL of personas, with profile and personality; without it, the shipped samples."
    )
    rounds: int = Field(10, ge=1, le=100, description="Messages of the user in each conversation.")
    limit: int | None = Field(None, ge=1, description="Take no more than this many personas, from the first on.")

    def people(self) -> Sequence[Persona]:
        """The personas, in the file's order.

        Raises:
            DataError: If the file is not what it should be.
        """
        return samples() if self.personas is None else read_personas(self.personas)


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
