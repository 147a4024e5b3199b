"""Understudies: scripted stand-ins for a language model that are deterministic and work offline.

They play every role of every system from the messages that a real model would see, the prompt's id and its inputs. An
understudy follows the rules stated in its module; its text comes from templates in data files, filled with values from
the request. There is no learning and no understanding in it. An understudy is a test double and a demo: it shows that a
pipeline works, and its scores move in the expected direction. They are never evidence about any model, prompt or
dataset. A user's own system brings its own understudies: see `understudy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from dialoom.prompts import ToolDefinition

from .placeholder import placeholder_instance, placeholder_text
from .request import Draws, MarkedRequest, Part, SpokenLine, read_request
from .understudy import NoUnderstudyError, SilentUnderstudyError, ToolTurn, UnderstudyError, cast, plays, understudy
from .words import Words, heard, joined, noting_the_unsaid, tidy

SCRIPTED: frozenset[str] = frozenset({"attentive", "generic"})
"""Models that play a role by the understudy registered for it."""

MODELS: frozenset[str] = SCRIPTED | {"placeholder"}

__all__ = [
    "MODELS",
    "SCRIPTED",
    "Draws",
    "MarkedRequest",
    "NoUnderstudyError",
    "Part",
    "SilentUnderstudyError",
    "SpokenLine",
    "ToolTurn",
    "UnderstudyError",
    "Words",
    "heard",
    "joined",
    "play",
    "plays",
    "read_request",
    "tidy",
    "understudy",
]


def play(
    model: str,
    messages: Sequence[Mapping[str, object]],
    prompt: str,
    role: str,
    *,
    seed: int | None = None,
    inputs: Mapping[str, Any] | None = None,
    tools: Sequence[ToolDefinition] = (),
    reply_type: type[BaseModel] | None = None,
) -> ToolTurn:
    """Answer a chat request with text, with tool calls, or both.

    Args:
        model: "attentive" or "generic"; as an assistant the second ignores the person, as a judge it uses fewer
            criteria. "placeholder" plays any role with replies that are valid in form and carry no meaning.
        messages: OpenAI-style chat messages, with parts that are marked by tags.
        prompt: The prompt's id. It begins with the system, whose understudies alone are considered.
        role: The role to be played.
        seed: Varies the wording, never the decisions.
        inputs: The prompt's inputs.
        tools: The tools that the request offers.
        reply_type: The reply type; used by the placeholder only.

    Raises:
        ValueError: If the model is not one of `MODELS`, or the placeholder finds no instance of the reply type.
        NoUnderstudyError: If no understudy plays the role.
        SilentUnderstudyError: If the understudy found no text in its data file, and called no tool.
    """
    if model not in MODELS:
        raise ValueError(f"unknown offline model {model!r}; there are {', '.join(sorted(MODELS))}")
    request = read_request(messages, prompt, role, model=model, seed=seed, inputs=inputs, tools=tools)
    if model == "placeholder":
        if reply_type is not None:
            return ToolTurn(placeholder_instance(reply_type, request, request.draws()))
        return ToolTurn(placeholder_text(request, request.draws()))
    with noting_the_unsaid() as unsaid:
        reply = cast(request)(request, request.draws())
    turn = ToolTurn(reply) if isinstance(reply, str) else reply
    if not turn.words.strip() and not turn.calls:
        raise SilentUnderstudyError(request.role, unsaid)
    return turn
