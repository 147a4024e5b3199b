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
        """Name the role, its system, and the roles of that system that are played."""
        self.role = role
        known = ", ".join(sorted({entry.role for entry in _of_system(system)})) or "none of its roles"
        super().__init__(
            f"no understudy plays the role {role!r} of {system!r}: give it a model, or register a function for it with "
            f"@understudy({system!r}, {role!r}); understudies play {known}"
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
    play: Understudy

    def fit(self, request: MarkedRequest) -> tuple[bool, int]:
        """How well it fits: all its marks are there, and how many are."""
        present = sum(mark in request for mark in self.marks)
        return present == len(self.marks), present


_entries: dict[tuple[str, str, frozenset[str]], _Entry] = {}


def understudy(system: str, role: str, *, marks: Sequence[str] = ()) -> Callable[[Understudy], Understudy]:
    """Register the decorated function as the one that plays a role of a system, and of no other.

    Args:
        system: What the ids of the system's prompts begin with: `lesson` for `lesson/tutor`.
        role: The role of these prompts.
        marks: Tags of parts that a request must hold. Of several functions that fit, the one with most marks plays; if
            none fits, the one that fits best does, so that a prompt with missing parts is answered too.

    A function takes the `MarkedRequest` and `Draws` seeded by all that it holds, and gives the reply. Registering
    the same role and marks again replaces what was there, so a module can be loaded twice.
    """

    def register(function: Understudy) -> Understudy:
        entry = _Entry(system, role.lower(), frozenset(marks), function)
        _entries[system, entry.role, entry.marks] = entry
        return function

    return register


def plays(system: str, role: str) -> bool:
    """Tell whether any understudy plays a role of a system."""
    return any(entry.role == role.lower() for entry in _of_system(system))


def cast(request: MarkedRequest) -> Understudy:
    """Return the function that plays a request's role.

    Raises:
        NoUnderstudyError: If nobody plays it.
    """
    system = request.prompt.partition("/")[0]
    fitting = [entry for entry in _of_system(system) if entry.role == request.role]
    if not fitting:
        raise NoUnderstudyError(system, request.role)
    return max(fitting, key=lambda entry: entry.fit(request)).play


def _of_system(system: str) -> list[_Entry]:
    _load_built_in()
    return [entry for entry in _entries.values() if entry.system == system]


@cache
def _load_built_in() -> None:
    for name in _BUILT_IN:
        importlib.import_module(f"{_PACKAGE}.{name}")
