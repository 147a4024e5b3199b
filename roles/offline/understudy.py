"""Who plays what: a function registers for a role, and each request goes to the one that fits it best."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from .draws import Draws
from .request import MarkedRequest


@dataclass(frozen=True)
class ToolTurn:
    """What an understudy does that is offered tools: words, and calls as pairs of a name and the arguments' JSON."""

    words: str = ""
    calls: tuple[tuple[str, str], ...] = ()


Understudy = Callable[[MarkedRequest, Draws], str | ToolTurn]
_BUILT_IN = (
    *("personalens", "aloe", "pools", "prefeval", "prefeval_pairs", "personalens_people", "apollo", "apollo_write"),
    "gate",
)
_PACKAGE = __name__.rpartition(".")[0]


class UnderstudyError(ValueError):
    """An understudy cannot answer: a mistake in the system's own module or data file."""


class NoUnderstudyError(UnderstudyError):
    """A request asks for a role that no understudy plays."""

    def __init__(self, system: str, role: str) -> None:
        """Name the role, its system, and the roles of that system (or of all) that are played."""
        self.role = role
        known = ", ".join(sorted({entry.role for entry in _of_system(system)})) or "none of its roles"
        whose = f" of {system!r}" if system else ""
        super().__init__(
            f"no understudy plays the role {role!r}{whose}: give it a model, or register a function for it with "
            f"@understudy({system or 'SYSTEM'!r}, {role!r}); understudies play {known}"
        )


class SilentUnderstudyError(UnderstudyError):
    """An understudy found no words: a bank or a slot of its data file has another name than it asks for."""

    def __init__(self, role: str, unsaid: Sequence[str]) -> None:
        """Name the role, and the banks that it asked for in vain, with their files."""
        found = "; ".join(dict.fromkeys(unsaid)) or "it gave an empty text without asking for any"
        super().__init__(f"the understudy of the role {role!r} found no words: {found}")


@dataclass(frozen=True)
class _Entry:
    system: str
    role: str
    marks: frozenset[str]
    when: Callable[[MarkedRequest], bool] | None
    play: Understudy

    def fit(self, request: MarkedRequest) -> tuple[bool, int]:
        """How well it fits: all its marks are there, and how many are."""
        present = sum(mark in request for mark in self.marks)
        suits = self.when is None or self.when(request)
        return present == len(self.marks) and suits, present + (self.when is not None and suits)


_entries: dict[tuple[object, ...], _Entry] = {}


def understudy(
    system: str, role: str, *, marks: Sequence[str] = (), when: Callable[[MarkedRequest], bool] | None = None
) -> Callable[[Understudy], Understudy]:
    """Register the decorated function as the one that plays a role of a system, and of no other.

    Args:
        system: What the ids of the system's prompts begin with: `lesson` for `lesson/tutor`.
        role: The role of these prompts.
        marks: Tags of parts that a request must hold. Of several functions that fit, the one with most marks plays; if
            none fits, the one that fits best does, so that a prompt with missing parts is answered too.
        when: A further condition; it counts as one mark.

    A function takes the `MarkedRequest` and `Draws` seeded by all that it holds, and gives the reply. Registering
    the same role and marks again replaces what was there, so a module can be loaded twice.
    """

    def register(function: Understudy) -> Understudy:
        entry = _Entry(system, role.lower(), frozenset(marks), when, function)
        _entries[system, entry.role, entry.marks, function.__qualname__ if when else ""] = entry
        return function

    return register


def plays(system: str, role: str) -> bool:
    """Tell whether any understudy plays a role of a system."""
    return any(entry.role == role.lower() for entry in _of_system(system))


def cast(request: MarkedRequest, system: str = "") -> Understudy:
    """Give the function that plays a request's role.

    Args:
        request: The request.
        system: Whose prompt it is; empty if nobody says. Then those of all systems are looked at, the shipped first.

    Raises:
        NoUnderstudyError: If nobody plays it.
    """
    fitting = [entry for entry in _of_system(system) if entry.role == request.role]
    if not fitting:
        raise NoUnderstudyError(system, request.role)
    # In the order in which they are named, not in that of their import: of equals, the first plays.
    shipped = [entry for name in _BUILT_IN for entry in fitting if entry.system == name]
    return max(shipped or fitting, key=lambda entry: entry.fit(request)).play


def _of_system(system: str) -> list[_Entry]:
    _load_built_in()
    return [entry for entry in _entries.values() if not system or entry.system == system]


@cache
def _load_built_in() -> None:
    for name in _BUILT_IN:
        importlib.import_module(f"{_PACKAGE}.{name}")
