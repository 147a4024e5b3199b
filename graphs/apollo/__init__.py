"""APOLLO: a benchmark of agents with tools that should follow a preference stated earlier (see `docs/apollo.md`).

Samples are planned for every combination of the axes; the agent's graph plays each sample.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from dialoom.graphs.capabilities import (
    WithExports,
    WithFacets,
    WithGate,
    WithJudging,
    WithLabels,
    WithProgress,
    WithReport,
)
from dialoom.graphs.check import Check
from dialoom.graphs.embedding import EmbeddingRecipe, find_local_embedder
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.judge import Case, Graph, Judge
from dialoom.graphs.outcome import Judgement, Line, Outcome
from dialoom.graphs.recipe import RecipeError, chosen
from dialoom.graphs.scenario import Shared
from dialoom.graphs.stage import Stage, node
from dialoom.graphs.tables import Facet
from dialoom.personas.apollo.source import (
    ApolloHistory,
    ApolloMeta,
    ApolloPair,
    ApolloSource,
    HistoryError,
    build_history,
)

from . import nodes, report
from .exports import EXPORTERS
from .loop import LABELS, collect_calls, find_flags, label_error, message_turns, parse_outputs
from .nodes import AgentState
from .scenario import (
    TOKEN_COUNTERS,
    TOKENIZER_NAMES,
    ApolloCase,
    ApolloOptions,
    ApolloPerson,
    ApolloScenario,
    ApolloSetting,
    Framework,
)


def plan_samples(options: ApolloOptions, note: Callable[[str], None]) -> Iterator[ApolloScenario]:
    """Yield samples by pair, then by length (or number of sessions and position), evolving preferences, and framework.

    Raises:
        RecipeError: If an option's value is wrong, or a history cannot be built.
        DataError: If a source file is broken.
    """
    source = options.loaded()
    users = chosen("users", options.users, source.users)
    ids = set(users)
    if not (pairs := [pair for pair in source.pairs.values() if pair.user in ids]):
        raise RecipeError(f"users: the source has no pairs of {', '.join(users)}", setting="users")
    split = options.split_of(source)
    people = {
        id_: Shared(
            ApolloPerson(user=source.users[id_], unrelated=tuple(source.unrelated[id_]), split=split.get(id_, ""))
        )
        for id_ in users
    }
    settings = [Shared(_build_setting(options, source.meta, framework)) for framework in options.framework]
    asking = {pair.user for pair in pairs}
    note(f"{len(pairs)} pairs of {len(asking)} users; tokens are counted by {TOKENIZER_NAMES[options.tokenizer]}")
    if silent := [user for user in users if user not in asking]:
        note(f"no pairs of {', '.join(silent)}")
    borrowed = 0

    def planned() -> Iterator[ApolloScenario]:
        nonlocal borrowed
        for pair in pairs:
            who, cases = people[pair.user], dict[bool, Shared[ApolloCase]]()
            for length, made in _build_histories(options, source, pair):
                borrowed += bool(made.borrowed)
                stating = tuple(made.sessions[place - 1] for place in (*made.earlier, made.place))
                case = cases.setdefault(
                    bool(made.earlier),
                    Shared(ApolloCase(pair=pair, telling=stating, tools=made.tools, stale=made.stale)),
                )
                places = {session.id: place for place, session in enumerate(who.value.unrelated)}
                places |= {session.id: -1 - place for place, session in enumerate(case.value.telling)}
                order = tuple(places[session.id] for session in made.sessions)
                for setting in settings:
                    yield ApolloScenario(
                        who=who, case=case, setting=setting, length=length, tokens=made.tokens, order=order
                    )

    yield from islice(planned(), options.limit)
    if borrowed:
        note(f"in {borrowed:,} samples, some of the eight tools are not called in any session of the history")


def _build_histories(
    options: ApolloOptions, source: ApolloSource, pair: ApolloPair
) -> Iterator[tuple[int, ApolloHistory]]:
    """Yield each history after its requested length in tokens, which is 0 if a number of sessions was requested."""
    sizes: list[dict[str, int | None]] = [{"length": length} for length in options.lengths()]
    sizes += [
        {"sessions": sessions, "place": place}
        for sessions in options.history_sessions
        for place in options.places(sessions)
    ]
    for size, evolving in product(sizes, _EVOLVING_VALUES[options.evolving]):
        length, setting = size.get("length") or 0, "length" if "length" in size else "history_sessions"
        try:
            made = build_history(source, pair, counter=TOKEN_COUNTERS[options.tokenizer], evolving=evolving, **size)
        except HistoryError as error:
            raise RecipeError(f"{setting}: {error}", setting=setting) from error
        yield length, made


def _build_setting(options: ApolloOptions, meta: ApolloMeta, framework: Framework) -> ApolloSetting:
    """Return the settings of a framework.

    Settings that the framework does not use are empty, so that they do not change a sample's id.
    """
    return ApolloSetting(
        framework=framework,
        protocol=options.protocol,
        counter=TOKENIZER_NAMES[options.tokenizer],
        turn_limit=options.turn_limit,
        reflections=options.reflections if framework == "reflexion" else 0,
        embedder=options.embedder if framework == "rag" else "",
        world_seed=meta.world_seed,
        world=meta.world,
    )


_EVOLVING_VALUES = {"no": (False,), "yes": (True,), "both": (False, True)}


def _build_judge_inputs(scenario: ApolloScenario) -> dict[str, Any]:
    return {name: scenario.described()[name] for name in ("request", "preference", "gold")}


class Apollo(EmbeddingRecipe, WithJudging, WithFacets, WithReport, WithGate, WithLabels, WithProgress, WithExports):
    """A benchmark of whether an agent with tools follows a preference that its user stated earlier (APOLLO)."""

    name = "apollo"
    languages = ("en",)
    roles = {"assistant": 0.0, "memory": 0.0, "embedder": 0.0, "judge": 0.0}
    prompts = ("apollo/*",)
    reply_types = {
        "preference-notes": nodes.PreferenceNotes,
        "error-label": nodes.ErrorLabel,
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
            cases=lambda scenario, outcome: [
                Case(
                    None, {**_build_judge_inputs(scenario), "transcript": nodes.format_last_attempt(scenario, outcome)}
                )
            ],
            read=lambda reply: (reply.label, reply.explanation),
        ),
    )
    checks = (
        Check("accuracy", lambda sample: bool(sample.outcome.details["scores"]["accuracy"])),
        Check("f1", lambda sample: round(float(sample.outcome.details["scores"]["f1"]), 6)),
    )
    facets = (Facet("user", splits=True), Facet("pair", unit="pairs"))
    evaluated = "assistant"
    report_tables = staticmethod(report.build_tables)
    charts = staticmethod(report.build_charts)

    def embeds(self, options: ApolloOptions) -> bool:
        """Return whether any sample uses rag."""
        return "rag" in options.framework

    def roles_used(self, options: ApolloOptions) -> Mapping[str, float]:
        """Return the roles used: the agent, the note taker if memory is used, and the embedder if rag uses a model."""
        used = super().roles_used(options)
        return {role: value for role, value in used.items() if role != "memory" or "memory" in options.framework}

    def judges_used(self, options: ApolloOptions) -> Sequence[Judge]:
        """Return no judges, because samples are judged only after the run."""
        return ()

    def scenarios(
        self, options: ApolloOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[ApolloScenario]:
        """Yield, for each pair, a sample for each combination of the axes' values.

        Nothing is drawn here: all draws were made when the source was built.
        """
        if self.embeds(options):
            find_local_embedder(options.embedder)
        return plan_samples(options, note)

    def graph(self, options: ApolloOptions) -> Graph:
        """Return the graph: preparation, then agent and tools in turn, then scores; reflexion adds further attempts."""
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
        start = scenario.played.model_dump(include={"framework", "turn_limit"})
        return {**start, "is_native": False, "messages": [], "began": [0]}

    def outcome(self, scenario: ApolloScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the outcome, with the agent's calls and their scores."""
        given: Any = state
        is_native, attempts = given["is_native"], nodes.split_attempts(given)
        turns, outputs = message_turns(attempts[-1], is_native), parse_outputs(attempts[-1])
        pair, calls = scenario.pair, collect_calls(turns)
        flags = find_flags(turns, outputs, given.get("unread", ()))
        details: dict[str, Any] = {
            "request": pair.query,
            "tools": list(scenario.case.value.tools),
            "gold": pair.calls(),
            "calls": calls,
            "outputs": outputs,
            "protocol": "native" if is_native else "text",
            "flags": flags,
            "error": label_error(pair.flow, pair.gold, calls, "asked" in flags),
            "scores": nodes.compute_scores(scenario, attempts[-1], is_native)._asdict(),
        }
        if earlier := attempts[:-1]:
            details["attempts"] = [collect_calls(message_turns(messages, is_native)) for messages in earlier]
        if "notes" in state:
            details["notes"] = state["notes"]
        if state.get("unread"):
            details["unread"] = state["unread"]
        if "retrieved" in state:
            details |= {"retrieved": state["retrieved"], "hit": scenario.place in state["retrieved"]}
        return Outcome(
            messages=tuple(nodes.build_lines(scenario, given)),
            ended_by="error" if failed else nodes.find_end_reason(given),
            counts={"turns": len(turns), "calls": len(calls), "attempts": len(attempts)},
            details=details,
        )

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of the agent's turns and calls."""
        turns = message_turns(state.get("messages", []), state.get("is_native", False))
        return {"turn": len(turns), "call": len(collect_calls(turns))}

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> list[Line]:
        """Return all lines of a sample. They contain no scores."""
        return list(outcome.messages)

    def judged_about(self, scenario: ApolloScenario, judgement: Judgement) -> Mapping[str, Any]:
        """Return the judge's other inputs: the request, the preference and the gold calls."""
        return _build_judge_inputs(scenario)

    def talks(self, scenario: ApolloScenario, outcome: Outcome) -> Iterable[Talk]:
        """Return no conversations: only the agent speaks, and its calls are not a conversation."""
        return ()


RECIPE = Apollo()
