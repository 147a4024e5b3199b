"""Finished scenarios as a run's file keeps them: a recipe's episode, and the branch that its outcome came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from dialoom.graphs import Episode


class BranchTaken(BaseModel):
    """The branch that an outcome came from, if it is one that somebody made step by step, and what is not as it was.

    Attributes:
        name: The branch's.
        models: Models exchanged in it, by role.
        edits: How often the state was edited on its line.
        said: How many replies were written by a person.
        prompts: How many requests were.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    models: Mapping[str, str] = {}
    edits: int = 0
    said: int = 0
    prompts: int = 0

    def done(self) -> str:
        """What a person did there, in a few words; empty if nothing."""
        done = [f"{role} played by {model}" for role, model in self.models.items()]
        counted = ((self.edits, "edited"), (self.said, "said by a person"), (self.prompts, "asked by a person"))
        return ", ".join([*done, *(f"{count} {what}" for count, what in counted if count)])

    def told(self) -> str:
        """The branch and what a person did there."""
        done = self.done()
        return f"branch {self.name}" + (f": {done}" if done else "")


@dataclass(frozen=True, slots=True)
class RecordedEpisode(Episode):
    """A finished scenario as it is read out of a run's file.

    Attributes:
        branch: Where the outcome came from; `None` if from the scenario's own line.
    """

    branch: BranchTaken | None = None
