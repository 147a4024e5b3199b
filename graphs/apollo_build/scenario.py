"""One user of a source, whose sessions and pairs are to be made."""

from __future__ import annotations

from typing import Any

from dialoom.graphs.scenario import Scenario
from dialoom.personas.apollo.source import ApolloUser


class BuildScenario(Scenario):
    """A user, and how much is made of them.

    Attributes:
        user: Who it is.
        is_first: Whether the source's own description is exported with this user.
        pairs: For each preference.
        errands: Sessions that tell no preference, for each unrelated tool.
        seed: Of every draw.
        world_seed: The world's.
        world: The world's hash: another one makes another source.
    """

    user: ApolloUser
    is_first: bool
    pairs: int
    errands: int
    seed: int
    world_seed: int
    world: str

    @property
    def label(self) -> str:
        """Id and name."""
        return f"{self.user.id} {self.user.name}"

    def facets(self) -> dict[str, Any]:
        """Who it is, and how much is made."""
        about = {"user": self.user.id, "name": self.user.name, "city": self.user.city}
        return {**about, "pairs": self.pairs, "errands": self.errands, "seed": self.seed}
