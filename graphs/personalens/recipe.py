"""The PersonaLens recipe: scenarios from profiles, the dialogue graph with its judges, and what comes out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from dialoom.graphs.capabilities import Exporter, WithExports, WithGate, WithRoles
from dialoom.graphs.conversation import lines
from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.gate.talk import Facts
from dialoom.graphs.judge import Judge, add_judges
from dialoom.graphs.outcome import Episode, Judgement, Outcome
from dialoom.graphs.recipe import Graph, Recipe, RecipeError
from dialoom.graphs.reporting.facet import Facet
from dialoom.graphs.reporting.table import Table
from dialoom.graphs.stage import Stage, node

from . import nodes
from .exports import EXPORTERS
from .judges import JUDGES, PERSONALIZATION_BY_TURN
from .nodes import DialogueState
from .options import PersonaLensOptions
from .report import tables
from .scenario import PersonaLensScenario


class PersonaLens(Recipe, WithRoles, WithGate, WithExports):
    """Personalization in multi-turn, task-oriented assistance."""

    name = "personalens"
    summary = "Task-oriented dialogues of simulated users, judged for personalization (PersonaLens)."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {"user": 0.5, "assistant": 0.0, "judge": 0.0}
    reply_limits: ClassVar[Mapping[str, int]] = {"user": 800, "assistant": 800, "judge": 4_000}  # the release's
    prompts = ("personalens/user", "personalens/assistant", "personalens/assistant-vanilla")
    judges = JUDGES
    options_type = PersonaLensOptions
    scenario_type = PersonaLensScenario
    facets = (Facet("user", splits=True),)
    evaluated = "assistant"

    def roles_used(self, options: PersonaLensOptions) -> Mapping[str, float]:
        """All roles; without judging, no judge."""
        wanted = options.judge or options.turn_scores
        return {role: value for role, value in self.roles.items() if wanted or role != "judge"}

    def scenarios(
        self, options: PersonaLensOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PersonaLensScenario]:
        """By person, task and setting, in the release's order."""
        release = options.source()
        users = options.chosen_users(release, draw)
        ids = options.wanted_tasks()
        met: set[str] = set()
        planned = 0
        for user in users:
            profile = release.profile(user)
            for task in release.tasks(profile, user):
                if not options.wants(task, ids):
                    continue
                met.add(task.id)
                for setting in options.settings:
                    if planned == options.limit:
                        _tell(release.mendings.summary(), note)
                        return
                    planned += 1
                    yield PersonaLensScenario.of(profile, task, setting, options.turn_limit)
        if unmet := sorted((ids or frozenset()) - met):
            raise RecipeError(f"tasks: none of the chosen people has the task {unmet[0]!r}", setting="tasks")
        _tell(release.mendings.summary(), note)

    def judges_used(self, options: PersonaLensOptions) -> Sequence[Judge]:
        """Return the judges of whole dialogues, and that of each turn if it is wanted."""
        by_turn = (PERSONALIZATION_BY_TURN,) if options.turn_scores else ()
        return (*self.judges, *by_turn) if options.judge else ()

    def graph(self, options: PersonaLensOptions) -> Graph:
        """User and assistant in turn, then the judges side by side."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and looking at a run needs no graph

        builder = StateGraph(DialogueState, context_schema=Stage)
        builder.add_node("user", node(nodes.user))
        builder.add_node("assistant", node(nodes.assistant))
        after = add_judges(builder, self, self.judges_used(options)) or [END]

        async def after_user(state: DialogueState) -> list[str]:
            return ["assistant"] if nodes.is_awaiting_assistant(state) else after

        async def after_assistant(state: DialogueState) -> list[str]:
            return after if nodes.is_over(state) else ["user"]

        builder.add_edge(START, "user")
        builder.add_conditional_edges("user", after_user, ["assistant", *after])
        builder.add_conditional_edges("assistant", after_assistant, ["user", *after])
        return builder

    def initial(self, scenario: PersonaLensScenario) -> dict[str, Any]:  # noqa: ARG002
        """An empty conversation."""
        return {"messages": [], "turns": 0, "ended_by": "", "stripped": 0, "judgements": []}

    def outcome(self, scenario: PersonaLensScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:  # noqa: ARG002
        """The conversation, why it ended, and the judges' words."""
        replies = sum(message.name == "assistant" for message in state.get("messages", ()))  # as the report has them
        counts = {"turns": replies, "stripped_markers": state.get("stripped", 0)}
        return Outcome(
            messages=lines(state.get("messages", [])),
            ended_by="error" if failed else state["ended_by"],
            counts=counts,
            judgements=tuple(Judgement.model_validate(each) for each in state.get("judgements", [])),
        )

    def facts(self, scenario: PersonaLensScenario) -> Facts:
        """The task, and the affinities, of which the opening must say nothing."""
        return Facts(
            languages=self.languages,
            task=f"{scenario.intent} {scenario.description}",
            kept_back=tuple(value for domain in scenario.domains for value in domain.affinities.values()),
            end_marker=nodes.END_MARKER,
            user_ends="user_terminated",
            limit="turn_limit",
        )

    def played_by(self, scenario: PersonaLensScenario) -> dict[str, str]:
        """The person, what they like and did before, the situation and the task."""
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

    def spoken(self, reply: str) -> str:
        """A line without its end marker."""
        return nodes.without_end_marker(reply)

    def noticed(self, scenario: PersonaLensScenario, outcome: Outcome) -> list[DialogueFault]:  # noqa: ARG002
        """An end marker in the opening, where it was taken out."""
        stripped = outcome.counts.get("stripped_markers")
        return [DialogueFault(who="user", kind="end_marker", message=0, words=nodes.END_MARKER)] if stripped else []

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """The paper's tables 3, 4, 12 and 13 and figures 4 and 5."""
        return tables(episodes)

    def exporters(self) -> Mapping[str, Exporter]:
        """`personalens` (the release's layout) and `sft`."""
        return EXPORTERS


def _listed(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in values.items())


def _tell(summary: str, note: Callable[[str], None]) -> None:
    if summary:
        note(f"source: {summary}")
