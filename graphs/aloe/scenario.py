"""What never changes while people are talked with: the person, and the size of what is made of them."""

from __future__ import annotations

from typing import Any

from dialoom.graphs.scenario import Scenario

SPOKEN = 300
"""The most tokens of what users and assistants say (the release's limit); what is read as an object has none."""


class PersonaScenario(Scenario):
    """A person who is talked with for a number of rounds.

    Attributes:
        person: The persona's id.
        profile: The facts of a life, a sentence each.
        personality: The traits, a sentence each.
        rounds: How many messages the person writes in each conversation.
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
        """The persona's id and the rounds."""
        return {"persona": self.person, "rounds": self.rounds}

    def described(self) -> dict[str, Any]:
        """The facets and the persona's texts."""
        return {**self.facets(), **self.persona()}

    def persona(self) -> dict[str, str]:
        """The persona as prompts take it."""
        return {"profile": self.profile, "personality": self.personality}


class AloeScenario(PersonaScenario):
    """One persona's tree.

    Attributes:
        branching: In how many of the first rounds both replies are followed.
    """

    branching: int = 0

    def facets(self) -> dict[str, Any]:
        """The persona's id and the tree's size."""
        return {**super().facets(), "branching": self.branching}
