"""The PrefEval recipe: items from pairs, the graph of an item with its checkers, and what comes out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from pydantic import BaseModel

from dialoom.graphs.capabilities import (
    Exporter,
    WithComparison,
    WithExports,
    WithGate,
    WithLabels,
    WithProgress,
    WithPrompts,
    WithRoles,
)
from dialoom.graphs.embedding import PROMPT as EMBEDDER_PROMPT
from dialoom.graphs.embedding import REPLY_TYPE, Embeddings, embedder_here, embedding_model
from dialoom.graphs.gate.talk import Said, Talk
from dialoom.graphs.judge import add_judges
from dialoom.graphs.outcome import Episode, Judgement, Line, Outcome
from dialoom.graphs.recipe import Graph, Recipe
from dialoom.graphs.reporting.chart import Chart
from dialoom.graphs.reporting.facet import Facet
from dialoom.graphs.reporting.table import Table
from dialoom.graphs.stage import Stage, node

from . import checkers, exports, figures, nodes, report
from .conversation import folded
from .nodes import ItemState
from .options import PrefEvalOptions
from .planning import items
from .scenario import PrefEvalScenario
from .verdicts import ASSISTANT, CHECKERS, RIGHT, UNPARSED, error_of


class PrefEval(Recipe, WithRoles, WithPrompts, WithComparison, WithGate, WithLabels, WithProgress, WithExports):
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
    scenario_type = PrefEvalScenario
    judges = checkers.JUDGES
    checks = checkers.CHECKS
    facets = (Facet("topic", splits=True), Facet("turns", tells_length=True))
    evaluated = "assistant"

    def roles_used(self, options: PrefEvalOptions) -> Mapping[str, float]:
        """The assistant; the judge where answers are judged, and the embedder where a model is one."""
        judged = options.judge and "generation" in options.task
        by_model = "rag" in options.method and embedding_model(options.embedder)
        wanted = {"assistant": True, "judge": judged, "embedder": by_model}
        return {role: value for role, value in self.roles.items() if wanted[role]}

    def models_named(self, options: PrefEvalOptions) -> Mapping[str, str]:
        """The embedder's, where the option `embedder` is `litellm:MODEL`."""
        model = embedding_model(options.embedder)
        return {"embedder": model} if model and "rag" in options.method else {}

    def scenarios(
        self, options: PrefEvalOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PrefEvalScenario]:
        """By topic and pair, and for each pair along the axes."""
        if "rag" in options.method:
            embedder_here(options.embedder)
        return items(options, draw, note)

    def graph(self, options: PrefEvalOptions) -> Graph:
        """Replies to preferences; retrieval, answer, critique and revision as the method has them; the checkers."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and looking at a run needs no graph

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
        """Nothing said yet."""
        return {
            "task": scenario.task,
            "method": scenario.method,
            "position": scenario.position,
            "replies": {},
            "judgements": [],
        }

    def outcome(self, scenario: PrefEvalScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """What was said, without the unrelated turns, and the checkers' words."""
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
        """Judgements made."""
        return {"judgement": len(state.get("judgements", []))}

    def compared(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Table]:
        """Accuracy by length and topic, errors and the rest: the paper's tables 2 and 4-13."""
        return report.compared(runs)

    def charts(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Chart]:
        """The paper's figures 3-9, 10-13 and 23-25, as far as there is something to draw."""
        return figures.charts(runs)

    def exporters(self) -> Mapping[str, Exporter]:
        """The release's own files, and a training set."""
        return exports.EXPORTERS

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> list[Line]:
        """What the checker was shown."""
        details = outcome.details
        quote = checkers.quote_of([each.model_dump() for each in outcome.judgements])
        shown = {**{name: details[name] for name in ("preference", "question", "answer")}, "quote": quote}
        return checkers.seen_by(judgement.metric, shown)

    def concluded(self, outcome: Outcome) -> Iterator[Judgement]:
        """Whether a free answer is right by its checkers' words."""
        if any(judgement.metric in CHECKERS for judgement in outcome.judgements):
            error = error_of(outcome.judgements)
            if error == UNPARSED:
                yield Judgement(metric=RIGHT, target=ASSISTANT, status="unparsed")
            else:
                yield Judgement(metric=RIGHT, target=ASSISTANT, score=error is None, explanation=error or "")

    def talks(self, scenario: PrefEvalScenario, outcome: Outcome) -> Iterator[Talk]:
        """The model's own replies to preferences, and the answer after its bare question.

        All else before the answer is data, and the words around the question are the method's.
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
        """Nothing: a checker that is not shown the preference must not be told it here, and neither must people."""
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
    """Preferences that the model itself has replied to, each with its reply."""
    for place, (told, said) in enumerate(pairwise(outcome.messages), start=1):
        if said.role == ASSISTANT and told.content in outcome.details["replies"]:
            is_cut = said.finish_reason == "length"
            yield [Said(told.role, told.content), Said(ASSISTANT, said.content, place, is_cut=is_cut)]


def _details(scenario: PrefEvalScenario, state: Mapping[str, Any]) -> dict[str, Any]:
    """What exports build the whole conversation of, together with the scenario."""
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
            "correct": nodes.correct_letter(scenario),
            "choice": nodes.chosen(details["answer"]),
            "first_choice": nodes.chosen(state.get("first", "")),
        }
    return details
