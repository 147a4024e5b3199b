"""Scripted sessions piece by piece: up to the next call, and then on from what the tools have said."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..executor import Output
from ..flows import Preference, Resident, Slots, follow
from ..tools import TOOLS
from .errands import errand_scripts, errand_turns
from .pair import PreferenceForm
from .session import PastCall, Speech
from .telling import closing_turns, opening_turns


class SessionPiece(NamedTuple):
    """What is said, and the call that comes then; None at the end."""

    turns: Sequence[PastCall | Speech]
    call: dict[str, Any] | None


class _NextCallError(Exception):
    """There is no output yet for a call."""

    def __init__(self, call: Mapping[str, Any]) -> None:
        self.call = {"name": call["name"], "arguments": dict(call["arguments"])}


def told_piece(
    wanted: Preference,
    told: Preference,
    form: PreferenceForm,
    resident: Resident,
    slots: Slots,
    outputs: Sequence[Output] | None,
    draw: random.Random,
) -> SessionPiece:
    """The next piece of a session that tells a preference.

    Args:
        wanted: What the calls go by.
        told: What is said, which should be the same.
        form: How it is told.
        resident: Where the user lives.
        slots: What the session is about.
        outputs: What tools have said so far; None at the beginning.
        draw: Where words come from.
    """
    turns = opening_turns(told, slots, form, draw) if outputs is None else []
    try:
        made = follow(wanted, resident, slots, _answers(iter(outputs or ())))
    except _NextCallError as next_:
        return SessionPiece(turns, next_.call)
    return SessionPiece(closing_turns(made.calls[-1].name, made.outputs[-1], draw), None)


def errand_piece(tool: str, number: int, behind: int, outputs: Sequence[Output], draw: random.Random) -> SessionPiece:
    """The next piece of a session about an unrelated tool; the whole of it is drawn each time.

    Args:
        tool: What is called.
        number: Which of its scripts it goes by.
        behind: How many turns there are already.
        outputs: What the tool has said so far.
        draw: Where arguments and words come from, the same for all pieces of a session.
    """
    scripts, turns = errand_scripts(tool), list[PastCall | Speech]()
    try:
        for turn in errand_turns(TOOLS[tool], scripts[number % len(scripts)], {}, draw, _answers(iter(outputs))):
            turns.append(turn)
    except _NextCallError as next_:
        return SessionPiece(turns[behind:], next_.call)
    return SessionPiece(turns[behind:], None)


def _answers(outputs: Iterator[Output]) -> Callable[[Mapping[str, Any]], Output]:
    """What tools have said to one call after the other; the first that they have not answered is the next."""

    def answer(call: Mapping[str, Any]) -> Output:
        for output in outputs:
            return output
        raise _NextCallError(call)

    return answer
