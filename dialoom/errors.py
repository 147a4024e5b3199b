"""The errors that dialoom raises on purpose. This module is below all layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from dialoom.text import to_well_formed

if TYPE_CHECKING:
    from pydantic import ValidationError


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on how to resolve an error by an operation of dialoom.

    Example:
        >>> advice = dialoom.Advice("resume", "resume the run", {"path": "run.db"})
        >>> advice.action
        'resume'

    Attributes:
        action: The key of the advice, such as `resume`, for which each interface has its own wording.
        text: The advice as text that is valid in every interface.
        values: The parameters of the advice, such as the run's `path`.
    """

    action: str
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


class DialoomError(Exception):
    """Base of all errors that dialoom raises on purpose.

    Example:
        >>> try:
        ...     dialoom.play("personalens", path="wrong.db", concurrency=0)
        ... except dialoom.DialoomError as error:
        ...     print(error.setting)
        concurrency

    Args:
        message: What is wrong: the value, its place, and what would be valid. Options are called by their Python names.
        setting: The option that the error is about, such as `max_cost`.
        advice: What to do next.
    """

    def __init__(self, message: str = "", *, setting: str | None = None, advice: Advice | None = None) -> None:
        super().__init__(to_well_formed(message))  # the message may quote untrusted text
        self.setting = setting
        self.advice = advice

    @property
    def message(self) -> str:
        """The message without the advice."""
        return super().__str__()

    def __str__(self) -> str:
        return self.message if self.advice is None else f"{self.message}; {self.advice}"


class RunError(DialoomError):
    """A request that cannot be carried out with the given configuration."""


class SettingError(DialoomError):
    """A setting whose value is invalid, or that does not exist."""


class Problem(NamedTuple):
    """The first error that pydantic found.

    Attributes:
        place: Keys and indexes that lead to the value, joined by dots; empty if the whole value is invalid.
        message: What would be valid.
        value: The value that is invalid.
    """

    place: str
    message: str
    value: Any


def first_problem(error: ValidationError) -> Problem:
    """Return the first problem of a validation error; one clear problem is more useful than a list."""
    first = error.errors()[0]
    return Problem(".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, "), first["input"])
