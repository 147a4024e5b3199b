"""The offline model in an open chat (ALOE): the person, the induction, both answerers, and the judges.

What a request marks with `<profile>` and `<personality>`, and the lines of the chat, are all that it relies on. A
statement is turned into the forms that a chat needs (`person`, `retold`), traits into manners (`manners`), and the rest
is remarks on corners of a daily life (`subjects`). As everywhere in the offline model, nothing is understood.
"""

from __future__ import annotations

from ..draws import Draws
from ..tags import Request
from .alignment import alignment_verdict, pair_verdict
from .formletter import form_letter
from .friend import friendly_reply, from_chat, from_induction
from .induction import induced
from .user import user_line

__all__ = ["chat_answer", "plays"]

_JUDGED = frozenset(("alignment", "pair"))


def plays(request: Request) -> bool:
    """Tell whether a request belongs to an open chat."""
    if request.role == "user":
        return request.profile is not None
    if request.role == "judge":
        return request.metric.strip().lower() in _JUDGED
    return request.role in ("induction", "preferred", "rejected") or (request.role == "assistant" and request.bare)


def chat_answer(model: str, request: Request, seed: int | None) -> str:
    """Answer a request of an open chat.

    Args:
        model: "attentive" or "generic".
        request: What is shown.
        seed: Varies what is told when, and the wording.
    """
    profile, personality = request.profile or "", request.personality or ""
    if request.role == "judge":
        if request.metric.strip().lower() == "pair":
            return pair_verdict(model, profile, personality, request.message, request.first, request.second)
        return alignment_verdict(model, profile, personality, request.message, request.answer)
    lines, replies = request.said_by("user"), request.said_by("assistant")
    if request.role == "induction":
        return induced(profile, personality, lines)
    history = tuple(f"{line.speaker}: {line.text}" for line in request.conversation)
    draws = Draws("chat", request.role, model if request.role != "user" else "", profile, personality, history, seed)
    if request.role == "user":
        return user_line(profile, personality, lines, replies, draws)
    message = lines[-1] if lines else ""
    if model == "generic" or request.role == "rejected":
        return form_letter(message, replies, draws)
    if request.role == "preferred":
        return friendly_reply(from_induction(profile, personality, lines, draws), message, replies, draws)
    return friendly_reply(from_chat(lines, draws), message, replies, draws)
