"""PrefEval: a benchmark of following a preference after a long unrelated conversation (see `docs/prefeval.md`).

It follows sections 2.3 and 4 of the paper. The model's prompt is rendered at each call from the scenario and the
replies, so no checkpoint holds a long conversation.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Annotated, Any, TypedDict

import numpy as np

from dialoom.graphs.capabilities import (
    WithExports,
    WithFacets,
    WithGate,
    WithJudging,
    WithLabels,
    WithProgress,
    WithReport,
)
from dialoom.graphs.conversation import joined
from dialoom.graphs.embedding import EmbeddingRecipe, embed_as_rows, find_highest, find_local_embedder
from dialoom.graphs.gate.talk import GateLine, Talk
from dialoom.graphs.judge import Graph, Judge, add_judges
from dialoom.graphs.outcome import Judgement, Line, Outcome
from dialoom.graphs.stage import Scene, Stage, Update, node
from dialoom.graphs.tables import Facet
from dialoom.roles import UnparsedReplyError

from . import report
from .exports import EXPORTERS
from .results import ASSISTANT, CHECKERS, CHECKS, JUDGES, REPLY_TYPES, RIGHT, UNPARSED, build_checker_lines, find_error
from .scenario import (
    LINES_PER_TURN,
    Method,
    PrefEvalOptions,
    PrefEvalScenario,
    Task,
    build_conversation,
    convert_lines,
    find_explicit_preferences,
    find_own_lines,
    fold_conversation,
    plan_items,
)

LETTERS = "ABCD"

_ANSWER_LABEL = re.compile(
    r"\A[\s*_#]*(?:(?:my |the )?(?:new|revised|final|improved) )?(?:answer|response)[*_]*:[\s*_]*", re.I
)
_CHOICE_TAG = re.compile(r"<choice>(.*?)(?:</choice>|\Z)", re.I | re.S)
_LONE_LETTER = re.compile(r"[\s(\[*_'\"]*([A-D])[\s)\].:*_'\"]*")


class ItemState(TypedDict, total=False):
    """The state that is checkpointed.

    Attributes:
        task: The scenario's task, which the edges read.
        method: The scenario's method, which the edges read.
        position: The preference's position, initially that of the scenario.
        replies: The model's own replies to explicit preferences, by the preference's sentence.
        replies_broken_off: The provider's finish reasons of the replies that were cut off.
        retrieved: The messages that rag retrieved, as indices in the conversation before the question.
        question_sent: The user's last message, in the form in which it was sent.
        first: The first answer of self-critic.
        critique: The critique of self-critic.
        answer: The final answer; empty if the model gave none.
        broken_off: The provider's finish reason, if the answer was cut off.
        judgements: The judgements as plain values.
    """

    task: Task
    method: Method
    position: float
    replies: dict[str, str]
    replies_broken_off: dict[str, str]
    retrieved: list[int]
    question_sent: str
    first: str
    critique: str
    answer: str
    broken_off: str
    judgements: Annotated[list[dict[str, Any]], joined]


async def reply(state: ItemState, scene: Scene) -> Update:  # noqa: ARG001
    """Request the model's own replies to explicit preferences. All items of a model share these replies."""
    broken_off: dict[str, str] = {}

    async def to(preference: str) -> str:
        text = str(await scene.ask_common("prefeval/reply", history=[{"speaker": "user", "content": preference}]))
        if scene.finish_reason is not None:  # it belongs to this reply, because nothing was awaited since
            broken_off[preference] = scene.finish_reason
        return text

    preferences = find_explicit_preferences(scene.scenario)
    update: Update = {"replies": dict(zip(preferences, await asyncio.gather(*map(to, preferences)), strict=True))}
    if broken_off:
        update["replies_broken_off"] = {each: broken_off[each] for each in preferences if each in broken_off}
    return update


async def retrieve(state: ItemState, scene: Scene[PrefEvalScenario]) -> Update:
    """Retrieve the messages that are most similar to the question, by the cosine of their embeddings.

    Single messages are retrieved, as in the release, rather than exchanges, as in the paper.
    """
    scenario = scene.scenario
    lines = build_conversation(scenario, state["replies"], state["position"])
    pool = {id(line): place for place, line in enumerate(scenario.distractors.value)}
    own = [line.content for line in lines if id(line) not in pool]
    shared = await embed_as_rows([line.content for line in scenario.distractors.value], scene, scenario.embedder)
    others = await embed_as_rows([scenario.pair.question, *own], scene, scenario.embedder)
    scores = np.empty(len(lines))
    scores[[place for place, line in enumerate(lines) if id(line) not in pool]] = others[1:] @ others[0]
    if len(shared):
        known = [(place, pool[id(line)]) for place, line in enumerate(lines) if id(line) in pool]
        scores[[place for place, _ in known]] = (shared @ others[0])[[at for _, at in known]]
    return {"retrieved": find_highest(scores, scenario.retrieved)}


