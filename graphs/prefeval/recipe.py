"""The PrefEval recipe: items from pairs, the graph of an item with its checkers, and its outcomes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from pydantic import BaseModel

from dialoom.graphs.capabilities import (
    WithComparison,
    WithExports,
    WithGate,
    WithLabels,
    WithProgress,
)
from dialoom.graphs.embedding import PROMPT as EMBEDDER_PROMPT
from dialoom.graphs.embedding import REPLY_TYPE, EmbeddingRecipe, Embeddings, embedder_here
from dialoom.graphs.gate.talk import Said, Talk
from dialoom.graphs.judge import Judge, add_judges
from dialoom.graphs.outcome import Judgement, Line, Outcome
from dialoom.graphs.recipe import Graph
from dialoom.graphs.reporting import Chart, Facet, Runs, Table
from dialoom.graphs.stage import Stage, node

from . import checkers, nodes, report
from .checkers import ASSISTANT, CHECKERS, RIGHT, UNPARSED, error_of
from .conversation import folded
from .exports import EXPORTERS
from .nodes import ItemState
from .options import PrefEvalOptions
from .planning import items
from .scenario import PrefEvalScenario


class PrefEval(EmbeddingRecipe, WithComparison, WithGate, WithLabels, WithProgress, WithExports):
    """A preference, much unrelated talk, and a question that a usual answer would answer against it."""

    name = "prefeval"
    summary = "Whether an assistant still follows a preference after much unrelated talk (PrefEval)."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {"assistant": 0.0, "judge": 0.0, "embedder": 0.0}
    reply_limits: ClassVar[Mapping[str, int]] = {"assistant": 300}
    prompts = (
        "prefeval/reply",
        *dict.fromkeys(nodes.PROMPTS.values()),
        "prefeval/critique",
        "prefeval/revision",
        EMBEDDER_PROMPT,
    )
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {**checkers.REPLY_TYPES, REPLY_TYPE: Embeddings}
    options_type = PrefEvalOptions
    formats = EXPORTERS
    scenario_type = PrefEvalScenario
    judges = checkers.JUDGES
    checks = checkers.CHECKS
    facets = (Facet("topic", splits=True), Facet("turns", tells_length=True))
    evaluated = "assistant"

    def embeds(self, options: PrefEvalOptions) -> bool:
        """Return whether any item uses rag."""
        return "rag" in options.method

    def judges_used(self, options: PrefEvalOptions) -> Sequence[Judge]:
        """Return the checkers, if there are free answers."""
        return super().judges_used(options) if "generation" in options.task else ()

    def scenarios(
        self, options: PrefEvalOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PrefEvalScenario]:
        """Yield items by topic and pair, and for each pair along the axes."""
        if self.embeds(options):
            embedder_here(options.embedder)
        return items(options, draw, note)

    def graph(self, options: PrefEvalOptions) -> Graph:
        """Return the graph: replies to preferences, the method's nodes, the checkers."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and not needed to read a run

        builder = StateGraph(ItemState, context_schema=Stage)
        for work in (nodes.reply, nodes.retrieve, nodes.answer, nodes.criticise, nodes.revise):
            builder.add_node(work.__name__, node(work))
        judging = add_judges(builder, self, self.judges_used(options))

        def after(state: ItemState) -> list[str]:
            return judging if judging and state["task"] == "generation" else [END]

        async def after_reply(state: ItemState) -> str:
            return "retrieve" if state["method"] == "rag" else "answer"

        async def after_answer(state: ItemState) -> list[str]:
            return ["criticise"] if "answer" not in state else after(state)

        async def after_revise(state: ItemState) -> list[str]:
            return after(state)

        verdicts = [*judging, END]
        builder.add_edge(START, "reply")
        builder.add_conditional_edges("reply", after_reply, ["retrieve", "answer"])
        builder.add_edge("retrieve", "answer")
        builder.add_conditional_edges("answer", after_answer, ["criticise", *verdicts])
        builder.add_edge("criticise", "revise")
        builder.add_conditional_edges("revise", after_revise, verdicts)
        return builder

    def initial(self, scenario: PrefEvalScenario) -> dict[str, Any]:
        """Return the state before the first request."""
        return {
            "task": scenario.task,
            "method": scenario.method,
            "position": scenario.position,
            "replies": {},
            "judgements": [],
        }

    def outcome(self, scenario: PrefEvalScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the messages without the unrelated turns, and the checkers' judgements."""
        answered = "chosen" if scenario.task == "classification" else "answered"
        judgements = [Judgement.model_validate(value) for value in state.get("judgements", [])]
        return Outcome(
            messages=tuple(_said(scenario, state)),
            ended_by="error" if failed else answered if state.get("answer") else "empty_answer",
            counts={"turns": scenario.turns, "tokens": scenario.tokens},
            details=_details(scenario, state),
            judgements=tuple(judgements),
        )

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of judgements."""
        return {"judgement": len(state.get("judgements", []))}

    def compared(self, runs: Runs) -> list[Table]:
        """Return accuracy by length and topic, errors and the other tables: the paper's tables 2 and 4-13."""
        return report.compared(runs)

    def charts(self, runs: Runs) -> list[Chart]:
        """Return the paper's figures 3-13 and 23-25 that have data."""
        return report.charts(runs)

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> list[Line]:
        """Return the checker's inputs."""
        return checkers.lines_seen(judgement.metric, outcome)

    def concluded(self, outcome: Outcome) -> Iterator[Judgement]:
        """Yield a judgement of whether a free answer is right, derived from the checkers' verdicts."""
        if any(judgement.metric in CHECKERS for judgement in outcome.judgements):
            error = error_of(outcome.judgements)
            if error == UNPARSED:
                yield Judgement(metric=RIGHT, target=ASSISTANT, status="unparsed")
            else:
                yield Judgement(metric=RIGHT, target=ASSISTANT, score=error is None, explanation=error or "")

    def talks(self, scenario: PrefEvalScenario, outcome: Outcome) -> Iterator[Talk]:
        """Yield the model's own replies to preferences, and the answer after its bare question.

        The rest of the conversation is data, and the text around the question belongs to the method.
        """
        facts = self.facts(scenario)
        own = list(_own_exchanges(outcome))
        yield from (Talk(each, facts, since=1) for each in own)
        if scenario.task == "generation" and outcome.details["answer"]:
            is_cut = outcome.messages[-1].finish_reason == "length"
            answer = Said(ASSISTANT, outcome.details["answer"], len(outcome.messages) - 1, is_cut=is_cut)
            before = [line for exchange in own for line in exchange]
            lines = [*before, Said("user", scenario.pair.question), answer]
            yield Talk(lines, facts, outcome.ended_by, since=len(lines) - 1)

    def judged_about(self, scenario: PrefEvalScenario, judgement: Judgement) -> Mapping[str, Any]:  # noqa: ARG002
        """Return nothing: neither a checker without the preference nor annotators may learn it here."""
        return {}


def _said(scenario: PrefEvalScenario, state: Mapping[str, Any]) -> Iterator[Line]:
    replies, broken_off = state.get("replies", {}), state.get("replies_broken_off", {})
    yield from folded(scenario, replies, state.get("position", scenario.position), broken_off)
    for role, name in (("user", "question_sent"), ("first answer", "first"), ("critique", "critique")):
        if text := state.get(name):
            yield Line(role=role, content=text)
    if text := state.get("answer"):
        yield Line(role="assistant", content=text, finish_reason=state.get("broken_off"))


def _own_exchanges(outcome: Outcome) -> Iterator[list[Said]]:
    """Yield preferences that the model itself has replied to, each with its reply."""
    for place, (told, said) in enumerate(pairwise(outcome.messages), start=1):
        if said.role == ASSISTANT and told.content in outcome.details["replies"]:
            is_cut = said.finish_reason == "length"
            yield [Said(told.role, told.content), Said(ASSISTANT, said.content, place, is_cut=is_cut)]


def _details(scenario: PrefEvalScenario, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data from which exports rebuild the conversation, together with the scenario."""
    kept = {name: state[name] for name in ("position", "replies", "first", "critique") if state.get(name) is not None}
    details = {
        "preference": scenario.pair.preference,
        "question": scenario.pair.question,
        **kept,
        "answer": state.get("answer", ""),
    }
    if "retrieved" in state:
        found: Any = state
        details |= {"retrieved": state["retrieved"], "hit": nodes.is_hit(scenario, found)}
    if scenario.task == "classification":
        details |= {
            "options": nodes.shown_options(scenario),
            "correct": nodes.LETTERS[scenario.order.index(0)],  # the first stored option is the right one
            "choice": nodes.chosen(details["answer"]),
            "first_choice": nodes.chosen(state.get("first", "")),
        }
    return details
