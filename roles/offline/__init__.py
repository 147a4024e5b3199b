"""Understudies: scripted stand-ins for a language model, deterministic, offline, and honest about it.

They play every role of every system from nothing but the messages that a real model would see. What one does follows
stated rules, which stand in its module; its words come from templates in data files, filled with what the request
shows. There is no learning and no understanding in it. An understudy is a test double and a demo: it shows that a
pipeline works, and its scores move in the direction that they should. They are never evidence about any model, prompt
or dataset. A system of your own brings its own understudies: see `understudy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialoom.prompts import ToolDefinition

from .draws import Draws
from .request import MarkedRequest, Part, SpokenLine, read_request
from .understudy import NoUnderstudyError, SilentUnderstudyError, ToolTurn, UnderstudyError, cast, plays, understudy
from .words import Words, heard, joined, noting_the_unsaid, tidy

MODELS: frozenset[str] = frozenset({"attentive", "generic"})

__all__ = [
    "MODELS",
    "Draws",
    "MarkedRequest",
    "NoUnderstudyError",
    "Part",
    "SilentUnderstudyError",
    "SpokenLine",
    "ToolTurn",
    "UnderstudyError",
    "Words",
    "answer",
    "heard",
    "joined",
    "play",
    "plays",
    "read_request",
    "tidy",
    "understudy",
]


def answer(
    model: str,
    messages: Sequence[Mapping[str, object]],
    *,
    seed: int | None = None,
    system: str = "",
    role: str = "",
) -> str:
    """Answer a chat request that offers no tools; as `play`, of which this gives the words."""
    return play(model, messages, seed=seed, system=system, role=role).words


def play(
    model: str,
    messages: Sequence[Mapping[str, object]],
    *,
    seed: int | None = None,
    system: str = "",
    role: str = "",
    tools: Sequence[ToolDefinition] = (),
) -> ToolTurn:
    """Answer a chat request with words, with calls of tools, or both.

    Args:
        model: "attentive" or "generic"; as an assistant the second ignores the person, as a judge it looks at less.
        messages: OpenAI-style chat messages. The parts that they mark by tags decide who answers, and what.
        seed: Varies the wording, never what is decided.
        system: Whose prompt it is, as the beginning of the prompt's id says; only its understudies are asked then.
        role: Who is asked. Without it, the messages name their role.
        tools: What the request offers.

    Raises:
        ValueError: The model is not one of `MODELS`.
        NoUnderstudyError: Nobody plays the role that the messages name.
        SilentUnderstudyError: Whoever plays it found no words in its data file, and called nothing.
    """
    if model not in MODELS:
        raise ValueError(f"unknown offline model {model!r}; there are {', '.join(sorted(MODELS))}")
    request = read_request(messages, model, role, tools)
    shown = [(part.tag, part.body) for part in request.shown]
    said = [(line.speaker, line.text, *line.calls) for line in request.lines]
    with noting_the_unsaid() as unsaid:
        reply = cast(request, system)(request, Draws(model, request.role, request.system, shown, said, seed))
    turn = ToolTurn(reply) if isinstance(reply, str) else reply
    if not turn.words.strip() and not turn.calls:
        raise SilentUnderstudyError(request.role, unsaid)
    return turn