async def answer(state: ItemState, scene: Scene) -> Update:
    """Request the answer, or the first answer of self-critic."""
    prompt = PROMPTS[state["method"]]
    inputs = _build_inputs(state, scene)
    if state["method"] == "rag":
        inputs["retrieved"] = [inputs["history"][place] for place in state["retrieved"]]
    sent = scene.render(prompt, **{**inputs, "history": []})[-1]["content"]
    text = await _ask_assistant(scene, prompt, inputs)
    # If self-critic has no first answer, there is nothing to criticise.
    is_last = state["method"] != "self-critic" or not text
    return {"question_sent": sent, **(_build_answer_update(text, scene) if is_last else {"first": text})}


async def criticise(state: ItemState, scene: Scene) -> Update:
    """Request the critique of the first answer."""
    return {"critique": await _ask_assistant(scene, "prefeval/critique", _build_self_critic_inputs(state, scene))}


async def revise(state: ItemState, scene: Scene) -> Update:
    """Request the answer that follows the critique. If there is no critique, the answer is empty."""
    if not state["critique"]:
        return {"answer": ""}
    inputs = {**_build_self_critic_inputs(state, scene), "critique": state["critique"]}
    return _build_answer_update(
        _ANSWER_LABEL.sub("", await _ask_assistant(scene, "prefeval/revision", inputs)).strip(), scene
    )


def _build_answer_update(answer: str, scene: Scene) -> Update:
    return {"answer": answer, **({} if scene.finish_reason is None else {"broken_off": scene.finish_reason})}


def parse_choice(answer: str) -> str | None:
    """Return the letter of a choice, or `None`. The letter must be alone in its tag or in the answer."""
    tagged = _CHOICE_TAG.search(answer)
    found = _LONE_LETTER.fullmatch(tagged[1] if tagged else answer)
    return found[1] if found else None


def order_options(scenario: PrefEvalScenario) -> list[str]:
    """Return the options in the order in which they are shown; none for a free answer."""
    return [scenario.pair.options[place] for place in scenario.order]


def is_hit(scenario: PrefEvalScenario, state: ItemState) -> bool:
    """Return whether a retrieved message is one in which the user states the preference.

    In a choice, this is the user's last message, because the first only asks. It is unknown which message of a
    persona's talk mentions the preference, so each message of the user counts.
    """
    own = find_own_lines(scenario, state["replies"], state["position"])
    stating = own[::LINES_PER_TURN]
    return any(place in (stating[-1:] if scenario.pair.form == "choice" else stating) for place in state["retrieved"])


PROMPTS: dict[Method, str] = {
    "zero-shot": "prefeval/zero-shot",
    "reminder": "prefeval/reminder",
    "cot": "prefeval/cot",
    "rag": "prefeval/rag",
    "self-critic": "prefeval/zero-shot",
}


def _build_inputs(state: ItemState, scene: Scene[PrefEvalScenario]) -> dict[str, Any]:
    history = convert_lines(build_conversation(scene.scenario, state["replies"], state["position"]))
    return {"history": history, "question": scene.scenario.pair.question, "options": order_options(scene.scenario)}


def _build_self_critic_inputs(state: ItemState, scene: Scene) -> dict[str, Any]:
    """Return the inputs of self-critic's later prompts.

    The letter is a separate input, because tags in messages are escaped.
    """
    return {**_build_inputs(state, scene), "first": state["first"], "choice": parse_choice(state["first"]) or ""}


async def _ask_assistant(scene: Scene, prompt: str, inputs: dict[str, Any]) -> str:
    """Return the assistant's reply.

    If the model's reply is empty twice, an empty text is returned. It counts as a result, not as a failure.
    """
    try:
        return str(await scene.ask(prompt, **inputs))
    except UnparsedReplyError:
        return ""


