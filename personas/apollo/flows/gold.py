"""Gold calls: the calls of a flow for a preference and a request, run by the executor that agents also use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from ..calls import Value
from ..executor import Output, execute
from ..scores import compare
from ..world import Row, World
from .catalogue import (
    FLOWS,
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
    get_facet_value,
)

Slots = Mapping[str, Value]


class Resident(NamedTuple):
    """A user's city, and the addresses of home and work."""

    city: str
    home: str
    work: str


@dataclass(frozen=True, slots=True)
class GoldCall:
    """An expected call.

    Attributes:
        provenance: The source of each argument: the request (`query`), the user's data (`user`), the `preference`, the
            `output` of an earlier call, or the flow itself (`constant`).
    """

    name: str
    arguments: Mapping[str, Value]
    provenance: Mapping[str, Provenance]

    def call(self) -> dict[str, Any]:
        """Return the call as plain values."""
        return {"name": self.name, "arguments": dict(self.arguments)}


@dataclass(frozen=True, slots=True)
class Gold:
    """The expected calls of a request.

    Attributes:
        calls: The calls in order.
        outputs: The results of the calls.
        used: The facets of the preference that influence the calls.
        picked_from: The number of rows of the search, and how many of them match the preference; None if no row is
            picked.
        gaps: For each limit of a rule, the distance of the looked-up number from it, and the required margin.
    """

    calls: tuple[GoldCall, ...]
    outputs: tuple[Output, ...]
    used: frozenset[str]
    picked_from: tuple[int, int] | None
    gaps: tuple[tuple[float, float], ...]

    def plain(self) -> list[dict[str, Any]]:
        """Return the calls as plain values."""
        return [call.call() for call in self.calls]

    def same_calls(self, other: Gold) -> bool:
        """Return whether another request's gold has the same calls."""
        return compare(other.plain(), self.plain()).accuracy


@dataclass(frozen=True, slots=True)
class FlowRequest:
    """A user's request for a flow.

    Attributes:
        world: The world.
        preference: The user's preference.
        resident: The user.
        slots: The values stated in the request.
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
        overrides: Mapping[str, Mapping[str, Value]] | None = None,
        blind: bool = False,
    ) -> Gold:
        """Return the expected calls. The calls end early if no row matches the preference, or if a call fails.

        Args:
            preference: A preference to use instead of the request's.
            overrides: Simulated results: columns that replace the real columns in a tool's output, by tool.
            blind: Whether to pick the first row of a search regardless of the preference.
        """
        preferred = preference or self.preference
        return follow_flow(
            preferred, self.resident, self.slots, partial(execute, self.world), overrides=overrides, blind=blind
        )


def follow_flow(
    preference: Preference,
    resident: Resident,
    slots: Slots,
    answer: Callable[[Mapping[str, Any]], Output],
    *,
    overrides: Mapping[str, Mapping[str, Value]] | None = None,
    blind: bool = False,
) -> Gold:
    """Return the expected calls of a preference's flow. The calls end early if a call fails.

    Args:
        preference: The preference.
        resident: The user.
        slots: The values stated in the request.
        answer: A function that returns a tool's result for a call.
        overrides: As for `FlowRequest.gold`.
        blind: As for `FlowRequest.gold`.
    """
    making = _Run(preference, resident, slots, answer, overrides or {}, blind)
    making.go(FLOWS[preference.flow])
    used, gaps = frozenset(making.used), tuple(making.gaps)
    return Gold(tuple(making.calls), tuple(making.outputs.values()), used, making.picked_from, gaps)


class _NoFurtherCallError(Exception):
    """A signal that the calls end here, because a search has no matching row or a call failed."""


@dataclass(slots=True)
class _Run:
    preference: Preference
    resident: Resident
    slots: Slots
    answer: Callable[[Mapping[str, Any]], Output]
    overrides: Mapping[str, Mapping[str, Value]]
    blind: bool
    calls: list[GoldCall] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    picked_from: tuple[int, int] | None = None

    def go(self, flow: Flow) -> None:
        lookups = {step.tool: step for step in flow.lookups}
        with suppress(_NoFurtherCallError):
            if isinstance(flow.last, If):
                self._call(flow.last.then if self._holds(flow.last, lookups) else flow.last.otherwise)
            else:
                for tool in self.preference.order:
                    self._call(lookups[tool])
                self._call(flow.last)

    def _holds(self, rule: If, lookups: Mapping[str, FlowStep]) -> bool:
        """Evaluate tests in the order of the preference, until the result is decided."""
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
        limit_value = float(self.preference.values[limit])
        self.gaps.append((round(abs(number - limit_value), 1), margin))
        self.used.add(limit)
        return number > limit_value

    def _call(self, step: FlowStep) -> None:
        made = {name: self._value(expression) for name, expression in step.arguments.items()}
        arguments = {name: value for name, (value, _) in made.items()}
        call = GoldCall(step.tool, arguments, {name: provenance for name, (_, provenance) in made.items()})
        output = self.answer(call.call())
        self.outputs[step.tool] = (
            {**output, **self.overrides.get(step.tool, {})} if isinstance(output, dict) else output
        )
        self.calls.append(call)
        if "error" in output:
            raise _NoFurtherCallError

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
        """Return the value of the band in which a number lies, and mark only the limits around this band as used."""
        number = self.outputs[bands.lookup][bands.column]
        low, high = bands.limits
        band = self._is_above(number, low, bands.margin) + self._is_above(number, high, bands.margin)
        self.used -= {high} if band == 0 else {low} if band == 2 else set()
        return self._pref(bands.values[band])

    def _picked(self, pick: Pick) -> Value:
        rows = [_normalize_row(row, pick.column) for row in self.outputs[pick.search]]
        facet = next(name for name in pick.by if name in self.preference.values)
        value = self._pref(facet)
        matches = [row for row in rows if self.blind or get_facet_value(row, facet) == value]
        self.picked_from = (len(rows), len(matches))
        if not matches:
            raise _NoFurtherCallError
        return str(matches[0][pick.column])


def _normalize_row(row: Row, id_column: str) -> Row:
    """Return a row with named columns. Some tools return a row as a single id with its category."""
    if id_column in row:
        return row
    ((row_id, category),) = row.items()
    return {id_column: row_id, "category": category}
