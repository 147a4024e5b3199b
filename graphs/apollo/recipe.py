"""The APOLLO recipe: samples from a source, the agent's graph, and its outcomes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from dialoom.graphs.capabilities import (
    WithComparison,
    WithExports,
    WithGate,
    WithJudging,
    WithLabels,
    WithProgress,
)
from dialoom.graphs.check import Check
from dialoom.graphs.embedding import PROMPT as EMBEDDER_PROMPT
from dialoom.graphs.embedding import REPLY_TYPE, EmbeddingRecipe, Embeddings, embedder_here
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.judge import Case, Judge
from dialoom.graphs.outcome import Judgement, Line, Outcome
from dialoom.graphs.recipe import Graph
from dialoom.graphs.reporting import Chart, Facet, Runs, Table
from dialoom.graphs.stage import Stage, node

from . import nodes, report
from .errors import LABELS, label_of
from .exports import EXPORTERS
from .loop import calls_of, flags_of, outputs_of, turns_of
from .nodes import AgentState
from .options import ApolloOptions
from .planning import samples
from .scenario import ApolloScenario


def _asked_about(scenario: ApolloScenario) -> dict[str, Any]:
    return {name: scenario.described()[name] for name in ("request", "preference", "gold")}


def _attempt(scenario: ApolloScenario, outcome: Outcome) -> Iterator[Case]:
    """Yield a case with the request, the gold calls, and the last attempt as people read it."""
    yield Case(None, {**_asked_about(scenario), "transcript": nodes.last_attempt(scenario, outcome)})


class Apollo(EmbeddingRecipe, WithJudging, WithComparison, WithGate, WithLabels, WithProgress, WithExports):
    """An agent with tools, a request, and among past conversations one that says how it is to be done."""

    name = "apollo"
    summary = "Whether an agent with tools does as its user once told an assistant (APOLLO)."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {"assistant": 0.0, "memory": 0.0, "embedder": 0.0, "judge": 0.0}
    prompts = ("apollo/agent", "apollo/calling", "apollo/unanswered", "apollo/notes", EMBEDDER_PROMPT)
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {
        "preference-notes": nodes.PreferenceNotes,
        "error-label": nodes.ErrorLabel,
        REPLY_TYPE: Embeddings,
    }
    options_type = ApolloOptions
    formats = EXPORTERS
    scenario_type = ApolloScenario
    metrics = ("accuracy", "f1", *LABELS)
    judges = (
        Judge(
            "error",
            prompt="apollo/judge-error",
            labels=tuple(LABELS),
            node="label",
            when=lambda _, outcome: not outcome.details["scores"]["accuracy"],  # only failed samples have an error
            cases=_attempt,
            read=lambda reply: (reply.label, reply.explanation),
        ),
    )
    checks = (
        Check("accuracy", lambda sample: bool(sample.outcome.details["scores"]["accuracy"])),
        Check("f1", lambda sample: round(float(sample.outcome.details["scores"]["f1"]), 6)),
    )
    facets = (Facet("user", splits=True), Facet("pair", unit="pairs"))
    evaluated = "assistant"

    def embeds(self, options: ApolloOptions) -> bool:
        """Return whether any sample is played with rag."""
        return "rag" in options.framework

    def roles_used(self, options: ApolloOptions) -> Mapping[str, float]:
        """Return the roles used: the agent; the note taker with memory; the embedder for rag with a model."""
        used = super().roles_used(options)
        return {role: value for role, value in used.items() if role != "memory" or "memory" in options.framework}

    def judges_used(self, options: ApolloOptions) -> Sequence[Judge]:  # noqa: ARG002
        """Return no judge: samples are judged only after the run."""
        return ()

    def scenarios(
        self,
        options: ApolloOptions,
        draw: random.Random,  # noqa: ARG002
        note: Callable[[str], None],
    ) -> Iterator[ApolloScenario]:
        """Yield samples by pair, along the axes. All random draws were made when the source was built."""
        if self.embeds(options):
            embedder_here(options.embedder)
        return samples(options, note)

    def graph(self, options: ApolloOptions) -> Graph:  # noqa: ARG002
        """Return the graph: preparation, agent and tools in turn, scores; with reflexion, further attempts."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and not needed to read a run

        builder = StateGraph(AgentState, context_schema=Stage)
        for work in (nodes.prepare, nodes.agent, nodes.tools, nodes.score):
            builder.add_node(work.__name__, node(work))

        async def after_score(state: AgentState) -> str:
            return END if state.get("is_scored") else "agent"

        builder.add_edge(START, "prepare")
        builder.add_edge("prepare", "agent")
        builder.add_conditional_edges("agent", nodes.after_agent, ["tools", "agent", "score"])
        builder.add_conditional_edges("tools", nodes.after_tools, ["agent", "score"])
        builder.add_conditional_edges("score", after_score, ["agent", END])
        return builder

    def initial(self, scenario: ApolloScenario) -> dict[str, Any]:
        """Return the initial state."""
        played = scenario.played
        start = {"framework": played.framework, "turn_limit": played.turn_limit}
        return {**start, "is_native": False, "messages": [], "began": [0]}

    def outcome(self, scenario: ApolloScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the agent's calls and their scores."""
        given: Any = state
        is_native, attempts = given["is_native"], nodes.attempts_of(given)
        turns, outputs = turns_of(attempts[-1], is_native), outputs_of(attempts[-1])
        pair, calls = scenario.pair, calls_of(turns)
        flags = flags_of(turns, outputs, given.get("unread", ()))
        details: dict[str, Any] = {
            "request": pair.query,
            "tools": list(scenario.case.value.tools),
            "gold": pair.calls(),
            "calls": calls,
            "outputs": outputs,
            "protocol": "native" if is_native else "text",
            "flags": flags,
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
            messages=tuple(nodes.shown_lines(scenario, given)),
            ended_by="error" if failed else nodes.ended_by(given),
            counts={"turns": len(turns), "calls": len(calls), "attempts": len(attempts)},
            details=details,
        )

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of the agent's turns and calls."""
        turns = turns_of(state.get("messages", []), state.get("is_native", False))
        return {"turn": len(turns), "call": len(calls_of(turns))}

    def compared(self, runs: Runs) -> list[Table]:
        """Return accuracy and F1 by length, form, framework and the other axes."""
        return report.compared(runs)

    def charts(self, runs: Runs) -> list[Chart]:
        """Return accuracy by length, position and framework, where there are several."""
        return report.charts(runs)

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> list[Line]:  # noqa: ARG002
        """Return all lines: they contain no scores."""
        return list(outcome.messages)

    def judged_about(self, scenario: ApolloScenario, judgement: Judgement) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the judge's other inputs, without the rest of a long history."""
        return _asked_about(scenario)

    def talks(self, scenario: ApolloScenario, outcome: Outcome) -> Iterable[Talk]:  # noqa: ARG002
        """Return no conversations: only the agent speaks, and calls are no conversation."""
        return ()