class PrefEval(EmbeddingRecipe, WithJudging, WithFacets, WithReport, WithGate, WithLabels, WithProgress, WithExports):
    """A benchmark of whether an assistant still follows a preference after a long unrelated conversation (PrefEval)."""

    name = "prefeval"
    languages = ("en",)
    roles = {"assistant": 0.0, "judge": 0.0, "embedder": 0.0}
    reply_limits = {"assistant": 300}
    prompts = ("prefeval/*",)
    reply_types = REPLY_TYPES
    options_type = PrefEvalOptions
    formats = EXPORTERS
    scenario_type = PrefEvalScenario
    judges = JUDGES
    checks = CHECKS
    facets = (Facet("topic", splits=True, unit="topics"), Facet("turns", tells_length=True))
    evaluated = "assistant"
    report_tables = staticmethod(report.build_tables)
    charts = staticmethod(report.build_charts)

    def embeds(self, options: PrefEvalOptions) -> bool:
        """Return whether any item uses rag."""
        return "rag" in options.method

    def judges_used(self, options: PrefEvalOptions) -> Sequence[Judge]:
        """Return the checkers, if there are free answers."""
        return super().judges_used(options) if "generation" in options.task else ()

    def scenarios(
        self, options: PrefEvalOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PrefEvalScenario]:
        """Yield items by topic and pair; for each pair, one item for each combination of the axes' values."""
        if self.embeds(options):
            find_local_embedder(options.embedder)
        return plan_items(options, draw, note)

    def graph(self, options: PrefEvalOptions) -> Graph:
        """Return the graph: replies to preferences, then the method's nodes, then the checkers."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and not needed to read a run

        builder = StateGraph(ItemState, context_schema=Stage)
        for work in (reply, retrieve, answer, criticise, revise):
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
        """Return the initial state."""
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
        return Outcome(
            messages=tuple(_build_lines(scenario, state)),
            ended_by="error" if failed else answered if state.get("answer") else "empty_answer",
            counts={"turns": scenario.turns, "tokens": scenario.tokens},
            details=_build_details(scenario, state),
            judgements=tuple(Judgement.model_validate(value) for value in state.get("judgements", [])),
        )

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of judgements."""
        return {"judgement": len(state.get("judgements", []))}

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> list[Line]:
        """Return the checker's inputs as lines."""
        return build_checker_lines(judgement.metric, outcome)

    def derive_judgements(self, outcome: Outcome) -> Iterator[Judgement]:
        """Yield a judgement of whether a free answer is right, derived from the checkers' verdicts."""
        if any(judgement.metric in CHECKERS for judgement in outcome.judgements):
            if (error := find_error(outcome.judgements)) == UNPARSED:
                yield Judgement(metric=RIGHT, target=ASSISTANT, status="unparsed")
            else:
                yield Judgement(metric=RIGHT, target=ASSISTANT, score=error is None, explanation=error or "")

    def talks(self, scenario: PrefEvalScenario, outcome: Outcome) -> Iterator[Talk]:
        """Yield the model's own replies to preferences, and its answer to the question.

        The rest of the conversation is not checked, because it comes from data files. The text that the method adds to
        the question is left out.
        """
        facts = self.facts(scenario)
        own = list(_find_own_exchanges(outcome))
        yield from (Talk(each, facts, since=1) for each in own)
        if scenario.task == "generation" and outcome.details["answer"]:
            is_cut = outcome.messages[-1].finish_reason == "length"
            answer = GateLine(ASSISTANT, outcome.details["answer"], len(outcome.messages) - 1, is_cut=is_cut)
            lines = [*chain(*own), GateLine("user", scenario.pair.question), answer]
            yield Talk(lines, facts, outcome.ended_by, since=len(lines) - 1)

    def judged_about(self, scenario: PrefEvalScenario, judgement: Judgement) -> Mapping[str, Any]:
        """Return nothing, because annotators must not see the preference if the checker does not see it."""
        return {}


def _build_lines(scenario: PrefEvalScenario, state: Mapping[str, Any]) -> Iterator[Line]:
    replies, broken_off = state.get("replies", {}), state.get("replies_broken_off", {})
    yield from fold_conversation(scenario, replies, state.get("position", scenario.position), broken_off)
    for role, name in (("user", "question_sent"), ("first answer", "first"), ("critique", "critique")):
        if text := state.get(name):
            yield Line(role=role, content=text)
    if text := state.get("answer"):
        yield Line(role="assistant", content=text, finish_reason=state.get("broken_off"))


def _find_own_exchanges(outcome: Outcome) -> Iterator[list[GateLine]]:
    """Yield each preference to which the model itself has replied, with the reply."""
    for place, (statement, response) in enumerate(pairwise(outcome.messages), start=1):
        if response.role == ASSISTANT and statement.content in outcome.details["replies"]:
            yield [
                GateLine(statement.role, statement.content),
                GateLine(ASSISTANT, response.content, place, is_cut=response.finish_reason == "length"),
            ]


def _build_details(scenario: PrefEvalScenario, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data that exports need, besides the scenario, to rebuild the conversation."""
    details = {
        "preference": scenario.pair.preference,
        "question": scenario.pair.question,
        **{name: state[name] for name in ("position", "replies", "first", "critique") if state.get(name) is not None},
        "answer": state.get("answer", ""),
    }
    if "retrieved" in state:
        found: Any = state
        details |= {"retrieved": state["retrieved"], "hit": is_hit(scenario, found)}
    if scenario.task == "classification":
        details |= {
            "options": order_options(scenario),
            "correct": LETTERS[scenario.order.index(0)],  # the first stored option is the correct one
            "choice": parse_choice(details["answer"]),
            "first_choice": parse_choice(state.get("first", "")),
        }
    return details


RECIPE = PrefEval()
