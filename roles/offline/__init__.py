"""A scripted stand-in for a language model: deterministic, offline, and honest about it.

It plays the roles of a PersonaLens dialogue, the simulated user, the assistant and the judge, from nothing but the
messages that a real model would see. Its English comes from word banks and templates filled with what the request
shows; its judgements follow from what the judged lines contain. There is no learning and no understanding in it.

It is a test double and a demo: it shows that a pipeline works, and its scores move in the direction that they should.
They are never evidence about any model, prompt or dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .attentive import attentive_reply
from .chat import chat_answer, plays
from .draws import Draws
from .generic import generic_reply
from .judge import judgement
from .pools import pool_texts
from .tags import Request, read_request
from .user import user_line

MODELS: frozenset[str] = frozenset({"attentive", "generic"})

__all__ = ["MODELS", "answer"]


def answer(model: str, messages: Sequence[Mapping[str, str]], *, seed: int | None = None) -> str:
    """Answer a chat request.

    Args:
        model: "attentive" or "generic"; as an assistant the second ignores the person, as a judge it looks at less.
        messages: OpenAI-style chat messages. Parts marked by tags (`<role>`, `<affinities>`, ...) decide what to do.
        seed: Varies the wording, never what is decided.

    Raises:
        ValueError: The model is not one of `MODELS`.
    """
    if model not in MODELS:
        raise ValueError(f"unknown offline model {model!r}; there are {', '.join(sorted(MODELS))}")
    request = read_request(messages)
    if request.role == "writer":
        return pool_texts(messages, seed)
    if plays(request):
        return chat_answer(model, request, seed)
    if request.role == "judge":
        return judgement(model, request)
    stable = Draws(request.role, model if request.role != "user" else "", _stable_part(request))
    history = tuple(f"{line.speaker}: {line.text}" for line in request.conversation)
    wording = Draws(model, request.role, request.system, history, seed)
    if request.role == "user":
        return user_line(request, stable, wording)
    reply = attentive_reply if model == "attentive" else generic_reply
    return reply(request, stable, wording)


def _stable_part(request: Request) -> str:
    """Give what does not change during a dialogue: the system text, and for an assistant the first user line."""
    if request.role == "user":
        return request.system or str(request.demographics) + request.task
    opening = request.said_by("user")[:1]
    return request.system + "".join(opening)
