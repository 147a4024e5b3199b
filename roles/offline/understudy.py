"""The registry of understudies: a function registers for a role, and each request goes to the best match."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from .request import Draws, MarkedRequest


@dataclass(frozen=True)
class ToolTurn:
    """An understudy's reply to a request with tools: text, and tool calls as pairs of name and arguments' JSON."""

    words: str = ""
    calls: tuple[tuple[str, str], ...] = ()


Understudy = Callable[[MarkedRequest, Draws], str | ToolTurn]
_BUILT_IN = ("personalens_assistant", "personalens_judges", "aloe", "prefeval", "people", "apollo", "gate")
_PACKAGE = __name__.rpartition(".")[0]


class UnderstudyError(ValueError):
    """An understudy cannot answer: an error in the system's own module or data file."""


class NoUnderstudyError(UnderstudyError):
    """A request calls a role that no understudy plays."""

    def __init__(self, system: str, role: str) -> None:
        """Set the message: the role, its system, and the roles of that system with an understudy."""
        self.role = role
        known = ", ".join(sorted(_roles(system))) or "none of its roles"
        super().__init__(
            f"no understudy plays the role {role!r} of {system!r}: give it a model, or register a function for it with "
            f"@understudy({system!r}, {role!r}); understudies play {known}"
        )


class SilentUnderstudyError(UnderstudyError):
    """An understudy found no text: a bank or a slot of its data file has another name than the code uses."""

    def __init__(self, role: str, unsaid: Sequence[str]) -> None:
        """Set the message: the role, and the banks that had no text, with their files."""
        found = "; ".join(dict.fromkeys(unsaid)) or "it gave an empty text without asking for any"
        super().__init__(f"the understudy of the role {role!r} found no words: {found}")


_registered: dict[tuple[str, str, frozenset[str]], Understudy] = {}
"""The understudies by system, role and marks."""


def understudy(system: str, role: str, *, marks: Sequence[str] = ()) -> Callable[[Understudy], Understudy]:
    """Register the decorated function as the understudy of a role in one system.

    Args:
        system: The first part of the ids of the system's prompts: `lesson` for `lesson/tutor`.
        role: The role of these prompts.
        marks: Tags of parts that a request must contain. Of several functions that match, the one with most marks is
            used; if none matches, the closest is, so that a prompt with missing parts is answered too.

    A function takes the `MarkedRequest` and `Draws` seeded by its content, and returns the reply. Registering the same
    role and marks again replaces the earlier function, so a module can be loaded twice.
    """

    def register(function: Understudy) -> Understudy:
        _registered[system, role.lower(), frozenset(marks)] = function
        return function

    return register


def plays(system: str, role: str) -> bool:
    """Return whether any understudy plays a role of a system."""
    return role.lower() in _roles(system)


def cast(request: MarkedRequest) -> Understudy:
    """Return the function that plays a request's role.

    Raises:
        NoUnderstudyError: If there is none.
    """
    system = request.prompt.partition("/")[0]
    if request.role not in (known := _roles(system)):
        raise NoUnderstudyError(system, request.role)

    def fit(marks: frozenset[str]) -> tuple[bool, int]:
        present = sum(mark in request for mark in marks)
        return present == len(marks), present

    return _registered[system, request.role, max(known[request.role], key=fit)]


def _roles(system: str) -> dict[str, list[frozenset[str]]]:
    """Return the roles of a system that understudies play, each with the marks of its understudies."""
    _load_built_in()
    found: dict[str, list[frozenset[str]]] = {}
    for known, role, marks in _registered:
        if known == system:
            found.setdefault(role, []).append(marks)
    return found


@cache
def _load_built_in() -> None:
    for name in _BUILT_IN:
        importlib.import_module(f"{_PACKAGE}.{name}")
