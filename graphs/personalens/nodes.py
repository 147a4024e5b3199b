"""The state and the nodes of the dialogue: user and assistant in turn until the user is content or the limit is met.

Section 2.3 of the paper. A turn is one assistant reply followed by one user reply; after the user's TERMINATE the
assistant gives one last reply.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import BaseMessage

from dialoom.graphs.conversation import appended, joined, lines, said, utterances
from dialoom.graphs.dialogue import without_marker
from dialoom.graphs.stage import Scene, Update
from dialoom.roles import UnparsedReplyError

from .scenario import PersonaLensScenario

END_MARKER = "TERMINATE"


class DialogueState(TypedDict, total=False):
    """What is checkpointed. The scenario is not part of it: it never changes, and is kept once.

    Attributes:
        messages: The conversation so far.
        turns: User replies after the opening.
        ended_by: Empty while the dialogue goes on.
        stripped: TERMINATE markers taken out of the opening, where they have no place.
        judgements: As plain values, in the order in which the judges' nodes stand in the graph.
    """

    messages: Annotated[list[BaseMessage], appended]
    turns: int
    ended_by: Literal["", "user_terminated", "turn_limit"]
    stripped: int
    judgements: Annotated[list[dict[str, Any]], joined]


async def user(state: DialogueState, scene: Scene) -> Update:
    """The user opens, or answers."""
    scenario: PersonaLensScenario = scene.scenario
    messages = state.get("messages", [])
    opening = not messages
    history = utterances(messages)
    inputs: dict[str, Any] = {"history": history, "opening": opening, **scenario.for_user()}
    reply = await scene.ask_user("personalens/user", lines(messages), without_end_marker, **inputs)
    text, terminated = without_marker(reply, END_MARKER)
    if opening:
        if not text:
            raise UnparsedReplyError("personalens/user", reply, "the opening is nothing but the end marker")
        return {
            "messages": [said("user", text, 0, scene.finish_reason)],
            "turns": 0,
            "ended_by": "",
            "stripped": int(terminated),
        }
    turns = state["turns"] + 1
    ended_by = "user_terminated" if terminated else "turn_limit" if turns >= scenario.turn_limit else ""
    line = [said("user", text, len(messages), scene.finish_reason)] if text else []
    return {"messages": line, "turns": turns, "ended_by": ended_by}


async def assistant(state: DialogueState, scene: Scene) -> Update:
    """The assistant, the system under test, answers."""
    scenario: PersonaLensScenario = scene.scenario
    prompt = "personalens/assistant-vanilla" if scenario.setting == "vanilla" else "personalens/assistant"
    messages = state["messages"]
    reply = await scene.ask(prompt, history=utterances(messages), **scenario.for_assistant())
    return {"messages": [said("assistant", reply, len(messages), scene.finish_reason)]}


def without_end_marker(text: str) -> str:
    """Return a user's message without TERMINATE."""
    return without_marker(text, END_MARKER)[0]


def is_awaiting_assistant(state: DialogueState) -> bool:
    """After the user: whether the assistant speaks next. At the limit, or after a bare TERMINATE, it does not."""
    return state["ended_by"] != "turn_limit" and state["messages"][-1].name == "user"


def is_over(state: DialogueState) -> bool:
    """After the assistant: whether that was its last reply."""
    return bool(state["ended_by"])
