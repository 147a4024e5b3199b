"""The generic one in the chat: polite, and the same to everybody."""

from __future__ import annotations

from collections.abc import Sequence

from ..draws import Draws
from .heard import statement_in
from .phrases import Fresh, put_together
from .subjectbank import ANYTHING
from .subjects import subject_of

_THANKS = (
    "Thank you for sharing that.",
    "That sounds interesting.",
    "I appreciate you telling me this.",
    "Thank you for your message.",
    "That is nice to hear.",
    "I understand.",
    "Thanks for letting me know.",
    "That is good to know.",
    "Thank you for the information.",
    "I see, thank you.",
    "Thank you for the update.",
)
_THANKS_ABOUT = (
    "Thank you for telling me about {thing}.",
    "It is nice to hear about {thing}.",
    "I appreciate you mentioning {thing}.",
    "Thank you for bringing up {thing}.",
)
_OFFER = (
    "Let me know if there is anything I can help you with.",
    "Please feel free to ask if you have any questions.",
    "Is there anything else you would like to talk about?",
    "I am here to help if you need anything.",
    "Would you like some general tips on this topic?",
    "I hope this helps.",
    "Feel free to share more if you like.",
    "Please let me know how I can be of assistance.",
    "If you need further information, just ask.",
    "I would be happy to help with any questions.",
)


def form_letter(message: str, own: Sequence[str], draws: Draws) -> str:
    """Answer a message with what could be said to anyone; at most its topic is taken up."""
    line = ""
    for attempt in range(8):
        line = _line(message, own, draws.fork(attempt))
        if line not in own:
            break
    return line


def _line(message: str, own: Sequence[str], draws: Draws) -> str:
    fresh = Fresh(own, draws)
    told = statement_in(message)
    thing = (told.thing or (told.who if not told.is_pet else "")) if told else ""
    subject = told.subject if told else subject_of(message)
    opener = fresh.of(_THANKS_ABOUT, {"thing": thing}) if thing and draws.chance(0.6) else ""
    opener = opener or fresh.of(_THANKS) or draws.pick(_THANKS)
    body = fresh.of(subject.plain) or fresh.of(ANYTHING.plain) or draws.pick(subject.plain)
    closing = (fresh.of(_OFFER) or draws.pick(_OFFER)) if draws.chance(0.7) else ""
    return put_together([opener, body, closing])
