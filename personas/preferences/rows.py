"""Pairs as rows of the files of PrefEval's release."""

from __future__ import annotations

from typing import Any

from .pair import PreferencePair

CHOICE_TALK = ("query", "assistant_options", "user_selection", "assistant_acknowledgment")
"""The talk of a choice: user, assistant, user, assistant."""

_LINES_PER_TURN = 2


def row_of(pair: PreferencePair) -> dict[str, Any]:
    """The pair as a row of its form's file in the release."""
    said = [line.content for line in pair.talk]
    if pair.form == "choice":
        conversation: dict[str, Any] = dict(zip(CHOICE_TALK, said, strict=True))
        options = {"options": list(pair.choices), "aligned_op": pair.choices[0]} if pair.choices else {}
        return {**texts_of(pair), "implicit_query": said[0], **options, "conversation": conversation}
    if pair.form == "persona":
        turns = zip(said[::_LINES_PER_TURN], said[1::_LINES_PER_TURN], strict=True)
        conversation = {str(number): {"user": user, "assistant": reply} for number, (user, reply) in enumerate(turns)}
        return {**texts_of(pair), **({"persona": pair.persona} if pair.persona else {}), "conversation": conversation}
    return texts_of(pair)


def texts_of(pair: PreferencePair) -> dict[str, Any]:
    """What every file's row of a pair has."""
    return {"preference": pair.preference, "question": pair.question, "explanation": pair.explanation}
