"""The benchmark as a recipe: conversations with personas, their judge, and alignment levels."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from dialoom.graphs.aloe.recipe import without_directions
from dialoom.graphs.aloe.tree import SPOKEN, PersonaOptions, PersonaScenario
from dialoom.graphs.dialogue import DialogueRecipe, Turns
from dialoom.graphs.dialogue_state import DialogueState
from dialoom.graphs.judge import Case, Graph, Judge, add_judges
from dialoom.graphs.option_types import AbsolutePath
from dialoom.graphs.outcome import Outcome
from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.reporting import Chart, Facet, Runs, Table
from dialoom.graphs.stage import Stage, node
from dialoom.personas.pools import Persona, read_personas

from . import report


class AloeEvalOptions(PersonaOptions):
    """The options of the recipe `aloe-eval`."""

    unlike: AbsolutePath | None = Field(
        None, description="JSONL of personas that were trained on; personas with the same profiles are left out."
    )


def _answers(scenario: PersonaScenario, outcome: Outcome) -> Iterator[Case]:
    """Yield each answer as a case, with the message before it and the persona."""
    for turn in range(1, len(outcome.messages) // 2 + 1):
        message, answer = (line.content for line in outcome.messages[2 * turn - 2 : 2 * turn])
        yield Case(turn, {"message": message, "answer": answer, **scenario.persona()})


class AloeEval(DialogueRecipe):
    """How well an assistant comes to suit users who reveal themselves bit by bit, round by round (ALOE)."""

    name = "aloe-eval"
    languages = ("en",)
    roles = {"user": 0.8, "assistant": 0.0, "judge": 0.0}
    reply_limits = dict.fromkeys(("user", "assistant"), SPOKEN)
    prompts = ("aloe/user", "aloe/assistant")
    turns = Turns(max_turns="rounds", unit="round", limit_reason="all_rounds")
    judges = (Judge("alignment", prompt="aloe/judge-alignment", scale=(1, 5), cases=_answers, node="judge"),)
    options_type = AloeEvalOptions
    scenario_type = PersonaScenario
    facets = (Facet("persona", splits=True),)
    evaluated = "assistant"

    def scenarios(
        self, options: AloeEvalOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PersonaScenario]:
        """Yield a conversation for each persona, in the file's order."""
        for person in _unlike(options.people(), options.unlike, note)[: options.limit]:
            yield PersonaScenario(
                person=person.id, profile=person.profile, personality=person.personality, rounds=options.rounds
            )

    def graph(self, options: AloeEvalOptions) -> Graph:
        """Return the graph: user and assistant in turn; after each answer the judge, beside the next message."""
        from langgraph.graph import START, StateGraph  # slow to import, and not needed to read a run

        builder = StateGraph(DialogueState, context_schema=Stage)
        for role in self.turns.order:
            builder.add_node(role, node(self.speaker(role)))
        after = add_judges(builder, self, self.judges_used(options))

        async def after_assistant(state: DialogueState) -> list[str]:
            return after if state["ended_by"] else [*after, "user"]

        builder.add_edge(START, "user")
        builder.add_edge("user", "assistant")
        builder.add_conditional_edges("assistant", after_assistant, [*after, "user"])
        return builder

    def played_by(self, scenario: PersonaScenario) -> Mapping[str, str]:
        """Return the persona."""
        return scenario.persona()

    def spoken(self, reply: str) -> str:
        """Return a user's message without stage directions."""
        return without_directions(reply)

    def compared(self, runs: Runs) -> list[Table]:
        """Return alignment levels by round and their rise: the paper's table 1, one row per run."""
        return report.compared(runs)

    def charts(self, runs: Runs) -> list[Chart]:
        """Return alignment levels over the rounds with the fitted lines: the paper's figure 4."""
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
