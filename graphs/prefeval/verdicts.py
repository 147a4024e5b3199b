"""What the checkers' words come to: right, one of four error types, or unparsed. PrefEval, section 3.3."""

from __future__ import annotations

from collections.abc import Iterable

from dialoom.graphs.outcome import Judgement

CHECKERS = ("violates", "acknowledges", "hallucinates", "helpful")
CORRECT = "correct"
RIGHT = "right"
"""What the checkers' words come to together: an answer without an error."""
ASSISTANT = "assistant"

UNAWARE, HALLUCINATION, INCONSISTENCY, UNHELPFUL = "unaware", "hallucination", "inconsistency", "unhelpful"
ERROR_TYPES = (UNAWARE, HALLUCINATION, INCONSISTENCY, UNHELPFUL)
WRONG = "wrong"
"""The error of a choice among options."""
UNPARSED = "unparsed"
"""A checker's word could not be had: no success, and no error of a known type."""
UNJUDGED = "unjudged"
"""Nobody was asked."""


WHERE = {
    RIGHT: "helpful == 1 and violates == 0 and acknowledges is defined "
    "and (acknowledges == 0 or hallucinates is defined)",
    UNAWARE: "helpful == 1 and violates == 1 and acknowledges == 0",
    HALLUCINATION: "helpful == 1 and violates == 1 and acknowledges == 1 and hallucinates == 1",
    INCONSISTENCY: "helpful == 1 and violates == 1 and acknowledges == 1 and hallucinates == 0",
    UNHELPFUL: "helpful == 0 and violates is defined and acknowledges is defined "
    "and (acknowledges == 0 or hallucinates is defined)",
    UNPARSED: "judgements and (helpful is undefined or violates is undefined or acknowledges is undefined "
    "or acknowledges == 1 and hallucinates is undefined)",
}
"""What `error_type` comes to, as expressions over an item with a free answer."""


def error_type(
    violates: bool | None, acknowledges: bool | None, hallucinates: bool | None, helpful: bool | None
) -> str | None:
    """The error of an answer; `None` if it is right.

    An answer that does not help is `unhelpful` whatever else it does: the paper's table leaves out those that violate
    as well, which would then be no error, while the released scripts count them so.

    Args:
        violates: Whether it goes against the preference; `None`, as for all others, if that could not be had.
        acknowledges: Whether it names a preference.
        hallucinates: Whether it names another one; looked at only if it names one.
        helpful: Whether it helps.
    """
    if violates is None or acknowledges is None or helpful is None or (acknowledges and hallucinates is None):
        return UNPARSED
    if not helpful:
        return UNHELPFUL
    if not violates:
        return None
    if not acknowledges:
        return UNAWARE
    return HALLUCINATION if hallucinates else INCONSISTENCY


def error_of(judgements: Iterable[Judgement]) -> str | None:
    """The error of an item by one set's judgements: as `error_type`, or `wrong` for a choice; `None` if it is right."""
    found = {judgement.metric: _word(judgement) for judgement in judgements if judgement.target == ASSISTANT}
    if CORRECT in found:
        is_correct = found[CORRECT]
        return UNPARSED if is_correct is None else None if is_correct else WRONG
    if not found.keys() & set(CHECKERS):
        return UNJUDGED
    return error_type(*(found.get(checker) for checker in CHECKERS))


def _word(judgement: Judgement) -> bool | None:
    return None if judgement.status != "ok" or judgement.score is None else bool(judgement.score)
