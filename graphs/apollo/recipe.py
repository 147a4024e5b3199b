"""The APOLLO recipe: samples from a source, the agent's graph, and what comes out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from dialoom.graphs.capabilities import (
    Exporter,
    WithComparison,
    WithExports,
    WithGate,
    WithJudging,
    WithLabels,
    WithProgress,
    WithPrompts,
    WithRoles,
)
from dialoom.graphs.check import Check, Conversation
from dialoom.graphs.embedding import PROMPT as EMBEDDER_PROMPT
from dialoom.graphs.embedding import REPLY_TYPE, Embeddings, embedder_here, embedding_model
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.judge import Case, Judge
from dialoom.graphs.outcome import Episode, Judgement, Line, Outcome
from dialoom.graphs.recipe import Graph, Recipe
from dialoom.graphs.reporting.chart import Chart
from dialoom.graphs.reporting.facet import Facet
from dialoom.graphs.reporting.table import Table
from dialoom.graphs.stage import Stage, node

from . import exports, figures, nodes, report
from .errors import LABELS, label_of
from .loop import calls_of, flags_of
from .nodes import AgentState
from .options import ApolloOptions
from .planning import samples
from .scenario import ApolloScenario
from .shown import last_attempt, shown_lines
from .transcript import outputs_of, turns_of


def _is_wrong(_scenario: ApolloScenario, outcome: Outcome) -> bool:
    """Return whether a sample failed: of the others the scores say all."""
    return not outcome.details["scores"]["accuracy"]


def _attempt(scenario: ApolloScenario, outcome: Outcome) -> Iterator[Case]:
    """Yield the request, what would have been right, and the last attempt as a person reads it."""
    about = {name: scenario.described()[name] for name in ("request", "preference", "gold")}
    yield Case(None, {**about, "transcript": last_attempt(scenario, outcome)})


def _accuracy(sample: Conversation) -> bool:
    return bool(sample.outcome.details["scores"]["accuracy"])


def _f1(sample: Conversation) -> float:
    return round(float(sample.outcome.details["scores"]["f1"]), 6)


class Apollo(
    Recipe, WithRoles, WithPrompts, WithJudging, WithComparison, WithGate, WithLabels, WithProgress, WithExports
):
    """An agent with tools, a request, and among past conversations one that says how it is to be done."""

    name = "apollo"
    summary = "Whether an agent with tools does as its user once told an assistant (APOLLO)."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {"assistant": 0.0, "memory": 0.0, "embedder": 0.0, "judge": 0.0}
    prompts = (
        "apollo/agent",
        "apollo/calling",
        "apollo/unanswered",
        "apollo/notes",
        EMBEDDER_PROMPT,
    )
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {
        "preference-notes": nodes.PreferenceNotes,
        "error-label": nodes.ErrorLabel,
        REPLY_TYPE: Embeddings,
    }
    options_type = ApolloOptions
    scenario_type = ApolloScenario
    metrics = nodes.METRICS
    judges = (
        Judge(
            "error",
            prompt="apollo/judge-error",
            labels=tuple(LABELS),
            node="label",
            when=_is_wrong,
            cases=_attempt,
            read=lambda reply: (reply.label, reply.explanation),
        ),
    )
    checks = (Check("accuracy", _accuracy), Check("f1", _f1, scale=None))
    facets = (Facet("user", splits=True), Facet("pair", unit="pairs"))
    evaluated = "assistant"

    def roles_used(self, options: ApolloOptions) -> Mapping[str, float]:
        """The agent; who notes, for memory, and who embeds, for rag with a model."""
        by_model = "rag" in options.framework and embedding_model(options.embedder)
        wanted = {"assistant": True, "memory": "memory" in options.framework, "embedder": by_model}
        return {role: value for role, value in self.roles.items() if wanted.get(role)}

    def models_named(self, options: ApolloOptions) -> Mapping[str, str]:
        """The embedder's, where the option `embedder` is `litellm:MODEL`."""
        model = embedding_model(options.embedder)
        return {"embedder": model} if model and "rag" in options.framework else {}

    def scenarios(
        self,
        options: ApolloOptions,
        draw: random.Random,  # noqa: ARG002
        note: Callable[[str], None],
    ) -> Iterator[ApolloScenario]:
        """By pair, and for each pair along the axes. All that is drawn was drawn when the source was made."""
        if "rag" in options.framework:
            embedder_here(options.embedder)
        return samples(options, note)

    def graph(self, options: ApolloOptions) -> Graph:  # noqa: ARG002
        """What a framework needs, the agent and its tools in turn, the scores; with reflexion, once more."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and looking at a run needs no graph

        builder = StateGraph(AgentState, context_schema=Stage)
        for work in (nodes.prepare, nodes.agent, nodes.tools, nodes.score):
            builder.add_node(work.__name__, node(work))

        async def after_agent(state: AgentState) -> str:
            return nodes.after_agent(state)

        async def after_tools(state: AgentState) -> str:
            return nodes.after_tools(state)

        async def after_score(state: AgentState) -> str:
            return END if nodes.is_scored(state) else "agent"

        builder.add_edge(START, "prepare")
        builder.add_edge("prepare", "agent")
        builder.add_conditional_edges("agent", after_agent, ["tools", "agent", "score"])
        builder.add_conditional_edges("tools", after_tools, ["agent", "score"])
        builder.add_conditional_edges("score", after_score, ["agent", END])
        return builder

    def initial(self, scenario: ApolloScenario) -> dict[str, Any]:
        """Nothing done yet."""
        return {
            "framework": scenario.played.framework,
            "turn_limit": scenario.played.turn_limit,
            "is_native": False,
            "messages": [],
            "began": [0],
        }

    def outcome(self, scenario: ApolloScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """What was done, and what it is worth."""
        given: Any = state
        is_native, attempts = given["is_native"], nodes.attempts_of(given)
        turns, outputs = turns_of(attempts[-1], is_native), outputs_of(attempts[-1])
        pair, calls = scenario.pair, calls_of(turns)
        details: dict[str, Any] = {
            "request": pair.query,
            "tools": list(scenario.case.value.tools),
            "gold": pair.calls(),
            "calls": calls,
            "outputs": outputs,
            "protocol": "native" if is_native else "text",
            "flags": (flags := flags_of(turns, outputs, given.get("unread", ()))),
            "error": label_of(pair.flow, pair.gold, calls, "asked" in flags),
            "scores": nodes.scores_of(scenario, attempts[-1], is_native)._asdict(),
        }
        if earlier := attempts[:-1]:
            details["attempts"] = [calls_of(turns_of(messages, is_native)) for messages in earlier]
        if "notes" in state:
            details["notes"] = state["notes"]
        if state.get("unread"):
            details["unread"] = state["unread"]
        if "retrieved" in state:
            details |= {"retrieved": state["retrieved"], "hit": scenario.place in state["retrieved"]}
        return Outcome(
            messages=tuple(shown_lines(scenario, given)),
            ended_by="error" if failed else nodes.ended_by(given),
            counts={"turns": len(turns), "calls": len(calls), "attempts": len(attempts)},
            details=details,
        )

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """The agent's turns and calls."""
        turns = turns_of(state.get("messages", []), state.get("is_native", False))
        return {"turn": len(turns), "call": len(calls_of(turns))}

    def compared(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Table]:
        """Accuracy and F1 by length, form, framework and the rest."""
        return report.compared(runs)

    def charts(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Chart]:
        """Accuracy over lengths, places and frameworks, as far as there is something to draw."""
        return figures.charts(runs)

    def exporters(self) -> Mapping[str, Exporter]:
        """Samples with what was called, as rows."""
        return exports.EXPORTERS

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> list[Line]:  # noqa: ARG002
        """Everything: the scores say themselves what should have been called."""
        return list(outcome.messages)

    def judged_about(self, scenario: ApolloScenario, judgement: Judgement) -> Mapping[str, Any]:  # noqa: ARG002
        """What the judge is shown besides, and nothing of the rest of a long history."""
        return {name: scenario.described()[name] for name in ("request", "preference", "gold")}

    def talks(self, scenario: ApolloScenario, outcome: Outcome) -> Iterator[Talk]:  # noqa: ARG002
        """None: nobody but the agent speaks, and calls are no talk."""
        yield from ()
