"""The errors that dialoom raises on purpose. This module is below all layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from dialoom.text import well_formed

if TYPE_CHECKING:
    from pydantic import ValidationError


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice for resolving an error, where dialoom itself can do it.

    Attributes:
        action: Its key, such as `resume`, by which an interface finds its own wording.
        text: The advice in words that hold in every interface.
        values: Its parameters, such as the run's `path`.
    """

    action: str
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


class DialoomError(Exception):
    """Base of all errors that dialoom raises on purpose.

    Args:
        message: What is wrong: the value, where it stands, and what would be right. An option is called by its Python
            name.
        setting: The option that the error is about, such as `max_cost`.
        advice: What to do next.
    """

    def __init__(self, message: str = "", *, setting: str | None = None, advice: Advice | None = None) -> None:
        super().__init__(well_formed(message))  # it may quote untrusted text
        self.setting = setting
        self.advice = advice

    @property
    def message(self) -> str:
        """The message without the advice."""
        return super().__str__()

    def __str__(self) -> str:
        return self.message if self.advice is None else f"{self.message}; {self.advice}"


class SettingError(DialoomError):
    """A setting whose value is invalid, or that does not exist."""


class Problem(NamedTuple):
    """The first thing that pydantic found wrong.

    Attributes:
        place: Keys and indexes that lead to the value, joined by dots; empty for the whole.
        message: What would be right.
        value: The value at that place.
    """

    place: str
    message: str
    value: Any


def first_problem(error: ValidationError) -> Problem:
    """Return the first problem of a validation error: one clear problem is more use than a list."""
    first = error.errors()[0]
    return Problem(".".join(map(str, first["loc"])), first["msg"], first["input"])
