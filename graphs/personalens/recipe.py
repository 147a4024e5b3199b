"""The PersonaLens recipe: scenarios from profiles, dialogues with their judges, and their exports.

Section 2.3 of the paper. A turn is one assistant reply followed by one user reply; after the user's TERMINATE the
assistant gives one last reply. The judges are those of section 3 and figures 16 to 20; scores by turn are figure 5's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar

from langchain_core.messages import BaseMessage

from dialoom.graphs.capabilities import WithExports
from dialoom.graphs.dialogue import DialogueRecipe, Turns
from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.gate.talk import Facts
from dialoom.graphs.judge import Judge
from dialoom.graphs.outcome import Episode, Outcome
from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.reporting import Facet, Table

from .exports import EXPORTERS
from .options import PersonaLensOptions
from .report import tables
from .scenario import PersonaLensScenario

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
    """Personalization in multi-turn, task-oriented assistance."""

    name = "personalens"
    summary = "Task-oriented dialogues of simulated users, judged for personalization (PersonaLens)."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {"user": 0.5, "assistant": 0.0, "judge": 0.0}
    reply_limits: ClassVar[Mapping[str, int]] = {"user": 800, "assistant": 800, "judge": 4_000}  # the release's
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
        if summary := release.mendings.summary():
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

    def noticed(self, scenario: PersonaLensScenario, outcome: Outcome) -> list[DialogueFault]:  # noqa: ARG002
        """Return a fault for an end marker that was removed from the opening."""
        marker, stripped = self.turns.end_marker, outcome.counts.get("stripped_markers")
        return [DialogueFault(who="user", kind="end_marker", message=0, words=marker)] if stripped else []

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the paper's tables 3, 4, 12 and 13 and figures 4 and 5."""
        return tables(episodes)


def _listed(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in values.items())
