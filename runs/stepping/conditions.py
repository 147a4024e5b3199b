"""Conditions: where `until` and `break` stop, as a person writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2 import TemplateError

from dialoom.errors import DialoomError
from dialoom.runs.expressions import NotYetError, Unknown, compiled

from .values import plain

_COUNTER = re.compile(r"(\w+)\s+(\d+)")


class ConditionError(DialoomError):
    """A condition that cannot be read, or not be told of a state."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a conversation stands, as conditions see it.

    Attributes:
        next_nodes: The nodes that come next.
        next_roles: The roles that these will ask.
        counts: How far the conversation is, in the recipe's units.
        state: The values of the graph's channels.
    """

    next_nodes: tuple[str, ...]
    next_roles: frozenset[str]
    counts: Mapping[str, int]
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was understood.

    Attributes:
        text: As it was written.
    """

    text: str
    _holds: Callable[[Position], bool] = field(repr=False, compare=False)

    @classmethod
    def parse(
        cls,
        text: str,
        nodes: Collection[str],
        roles: Collection[str],
        counted: Collection[str],
        channels: Collection[str] = (),
    ) -> Condition:
        """A condition out of its text: a node, a role, `COUNTER N` or a Jinja2 expression over the state.

        Args:
            text: What was written. A name of both a node and a role is the node's.
            nodes: The graph's nodes.
            roles: The recipe's roles.
            counted: The recipe's counters, e.g. `turn`.
            channels: The names that a state can have, if they are known. Others are then refused at once, and one that
                has no value yet only means that the condition is not met.

        Raises:
            ConditionError: If it is none of these.
        """
        text = text.strip()
        counter = _COUNTER.fullmatch(text)
        if text in nodes:
            return cls(text, lambda at: text in at.next_nodes)
        if text in roles:
            return cls(text, lambda at: text in at.next_roles)
        if counter and counter[1] in counted:
            word, least = counter[1], int(counter[2])
            return cls(text, lambda at: at.counts.get(word, 0) >= least)
        try:
            return cls(text, _expression(text, channels))
        except TemplateError as error:
            forms = _forms(nodes, roles, counted)
            raise ConditionError(f"{text!r} is no condition ({error.message}); give {forms}") from error

    def is_met(self, at: Position) -> bool:
        """Whether it holds; what is asked of an item beyond a list's end does not hold yet.

        Raises:
            ConditionError: If an expression cannot be told, e.g. as it names what the state has not.
        """
        return self._holds(at)

    def __str__(self) -> str:
        return self.text


def _forms(nodes: Collection[str], roles: Collection[str], counted: Collection[str]) -> str:
    counters = ", ".join(f"{word} N" for word in counted) or "none here"
    return (
        f"a node ({', '.join(nodes)}), a role ({', '.join(roles)}), a counter and a number ({counters}), "
        "or an expression over the state, such as messages[-1].role == 'assistant'"
    )


def _expression(text: str, channels: Collection[str]) -> Callable[[Position], bool]:
    """Whether an expression is true; raises `TemplateError` if it is none, or says nothing about the state."""
    value, names = compiled(text)
    if not names:
        raise TemplateError("it names nothing of the state")
    if unknown := sorted(names.difference(channels)) if channels else []:
        raise TemplateError(f"there is no {unknown[0]!r}; the state has {', '.join(channels)}")

    def holds(at: Position) -> bool:
        later = {name: Unknown(name=name, exc=NotYetError) for name in channels}
        try:
            return bool(value({**later, **plain(at.state)}))
        except NotYetError:
            return False
        except Exception as error:  # whatever an expression raises is about the expression
            raise ConditionError(f"{text!r} cannot be told: {error}; the state has {', '.join(at.state)}") from error

    return holds
