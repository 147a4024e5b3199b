"""What a judgement is about, for whoever judges the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .outcome import Judgement, Line, Outcome


def conversation_to(outcome: Outcome, judgement: Judgement) -> Sequence[Line]:
    """The conversation as far as the judgement is about it: all of it, or to its turn.

    Turn k ends with the k-th message of the target. A target that says nothing in the conversation stands beside it:
    then turn k ends with the k-th message of whoever spoke first.
    """
    messages = outcome.messages
    if judgement.turn is None or not messages:
        return messages
    speakers = [line.role for line in messages]
    speaker = judgement.target if judgement.target in speakers else speakers[0]
    ends = [place for place, role in enumerate(speakers, start=1) if role == speaker]
    return messages[: ends[judgement.turn - 1]] if 1 <= judgement.turn <= len(ends) else messages


def is_judged(judgements: Iterable[Mapping[str, Any]], metric: str, target: str, turn: int | None = None) -> bool:
    """Whether a thing is judged already by one of these judgements, which are plain values as a state has them."""
    return any(
        (each["metric"], each["target"], each.get("turn")) == (metric, target, turn)
        and each.get("status") != "unparsed"
        for each in judgements
    )
