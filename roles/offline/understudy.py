"""Who plays what: a function registers for a role, and each request goes to the one that fits it best."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from .draws import Draws
from .request import MarkedRequest

Understudy = Callable[[MarkedRequest, Draws], str]
_BUILT_IN = ("personalens", "aloe", "pools")
_PACKAGE = __name__.rpartition(".")[0]


class NoUnderstudyError(ValueError):
    """A request asks for a role that no understudy plays."""

    def __init__(self, role: str) -> None:
        """Name the role and the roles that are played."""
        self.role = role
        known = ", ".join(sorted({entry.role for entry in _entries.values()}))
        super().__init__(
            f"no understudy plays the role {role!r}: give it a model, or register a function for it with "
            f"@understudy({role!r}); understudies play {known}"
        )


@dataclass(frozen=True)
class _Entry:
    role: str
    marks: frozenset[str]
    when: Callable[[MarkedRequest], bool] | None
    play: Understudy
    built_in: bool

    def fit(self, request: MarkedRequest) -> tuple[bool, int, bool]:
        """How well it fits: all its marks are there, how many are, and that it was not shipped with dialoom."""
        present = sum(mark in request for mark in self.marks)
        suits = self.when is None or self.when(request)
        return present == len(self.marks) and suits, present + (self.when is not None and suits), not self.built_in


_entries: dict[tuple[object, ...], _Entry] = {}


def understudy(
    role: str, *, marks: Sequence[str] = (), when: Callable[[MarkedRequest], bool] | None = None
) -> Callable[[Understudy], Understudy]:
    """Register the decorated function as the one that plays a role.

    Args:
        role: The role, as the prompt names it in `<role>`; "assistant" also plays requests that name none.
        marks: Tags of parts that a request must hold. Of several functions that fit, the one with most marks plays; if
            none fits, the one that fits best does, so that a prompt with missing parts is answered too.
        when: A further condition; it counts as one mark.

    A function takes the `MarkedRequest` and `Draws` seeded by all that it holds, and gives the reply. Registering
    the same role and marks again replaces what was there, so a module can be loaded twice.
    """

    def register(function: Understudy) -> Understudy:
        built_in = function.__module__.startswith(_PACKAGE + ".")
        name = function.__qualname__ if when else ""
        entry = _Entry(role.lower(), frozenset(marks), when, function, built_in)
        _entries[entry.role, entry.marks, name, built_in] = entry
        return function

    return register


def plays(role: str) -> bool:
    """Tell whether any understudy plays a role."""
    _load_built_in()
    return any(entry.role == role.lower() for entry in _entries.values())


def cast(request: MarkedRequest) -> Understudy:
    """Give the function that plays a request's role.

    Raises:
        NoUnderstudyError: If nobody does.
    """
    _load_built_in()
    fitting = [entry for entry in _entries.values() if entry.role == request.role]
    if not fitting:
        raise NoUnderstudyError(request.role)
    return max(fitting, key=lambda entry: entry.fit(request)).play


@cache
def _load_built_in() -> None:
    for name in _BUILT_IN:
        importlib.import_module(f"{_PACKAGE}.{name}")
