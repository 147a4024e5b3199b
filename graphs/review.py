"""A reviewer of simulated users: what rules cannot see, as a set of verdicts beside a run's judgements."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypedDict

from dialoom.graphs.conversation import joined
from dialoom.graphs.fault import REVIEWER
from dialoom.graphs.judgement_scope import is_judged
from dialoom.graphs.outcome import Judgement, Outcome
from dialoom.graphs.recipe import Graph, Recipe
from dialoom.graphs.scenario import Scenario
from dialoom.graphs.stage import Scene, Stage, Update, node
from dialoom.roles import UnparsedReplyError

PROMPT = "gate/review"
REVIEWED: Mapping[str, str] = {
    "contradicts_persona": "the user contradicts who they are",
    "invents_facts": "the user invents facts of the task",
    "gives_up": "the user gives up although the goal is open",
    "content_too_soon": "the user is content although it is not done",
    "reveals": "the user gives away what only their instructions say",
}
"""What a reviewer looks for, one verdict each; true says that the fault is there."""


class ReviewState(TypedDict, total=False):
    """What is checkpointed: who is looked at, what is known of them, what was said, and the verdicts."""

    user: str
    about: dict[str, str]
    history: list[dict[str, str]]
    judgements: Annotated[list[dict[str, Any]], joined]


class Review(Recipe):
    """The reviewing of another recipe's conversations; only that can be done with it.

    Args:
        recipe: Whose conversations they are.
    """

    name = "review"
    summary = "What is wrong in how simulated users were played."
    roles: ClassVar[Mapping[str, float]] = {REVIEWER: 0.0}
    prompts = (PROMPT,)
    metrics = tuple(REVIEWED)

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe

    def scenarios(self, options: Any, draw: random.Random, note: Callable[[str], None]) -> Iterator[Scenario]:
        """Those of the recipe."""
        return self._recipe.scenarios(options, draw, note)

    def graph(self, options: Any) -> Graph:
        """That of the recipe."""
        return self._recipe.graph(options)

    def initial(self, scenario: Any) -> dict[str, Any]:
        """That of the recipe."""
        return self._recipe.initial(scenario)

    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:  # noqa: ARG002
        """The verdicts, in the order of `REVIEWED`."""
        found = (Judgement.model_validate(value) for value in state.get("judgements", []))
        return Outcome(messages=(), ended_by="", judgements=tuple(sorted(found, key=_rank)))

    def judging(self) -> Graph:
        """All questions side by side."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and looking at a run needs no graph

        builder = StateGraph(ReviewState, context_schema=Stage)
        builder.add_node("review", node(_review))
        builder.add_edge(START, "review")
        builder.add_edge("review", END)
        return builder

    def judging_state(self, scenario: Any, outcome: Outcome) -> dict[str, Any]:
        """The conversation, and what its user went by."""
        return {
            "user": self._recipe.facts(scenario).user,
            "about": dict(self._recipe.played_by(scenario)),
            "history": [{"speaker": line.role, "content": line.spoken} for line in outcome.messages],
            "judgements": [judgement.model_dump(mode="json") for judgement in outcome.judgements],
        }

    def judging_roles(self) -> Mapping[str, float]:
        """The reviewer."""
        return self.roles


async def _review(state: ReviewState, scene: Scene) -> Update:
    user, history = state["user"], state["history"]
    asked = [kind for kind in REVIEWED if history and not is_judged(state["judgements"], kind, user)]
    found = await asyncio.gather(*(_verdict(scene, kind, user, state["about"], history) for kind in asked))
    return {"judgements": [judgement.model_dump(mode="json") for judgement in found]}


async def _verdict(scene: Scene, kind: str, user: str, about: Mapping[str, str], history: Any) -> Judgement:
    try:
        reply = await scene.ask(PROMPT, user=user, about=about, fault=kind, history=history)
    except UnparsedReplyError as error:
        return Judgement(metric=kind, target=user, status="unparsed", explanation=str(error))
    return Judgement(metric=kind, target=user, score=reply.verdict, explanation=reply.explanation)


def _rank(judgement: Judgement) -> int:
    return list(REVIEWED).index(judgement.metric)
