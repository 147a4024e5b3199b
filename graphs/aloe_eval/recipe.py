"""The benchmark as a recipe: conversations with personas, the conversation with its judge, and alignment levels."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from dialoom.graphs.aloe.nodes import without_directions
from dialoom.graphs.aloe.options import PersonaOptions
from dialoom.graphs.aloe.scenario import SPOKEN, PersonaScenario
from dialoom.graphs.conversation import lines, messages_of
from dialoom.graphs.option_types import AbsolutePath
from dialoom.graphs.outcome import Episode, Judgement, Outcome
from dialoom.graphs.recipe import Graph, Recipe, RecipeError
from dialoom.graphs.reporting.chart import Chart
from dialoom.graphs.reporting.table import Table
from dialoom.graphs.stage import Stage, node
from dialoom.personas.persona import Persona, read_personas

from . import nodes, report
from .nodes import TalkState


class AloeEvalOptions(PersonaOptions):
    """The options of the recipe `aloe-eval`."""

    unlike: AbsolutePath | None = Field(
        None, description="JSONL of the personas that were trained on: who shares a profile with them is left out."
    )


class AloeEval(Recipe):
    """An assistant talks with people it knows nothing of."""

    name = "aloe-eval"
    summary = "How well an assistant comes to suit users who reveal themselves bit by bit, round by round (ALOE)."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {"user": 0.8, "assistant": 0.0, "judge": 0.0}
    reply_limits: ClassVar[Mapping[str, int]] = dict.fromkeys(("user", "assistant"), SPOKEN)
    prompts = ("aloe/user", "aloe/assistant", "aloe/judge-alignment")
    options_type = AloeEvalOptions
    scenario_type = PersonaScenario
    metrics = ("alignment",)
    scales: ClassVar[Mapping[str, tuple[int, int]]] = {"alignment": (1, 5)}
    split_by = "persona"
    evaluated = "assistant"

    def scenarios(
        self,
        options: AloeEvalOptions,
        draw: random.Random,  # noqa: ARG002 - everybody is taken, or the first
        note: Callable[[str], None],
    ) -> Iterator[PersonaScenario]:
        """A conversation for each persona, in the file's order."""
        for person in _unlike(options.people(), options.unlike, note)[: options.limit]:
            yield PersonaScenario(
                person=person.id, profile=person.profile, personality=person.personality, rounds=options.rounds
            )

    def graph(self, options: AloeEvalOptions) -> Graph:
        """User and assistant in turn; after each answer the judge, beside the user's next message."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and looking at a run needs no graph

        builder = StateGraph(TalkState, context_schema=Stage)
        for work in (nodes.user, nodes.assistant, nodes.judge):
            builder.add_node(work.__name__, node(work))

        async def after_assistant(state: TalkState) -> list[str]:
            return ["judge"] if nodes.is_over(state, options.rounds) else ["judge", "user"]

        builder.add_edge(START, "user")
        builder.add_edge("user", "assistant")
        builder.add_conditional_edges("assistant", after_assistant, ["judge", "user"])
        builder.add_edge("judge", END)
        return builder

    def initial(self, scenario: PersonaScenario) -> dict[str, Any]:  # noqa: ARG002
        """An empty conversation."""
        return {"messages": [], "judgements": []}

    def outcome(self, scenario: PersonaScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:  # noqa: ARG002
        """The conversation and the judge's words, round by round."""
        messages = state.get("messages", [])
        judgements = [Judgement.model_validate(value) for value in state.get("judgements", [])]
        return Outcome(
            messages=lines(messages),
            ended_by="error" if failed else "all_rounds",
            counts={"rounds": len(messages) // 2},
            judgements=tuple(sorted(judgements, key=lambda judgement: judgement.turn or 0)),
        )

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Rounds that the user has begun."""
        return {"round": (len(state.get("messages", [])) + 1) // 2}

    def judging(self) -> Graph:
        """The judge alone, over a finished conversation."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and looking at a run needs no graph

        builder = StateGraph(TalkState, context_schema=Stage)
        builder.add_node("judge", node(nodes.judge_all))
        builder.add_edge(START, "judge")
        builder.add_edge("judge", END)
        return builder

    def judging_state(self, scenario: PersonaScenario, outcome: Outcome) -> dict[str, Any]:  # noqa: ARG002
        """The conversation as it ended, and the judgements of it that stand."""
        kept = [judgement.model_dump(mode="json") for judgement in outcome.judgements]
        return {"messages": messages_of(outcome.messages), "judgements": kept}

    def played_by(self, scenario: PersonaScenario) -> Mapping[str, str]:
        """The persona."""
        return scenario.persona()

    def spoken(self, reply: str) -> str:
        """A line without stage directions."""
        return without_directions(reply)

    def judging_roles(self) -> Mapping[str, float]:
        """The judge."""
        return {"judge": self.roles["judge"]}

    def compared(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Table]:
        """Alignment levels by round, and how they rise: the paper's table 1, a row for each run."""
        return report.compared(runs)

    def charts(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Chart]:
        """Alignment levels over the rounds with the fitted lines: the paper's figure 4."""
        return report.charts(runs)


def _unlike(people: Sequence[Persona], trained: Path | None, note: Callable[[str], None]) -> list[Persona]:
    if trained is None:
        return list(people)
    profiles = {person.profile for person in read_personas(trained)}
    left = [person for person in people if person.profile not in profiles]
    note(f"{len(people) - len(left):,} personas left out, as {trained.name} holds their profiles")
    if not left:
        raise RecipeError(f"unlike {trained}: holds the profile of every persona", setting="unlike")
    return left


RECIPE = AloeEval()
