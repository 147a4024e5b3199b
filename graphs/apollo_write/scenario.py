"""One user of a source that models write, and all that is planned for them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.scenario import Scenario
from dialoom.personas.apollo import World
from dialoom.personas.apollo.source.drafts import UserDrafts

from .options import Until


class WriteScenario(Scenario):
    """All that writing a user's part needs, so that a run never reads a file again.

    Attributes:
        user: The user's id.
        is_first: Whether the source's own description is exported with this user.
        seed_persona: What the profile is made of.
        city: Where they live.
        home: Their address.
        work: Where they work.
        drafts: Those to go on from.
        seed: Of every draw.
        world_seed: The world's.
        world: The world's hash: another one makes another source.

    All others are as the options say.
    """

    user: str
    is_first: bool
    seed_persona: str
    city: str
    home: str
    work: str
    drafts: UserDrafts = UserDrafts()
    flows: tuple[str, ...]
    pairs: int
    errands: int
    offers: int
    rewrites: int
    verify_leaks: int
    until: Until
    seed: int
    world_seed: int
    world: str

    @property
    def label(self) -> str:
        """The user's id and city, and the stage after which it ends, if that is not the last."""
        return f"{self.user} {self.city}" if self.until == "complete" else f"{self.user} {self.city} {self.until}"

    def facets(self) -> dict[str, Any]:
        """Who it is, and until where."""
        return {"user": self.user, "city": self.city, "until": self.until}

    def described(self) -> dict[str, Any]:
        """With what was chosen, and how many drafts it began with."""
        chosen = self.model_dump(include={"flows", "pairs", "errands", "rewrites", "verify_leaks", "seed"})
        return {**self.facets(), "persona": self.seed_persona, "drafts": len(self.drafts.all()), **chosen}


def world_of(scenario: WriteScenario) -> World:
    """The world that a scenario was planned in.

    Raises:
        RecipeError: If this version's is another one.
    """
    world = _world(scenario.world_seed)
    if world.hash != scenario.world:
        raise RecipeError(f"world: the run was planned in {scenario.world[:12]}, and this version's is another")
    return world


@lru_cache(maxsize=4)
def _world(seed: int) -> World:
    return World(seed)
