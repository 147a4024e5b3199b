"""Gold calls: a flow run for a preference and a request, on the executor that serves agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from ..draws import Row
from ..executor import Output, execute
from ..scores import compare
from ..tools import Value
from ..world import World
from .catalogue import FLOWS
from .expressions import (
    Above,
    Among,
    Bands,
    Const,
    Expression,
    Flow,
    FlowStep,
    If,
    Pick,
    Pref,
    Preference,
    Provenance,
    Query,
    User,
    of_row,
)

Slots = Mapping[str, Value]


class Resident(NamedTuple):
    """Where somebody lives: a city, and the addresses of home and work."""

    city: str
    home: str
    work: str


@dataclass(frozen=True, slots=True)
class GoldCall:
    """A call that should be made.

    Attributes:
        provenance: Where each argument is from: the request (`query`), what is known of the `user`, the `preference`,
            the `output` of an earlier call, or the flow itself (`constant`).
    """

    name: str
    arguments: Mapping[str, Value]
    provenance: Mapping[str, Provenance]

    def call(self) -> dict[str, Any]:
        """As it is made."""
        return {"name": self.name, "arguments": dict(self.arguments)}


@dataclass(frozen=True, slots=True)
class Gold:
    """What should be done for a request.

    Attributes:
        calls: In order.
        outputs: What each of them answers.
        used: Facets of the preference that decided something.
        picked_from: The rows that one was to be picked from, and how many of them the preference wants; None where
            nothing is picked.
        gaps: How far what was looked up is from the limits of a rule, and how far it should be, each.
    """

    calls: tuple[GoldCall, ...]
    outputs: tuple[Output, ...]
    used: frozenset[str]
    picked_from: tuple[int, int] | None
    gaps: tuple[tuple[float, float], ...]

    def plain(self) -> list[dict[str, Any]]:
        """The calls alone."""
        return [call.call() for call in self.calls]

    def same_calls(self, other: Gold) -> bool:
        """Whether the other says to do the same."""
        return compare(other.plain(), self.plain()).accuracy


@dataclass(frozen=True, slots=True)
class FlowRequest:
    """Somebody asks for what a flow does.

    Attributes:
        world: Where it takes place.
        preference: What decides it.
        resident: Who asks.
        slots: What the request says.
    """

    world: World
    preference: Preference
    resident: Resident
    slots: Slots

    @property
    def flow(self) -> Flow:
        """The flow."""
        return FLOWS[self.preference.flow]

    def gold(
        self,
        preference: Preference | None = None,
        *,
        said: Mapping[str, Mapping[str, Value]] | None = None,
        blind: bool = False,
    ) -> Gold:
        """What should be done. The calls end where no row is what the preference wants, or one cannot run.

        Args:
            preference: Another preference than the request's.
            said: What tools say otherwise than they do: columns of their output, by tool.
            blind: Whether the first row of a search is picked, whatever it is.
        """
        wanted = preference or self.preference
        return follow(wanted, self.resident, self.slots, partial(execute, self.world), said=said, blind=blind)


def follow(
    preference: Preference,
    resident: Resident,
    slots: Slots,
    answer: Callable[[Mapping[str, Any]], Output],
    *,
    said: Mapping[str, Mapping[str, Value]] | None = None,
    blind: bool = False,
) -> Gold:
    """What should be done by a preference's flow, one call after the other. They end where one cannot run.

    Args:
        preference: What decides it.
        resident: Who asks.
        slots: What the request says.
        answer: What a tool says to a call.
        said: As for `FlowRequest.gold`.
        blind: Likewise.
    """
    making = _Run(preference, resident, slots, answer, said or {}, blind)
    making.go(FLOWS[preference.flow])
    used, gaps = frozenset(making.used), tuple(making.gaps)
    return Gold(tuple(making.calls), tuple(making.outputs.values()), used, making.picked_from, gaps)


class _EndsHereError(Exception):
    """A search has nothing that is wanted, or a call cannot run."""


@dataclass(slots=True)
class _Run:
    preference: Preference
    resident: Resident
    slots: Slots
    answer: Callable[[Mapping[str, Any]], Output]
    said: Mapping[str, Mapping[str, Value]]
    blind: bool
    calls: list[GoldCall] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    picked_from: tuple[int, int] | None = None

    def go(self, flow: Flow) -> None:
        lookups = {step.tool: step for step in flow.lookups}
        with suppress(_EndsHereError):
            if isinstance(flow.last, If):
                self._call(flow.last.then if self._holds(flow.last, lookups) else flow.last.otherwise)
            else:
                for tool in self.preference.order:
                    self._call(lookups[tool])
                self._call(flow.last)

    def _holds(self, rule: If, lookups: Mapping[str, FlowStep]) -> bool:
        """Tests in the order of the preference, until it is decided."""
        either = rule.joined is None or self._pref(rule.joined) == "either"
        for test in sorted(rule.tests, key=lambda test: self.preference.order.index(test.lookup)):
            self._call(lookups[test.lookup])
            if self._passes(test) == either:
                return either
        return not either

    def _passes(self, test: Above | Among) -> bool:
        found = self.outputs[test.lookup][test.column]
        if isinstance(test, Among):
            return found in str(self._pref(test.named)).split(" or ")
        return self._is_above(found, test.limit, test.margin)

    def _is_above(self, number: float, limit: str, margin: float) -> bool:
        wanted = float(self.preference.values[limit])
        self.gaps.append((round(abs(number - wanted), 1), margin))
        self.used.add(limit)
        return number > wanted

    def _call(self, step: FlowStep) -> None:
        made = {name: self._value(expression) for name, expression in step.arguments.items()}
        arguments = {name: value for name, (value, _) in made.items()}
        call = GoldCall(step.tool, arguments, {name: provenance for name, (_, provenance) in made.items()})
        output = self.answer(call.call())
        self.outputs[step.tool] = {**output, **self.said.get(step.tool, {})} if isinstance(output, dict) else output
        self.calls.append(call)
        if "error" in output:
            raise _EndsHereError

    def _value(self, expression: Expression) -> tuple[Value, Provenance]:
        resident, slots = self.resident, self.slots
        match expression:
            case Query(slot):
                return slots[slot], "query"
            case User("city"):
                return resident.city, "user"
            case User("start"):
                return (resident.home if slots["start"] == "home" else resident.work), "user"
            case Pref(facet):
                return self._pref(facet), "preference"
            case Const(value):
                return value, "constant"
            case Bands():
                return self._banded(expression), "preference"
            case Pick():
                return self._picked(expression), "output"
        raise AssertionError(expression)

    def _pref(self, facet: str) -> Value:
        self.used.add(facet)
        return self.preference.values[facet]

    def _banded(self, bands: Bands) -> Value:
        """Used are the limits between which the number lies, and not the one behind the next."""
        number = self.outputs[bands.lookup][bands.column]
        low, high = bands.limits
        band = self._is_above(number, low, bands.margin) + self._is_above(number, high, bands.margin)
        self.used -= {high} if band == 0 else {low} if band == 2 else set()
        return self._pref(bands.wanted[band])

    def _picked(self, pick: Pick) -> Value:
        rows = [_spelled_out(row, pick.column) for row in self.outputs[pick.search]]
        facet = next(name for name in pick.by if name in self.preference.values)
        wanted = self._pref(facet)
        matches = [row for row in rows if self.blind or of_row(row, facet) == wanted]
        self.picked_from = (len(rows), len(matches))
        if not matches:
            raise _EndsHereError
        return str(matches[0][pick.column])


def _spelled_out(row: Row, id_column: str) -> Row:
    """A row with names for its columns, as some come as an id with a category."""
    if id_column in row:
        return row
    ((row_id, category),) = row.items()
    return {id_column: row_id, "category": category}
