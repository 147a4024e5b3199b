"""What is varied in PrefEval but the topic: the cells of its tables, and how they are told and grouped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

OWN_TURNS = 2
"""Of an item's turns: the preference's and the question's."""


class Length(NamedTuple):
    """How long a conversation is: in turns, or as many tokens as were asked for."""

    unit: str
    amount: int

    def __str__(self) -> str:
        return f"{self.amount:,} {self.unit}"


class Setting(NamedTuple):
    """What is varied, but for the topic.

    `retrieved` is 0 where nothing is. In the conflict setting the arm says what else is told, and `preferences` is 1.
    """

    model: str
    task: str
    form: str
    method: str
    retrieved: int
    length: Length
    position: float
    preferences: int
    arm: str

    @property
    def is_plain(self) -> bool:
        """Whether one preference stands at the start: what the tables by topic and length are about."""
        return not self.position and self.preferences == 1 and not self.arm

    def told(self, axis: str) -> str:
        """The value of an axis in words; empty where the axis says nothing."""
        if axis == "retrieved":
            return f"k={self.retrieved}" if self.retrieved else ""
        if axis == "position":
            return f"at {self.position:g}"
        if axis == "preferences":
            return "1 preference" if self.preferences == 1 else f"{self.preferences} preferences"
        return str(getattr(self, axis))


FACETS = {axis: axis for axis in Setting._fields if axis not in ("model", "length")}
"""The facets of items by the axes of tables; a length is of turns or of tokens."""


def facet_of(setting: Setting, axis: str) -> tuple[str, str] | None:
    """The facet of a setting's items that an axis stands for, and its value; `None` of a model."""
    if axis == "length":
        unit, amount = setting.length
        return ("token_limit", str(amount)) if unit == "tokens" else ("turns", str(amount - OWN_TURNS))
    return (FACETS[axis], str(getattr(setting, axis))) if axis in FACETS else None


def varying(settings: Sequence[Setting], but: Iterable[str] = (), always: Iterable[str] = ()) -> list[str]:
    """The axes in which settings differ.

    Args:
        settings: Some.
        but: Axes that are left out.
        always: Axes that are named even where all settings have the same.
    """
    out, named = set(but), set(always)
    axes = [axis for axis in Setting._fields if axis not in out]
    return [axis for axis in axes if axis in named or len({getattr(setting, axis) for setting in settings}) > 1]


def along(settings: Sequence[Setting], axis: str) -> list[Setting]:
    """Those that differ from another one in an axis alone."""
    return [setting for group in grouped(settings, but=(axis,)) if len(group) > 1 for setting in group]


def grouped(settings: Iterable[Setting], by: Iterable[str] = (), but: Iterable[str] = ()) -> list[list[Setting]]:
    """Settings with the same value of each axis of `by`, or of all but `but`, together, in their order."""
    axes = list(by) or [axis for axis in Setting._fields if axis not in set(but)]
    groups: dict[tuple[object, ...], list[Setting]] = {}
    for setting in settings:
        groups.setdefault(tuple(getattr(setting, axis) for axis in axes), []).append(setting)
    return list(groups.values())
