"""The state and the nodes of the benchmark: user and assistant in turn, and a judge beside the user's next message.

Section 3 of the paper. The assistant gets the plain conversation, no system prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage

from dialoom.graphs.aloe.nodes import spoken
from dialoom.graphs.aloe.scenario import PersonaScenario
from dialoom.graphs.conversation import appended, joined, lines, said, utterances
from dialoom.graphs.judgement_scope import is_judged
from dialoom.graphs.outcome import Judgement
from dialoom.graphs.stage import Scene, Update
from dialoom.roles import UnparsedReplyError


class TalkState(TypedDict, total=False):
    """What is checkpointed: the conversation, and the judgements as plain values."""

    messages: Annotated[list[BaseMessage], appended]
    judgements: Annotated[list[dict[str, Any]], joined]


async def user(state: TalkState, scene: Scene) -> Update:
    """The user's next message, from the whole persona."""
    messages = state["messages"]
    inputs: dict[str, Any] = {"history": utterances(messages), **_scenario(scene).persona()}
    reply = await scene.ask_user("aloe/user", lines(messages), str, **inputs)
    return {"messages": [said("user", spoken(reply, "aloe/user"), len(messages), scene.finish_reason)]}


async def assistant(state: TalkState, scene: Scene) -> Update:
    """The assistant, the system under test, answers."""
    messages = state["messages"]
    reply = await scene.ask("aloe/assistant", history=utterances(messages))
    return {"messages": [said("assistant", reply, len(messages), scene.finish_reason)]}


async def judge(state: TalkState, scene: Scene) -> Update:
    """How well the last answer suits the person: sees the persona, the message and the answer."""
    rounds = len(state["messages"]) // 2
    return {"judgements": [await _judged(scene, state["messages"], rounds)]}


async def judge_all(state: TalkState, scene: Scene) -> Update:
    """Judge each answer of a finished conversation that has no judgement yet."""
    rounds = [
        turn
        for turn in range(1, len(state["messages"]) // 2 + 1)
        if not is_judged(state["judgements"], "alignment", "assistant", turn)
    ]
    return {"judgements": await asyncio.gather(*(_judged(scene, state["messages"], turn) for turn in rounds))}


def is_over(state: TalkState, rounds: int) -> bool:
    """Whether the assistant has answered as often as it should."""
    return len(state["messages"]) >= 2 * rounds


async def _judged(scene: Scene, messages: Sequence[BaseMessage], turn: int) -> dict[str, Any]:
    message, answer = (str(each.content) for each in messages[2 * turn - 2 : 2 * turn])
    place = {"metric": "alignment", "target": "assistant", "turn": turn}
    try:
        reply = await scene.ask("aloe/judge-alignment", message=message, answer=answer, **_scenario(scene).persona())
    except UnparsedReplyError as error:
        return Judgement(**place, status="unparsed", explanation=str(error)).model_dump(mode="json")
    return Judgement(**place, score=reply.score, explanation=reply.explanation).model_dump(mode="json")


def _scenario(scene: Scene) -> PersonaScenario:
    scenario: PersonaScenario = scene.scenario
    return scenario
