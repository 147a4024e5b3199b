"""The judges, each a node of its own, so that they run side by side and each one's word is checkpointed.

Section 3 of the paper and figures 16 to 20; turn-level personalization is its figure 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import BaseMessage

from dialoom.graphs.conversation import utterances
from dialoom.graphs.judgement_scope import is_judged
from dialoom.graphs.outcome import Judgement
from dialoom.graphs.stage import Scene, Update
from dialoom.roles import UnparsedReplyError, Verdict

from .nodes import DialogueState

METRICS = ("task_completion", "personalization", "naturalness", "coherence")
_PROMPT = "personalens/judge-"
_WHOLE = {
    "judge_task_completion": ("task_completion", "assistant"),
    "judge_personalization": ("personalization", "assistant"),
    **{
        f"judge_{metric}_{target}": (metric, target)
        for metric in ("naturalness", "coherence")
        for target in ("user", "assistant")
    },
}
"""What the nodes of a whole dialogue judge: the metric and whose part."""

JudgeNode = Callable[[DialogueState, Scene], Awaitable[Update]]


async def task_completion(state: DialogueState, scene: Scene) -> Update:
    """Whether the goal was reached: sees the goal and the conversation only."""
    return _update(await _judged(scene, "task_completion", "assistant", state["messages"], goal=scene.scenario.goal))


async def personalization(state: DialogueState, scene: Scene) -> Update:
    """How well the help fitted the person, 1 to 4: sees everything."""
    context = scene.scenario.for_judge()
    return _update(await _judged(scene, "personalization", "assistant", state["messages"], **context))


async def personalization_by_turn(state: DialogueState, scene: Scene) -> Update:
    """Personalization after each assistant reply, on the conversation up to it."""
    messages, context = state["messages"], scene.scenario.for_judge()
    ends = [index + 1 for index, message in enumerate(messages) if message.name == "assistant"]
    judgements = await asyncio.gather(
        *(
            _judged(scene, "personalization", "assistant", messages[:end], turn=turn, **context)
            for turn, end in enumerate(ends, start=1)
        )
    )
    return _update(*judgements)


def quality(metric: str, target: str) -> JudgeNode:
    """A node that judges naturalness or coherence of one side's messages, 1 to 5: sees the conversation only."""

    async def judge(state: DialogueState, scene: Scene) -> Update:
        return _update(await _judged(scene, metric, target, state["messages"], asked=target))

    return judge


def unjudged(state: DialogueState) -> list[str]:
    """The nodes of those judgements of a whole dialogue that are not there yet."""
    return [name for name, thing in _WHOLE.items() if not is_judged(state["judgements"], *thing)]


def nodes(turn_scores: bool) -> dict[str, JudgeNode]:
    """The judges of a dialogue by the names of their nodes."""
    own: dict[str, JudgeNode] = {"task_completion": task_completion, "personalization": personalization}
    chosen = {name: own.get(metric) or quality(metric, target) for name, (metric, target) in _WHOLE.items()}
    if turn_scores:
        chosen["judge_personalization_by_turn"] = personalization_by_turn
    return chosen


async def _judged(
    scene: Scene,
    metric: str,
    target: str,
    messages: list[BaseMessage],
    turn: int | None = None,
    asked: str | None = None,
    **inputs: Any,
) -> Judgement:
    if asked is not None:
        inputs["target"] = asked
    try:
        reply = await scene.ask(f"{_PROMPT}{metric.replace('_', '-')}", history=utterances(messages), **inputs)
    except UnparsedReplyError as error:
        return Judgement(metric=metric, target=target, turn=turn, status="unparsed", explanation=str(error))
    score = reply.verdict if isinstance(reply, Verdict) else reply.score
    return Judgement(metric=metric, target=target, turn=turn, score=score, explanation=reply.explanation)


def _update(*judgements: Judgement) -> Update:
    return {"judgements": [judgement.model_dump(mode="json") for judgement in judgements]}
