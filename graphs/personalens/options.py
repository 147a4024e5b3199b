"""Options of a PersonaLens run, and the selection of people and tasks."""

from __future__ import annotations

import random
import re

from pydantic import Field

from dialoom.graphs.option_types import AbsolutePath, FilledAxis, chosen
from dialoom.graphs.recipe import RecipeError, RecipeOptions
from dialoom.personas import PersonaLensRelease, Task, samples

from .scenario import SETTINGS, Setting

_TASK_ID = re.compile(r"(SD-.+|MD)-task-\d+")


class PersonaLensOptions(RecipeOptions):
    """The options of the recipe `personalens`."""

    profiles: AbsolutePath | None = Field(
        None, description="Folder of a PersonaLens release; without it, the shipped samples."
    )
    users: str = Field("all", description="Ids separated by commas, or a number of people drawn with the seed.")
    tasks: str = Field("all", description="all, single, multi, or task ids separated by commas.")
    settings: FilledAxis[Setting] = Field(
        ("base",),
        alias="setting",
        description=f"What the assistant is shown: {', '.join(SETTINGS)} (all = D+I+S). Repeatable.",
    )
    judge: bool = Field(True, description="Judge each dialogue once it has ended.")
    turn_scores: bool = Field(False, description="Judge personalization after each assistant reply as well.")
    turn_limit: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="Turns after which a dialogue is ended; by default 20, over several domains 30.",
    )
    limit: int | None = Field(None, ge=1, description="Plan no more than this many dialogues.")

    def source(self) -> PersonaLensRelease:
        """Return the release to read people from."""
        return samples() if self.profiles is None else PersonaLensRelease(self.profiles)

    def chosen_users(self, release: PersonaLensRelease, draw: random.Random) -> list[str]:
        """Return the ids of the selected people, in the release's order.

        Raises:
            RecipeError: If an id is unknown, or a number is not from 1 to the number of people.
        """
        known, named = release.user_ids(), self.users.strip()
        if named.lstrip("-").isdecimal() and named not in known:
            count = int(named)
            if not 1 <= count <= len(known):
                raise RecipeError(
                    f"users {count}: there are {len(known)} people; give a number from 1 to that", setting="users"
                )
            wanted = draw.sample(known, count)
        else:
            wanted = chosen("users", self.users, known)
        return [user for user in known if user in set(wanted)]

    def wanted_tasks(self) -> frozenset[str] | None:
        """Return the ids of the selected tasks, or `None` if a whole kind is selected.

        Raises:
            RecipeError: If a part is neither a kind nor of the form of a task id.
        """
        wanted = [part.strip() for part in self.tasks.split(",") if part.strip()]
        if wanted in (["all"], ["single"], ["multi"]):
            return None
        for id_ in wanted or [""]:
            if not _TASK_ID.fullmatch(id_):
                raise RecipeError(
                    f"tasks: {id_!r} is not a task id such as SD-Alarm-task-1 or MD-task-3, nor all, single or multi",
                    setting="tasks",
                )
        return frozenset(wanted)

    def wants(self, task: Task, ids: frozenset[str] | None) -> bool:
        """Return whether a task is selected."""
        return task.id in ids if ids is not None else self.tasks in ("all", task.kind)
