"""What a user chooses for a source."""

from __future__ import annotations

from pydantic import Field

from dialoom.graphs.recipe import RecipeOptions
from dialoom.personas.apollo.source.people import MOST_USERS
from dialoom.personas.apollo.source.scripted import ERRANDS, PAIRS_OF_SET, SETS


class BuildOptions(RecipeOptions):
    """The options of the recipe `apollo-build`."""

    users: int = Field(MOST_USERS, ge=1, le=MOST_USERS, description=f"How many users, of {MOST_USERS} that there are.")
    pairs: int = Field(
        PAIRS_OF_SET,
        ge=1,
        le=12,
        description=f"Pairs of a session and a query for each of the {SETS} preferences that a user has for each flow.",
    )
    errands: int = Field(
        ERRANDS, ge=1, le=20, description="Sessions that tell no preference, for each user and unrelated tool."
    )
    world: int = Field(0, description="The seed of the world that the tools look into.")
