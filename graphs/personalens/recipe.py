"""The PersonaLens recipe: the selection of people and tasks, and dialogues with their judges.

Section 2.3 of the paper. A turn is one assistant reply followed by one user reply; after the user's TERMINATE the
assistant gives one last reply. The judges are those of section 3 and figures 16 to 20; scores by turn are figure 5's.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import Field

from dialoom.graphs.capabilities import WithExports
from dialoom.graphs.dialogue import DialogueRecipe, Turns
from dialoom.graphs.gate.talk import Facts
from dialoom.graphs.judge import Judge
from dialoom.graphs.option_types import AbsolutePath, FilledAxis, chosen
from dialoom.graphs.outcome import DialogueFault, Episode, Outcome
from dialoom.graphs.recipe import RecipeError, RecipeOptions
from dialoom.graphs.reporting import Facet, Table
from dialoom.personas import PersonaLensRelease, Task, samples

from .report import EXPORTERS, tables
from .scenario import SETTINGS, PersonaLensScenario, Setting

_TASK_ID = re.compile(r"(SD-.+|MD)-task-\d+")


class PersonaLensOptions(RecipeOptions):
    """The options of the recipe `personalens`."""

    profiles: AbsolutePath | None = Field(
        None, description="Folder of a PersonaLens release; by default the shipped samples."
    )
    users: str = Field("all", description="Ids separated by commas, or a number of people drawn with the seed.")
    tasks: str = Field("all", description="all, single, multi, or task ids separated by commas.")
    settings: FilledAxis[Setting] = Field(
        ("base",),
        alias="setting",
        description=f"Information that the assistant gets: {', '.join(SETTINGS)} (all = D+I+S). Repeatable.",
    )
    judge: bool = Field(True, description="Judge each dialogue once it has ended.")
    turn_scores: bool = Field(False, description="Judge personalization after each assistant reply as well.")
    turn_limit: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="Maximum number of turns; by default 20, or 30 for tasks over several domains.",
    )
    limit: int | None = Field(None, ge=1, description="Maximum number of dialogues.")

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


_PROMPT = "personalens/judge-"
_SEEN = ("demographics", "domains", "situation", "description")
_PERSONALIZATION = Judge(
    "personalization", prompt=f"{_PROMPT}personalization", scale=(1, 4), sees=_SEEN, node="judge_personalization"
)
_BY_TURN = replace(_PERSONALIZATION, per_turn=True, node="")


def _at_limit(scenario: PersonaLensScenario, messages: list[BaseMessage]) -> str:
    """Return the limit's reason once the user has replied as often as the limit allows."""
    replies = sum(message.name == "user" for message in messages) - 1
    return "turn_limit" if messages[-1].name == "user" and replies >= scenario.turn_limit else ""


class PersonaLens(DialogueRecipe, WithExports):
    """Task-oriented dialogues of simulated users, judged for personalization (PersonaLens)."""

    name = "personalens"
    languages = ("en",)
    roles = {"user": 0.5, "assistant": 0.0, "judge": 0.0}
    reply_limits = {"user": 800, "assistant": 800, "judge": 4_000}  # the release's
    prompts = ("personalens/user", "personalens/assistant", "personalens/assistant-vanilla")
    turns = Turns(
        max_turns="most_replies",
        end_marker="TERMINATE",
        end_reason="user_terminated",
        last_word="assistant",
        until=_at_limit,
        limit_reason="turn_limit",
    )
    judges = (
        Judge("task_completion", prompt=f"{_PROMPT}task-completion", sees=("goal",), node="judge_task_completion"),
        _PERSONALIZATION,
        *(
            Judge(metric, prompt=f"{_PROMPT}{metric}", scale=(1, 5), target=target, sees=())
            for metric in ("naturalness", "coherence")
            for target in ("user", "assistant")
        ),
    )
    options_type = PersonaLensOptions
    formats = EXPORTERS
    scenario_type = PersonaLensScenario
    facets = (Facet("user", splits=True),)
    evaluated = "assistant"

    def scenarios(
        self, options: PersonaLensOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PersonaLensScenario]:
        """Yield dialogues by person, task and setting, in the release's order."""
        release = options.source()
        users = options.chosen_users(release, draw)
        ids = options.wanted_tasks()

        def planned() -> Iterator[PersonaLensScenario]:
            met: set[str] = set()
            for user in users:
                profile = release.profile(user)
                for task in release.tasks(profile, user):
                    if options.wants(task, ids):
                        met.add(task.id)
                        for setting in options.settings:
                            yield PersonaLensScenario.of(profile, task, setting, options.turn_limit)
            if unmet := sorted((ids or frozenset()) - met):
                raise RecipeError(f"tasks: none of the chosen people has the task {unmet[0]!r}", setting="tasks")

        yield from islice(planned(), options.limit)
        if summary := release.repairs.summary():
            note(f"source: {summary}")

    def judges_used(self, options: PersonaLensOptions) -> Sequence[Judge]:
        """Return the judges of whole dialogues, and with `turn_scores` that of each turn."""
        by_turn = (_BY_TURN,) if options.turn_scores else ()
        return (*self.judges, *by_turn) if options.judge else ()

    def prompt_of(self, scenario: PersonaLensScenario, role: str) -> str:
        """Return the id of a role's prompt."""
        return scenario.assistant_prompt if role == "assistant" else super().prompt_of(scenario, role)

    def inputs(self, scenario: PersonaLensScenario, role: str) -> Mapping[str, Any]:
        """Return the inputs of a role's prompt; the assistant's are those that the setting allows."""
        return scenario.for_assistant() if role == "assistant" else super().inputs(scenario, role)

    def outcome(self, scenario: PersonaLensScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the dialogue, with the number of end markers removed from its opening."""
        outcome = super().outcome(scenario, state, failed)
        counts = {**outcome.counts, "stripped_markers": int(state.get("marked_opening", False))}
        return outcome.model_copy(update={"counts": counts})

    def facts(self, scenario: PersonaLensScenario) -> Facts:
        """Return the task, and the affinities, which the opening must not reveal."""
        kept_back = tuple(value for domain in scenario.domains for value in domain.affinities.values())
        task = f"{scenario.intent} {scenario.description}"
        return replace(super().facts(scenario), task=task, kept_back=kept_back)

    def played_by(self, scenario: PersonaLensScenario) -> dict[str, str]:
        """Return the person, their preferences and past, the situation and the task."""
        liked = [
            f"{name} ({domain.name}): {value}"
            for domain in scenario.domains
            for name, value in domain.affinities.items()
        ]
        return {
            "person": _listed(scenario.demographics),
            "likes": "\n".join(liked),
            "past": "\n".join(domain.summary for domain in scenario.domains),
            "situation": _listed(scenario.situation),
            "task": scenario.intent,
        }

    def noticed(self, scenario: PersonaLensScenario, outcome: Outcome) -> list[DialogueFault]:
        """Return a fault for an end marker that was removed from the opening."""
        marker, stripped = self.turns.end_marker, outcome.counts.get("stripped_markers")
        return [DialogueFault(who="user", kind="end_marker", message=0, words=marker)] if stripped else []

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the paper's tables 3, 4, 12 and 13 and figures 4 and 5."""
        return tables(episodes)


def _listed(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in values.items())


RECIPE = PersonaLens()
