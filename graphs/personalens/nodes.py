"""The state and the nodes of the dialogue: user and assistant in turn until the user is content or the limit is met.

Section 2.3 of the paper. A turn is one assistant reply followed by one user reply; after the user's TERMINATE the
assistant gives one last reply.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import BaseMessage

from dialoom.graphs.conversation import appended, joined, lines, said, utterances
from dialoom.graphs.outcome import Judgement
from dialoom.graphs.stage import Scene, Update
from dialoom.roles import UnparsedReplyError

from .scenario import PersonaLensScenario

END_MARKER = "TERMINATE"
_MARKER = re.compile(rf"\b{END_MARKER}\b[\s*_\"')\].!]*")
_BEFORE = re.compile(r"[^\s*_\"'(\[]")
"""What a line may end with before the marker: anything but spaces, emphasis, and what opens a quote or a bracket."""


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
    reply = await scene.ask_user("personalens/user", lines(messages), lambda text: without_marker(text)[0], **inputs)
    text, terminated = without_marker(reply)
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


def is_awaiting_assistant(state: DialogueState) -> bool:
    """After the user: whether the assistant speaks next. At the limit, or after a bare TERMINATE, it does not."""
    return state["ended_by"] != "turn_limit" and state["messages"][-1].name == "user"


def is_over(state: DialogueState) -> bool:
    """After the assistant: whether that was its last reply."""
    return bool(state["ended_by"])


def without_marker(text: str) -> tuple[str, bool]:
    """A user's line without its TERMINATE, and whether it had one."""
    *parts, rest = _MARKER.split(text)
    # From the end of each part, not as a part of the expression: that would take the square of a million spaces.
    kept = [part[: len(part) - len(_ending(part))] for part in parts]
    return " ".join([*kept, rest]).strip(), bool(parts)


def _ending(part: str) -> str:
    """What of a text stands before the marker only to set it off."""
    end = len(part)
    while end and not _BEFORE.match(part[end - 1]):
        end -= 1
    return part[end:]


def judgements_of(state: dict[str, Any]) -> tuple[Judgement, ...]:
    """The state's judgements, as what they are."""
    return tuple(Judgement.model_validate(value) for value in state.get("judgements", []))
