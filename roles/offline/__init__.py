"""Understudies: scripted stand-ins for a language model, deterministic, offline, and honest about it.

They play every role of every system from the messages that a real model would see, the prompt's id and its inputs. What
one does follows stated rules, which stand in its module; its words come from templates in data files, filled with what
the request shows. There is no learning and no understanding in it. An understudy is a test double and a demo: it shows
that a pipeline works, and its scores move in the direction that they should. They are never evidence about any model,
prompt or dataset. A system of your own brings its own understudies: see `understudy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from dialoom.prompts import ToolDefinition

from .draws import Draws
from .placeholder import placeholder_instance, placeholder_text
from .request import MarkedRequest, Part, SpokenLine, read_request
from .understudy import NoUnderstudyError, SilentUnderstudyError, ToolTurn, UnderstudyError, cast, plays, understudy
from .words import Words, heard, joined, noting_the_unsaid, tidy

SCRIPTED: frozenset[str] = frozenset({"attentive", "generic"})
"""Models that play a role by the understudy that is registered for it."""

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
    """Answer a chat request with words, with calls of tools, or both.

    Args:
        model: "attentive" or "generic"; as an assistant the second ignores the person, as a judge it looks at less.
            "placeholder" plays any role, in valid form and without meaning.
        messages: OpenAI-style chat messages, with parts that are marked by tags.
        prompt: The id of the prompt that they come from. It begins with the system, whose understudies alone are asked.
        role: Who is asked.
        seed: Varies the wording, never what is decided.
        inputs: What the prompt was rendered with.
        tools: What the request offers.
        reply_type: What the reply must be; only the placeholder reads it.

    Raises:
        ValueError: The model is not one of `MODELS`, or the placeholder finds no instance of the reply type.
        NoUnderstudyError: Nobody plays the role.
        SilentUnderstudyError: Whoever plays it found no words in its data file, and called nothing.
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
