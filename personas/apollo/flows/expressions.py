"""The elements of a flow: steps whose arguments are typed expressions, rules, and facets set by a preference."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dialoom.personas.apollo.calls import Value, shown

from ..draws import Row

Provenance = Literal["query", "user", "preference", "output", "constant"]


@dataclass(frozen=True, slots=True)
class Query:
    """A value stated in the request, by its slot."""

    slot: str


@dataclass(frozen=True, slots=True)
class User:
    """A value known about the user: `city`, or `start`, which is home or work, as the request says."""

    field: Literal["city", "start"]


@dataclass(frozen=True, slots=True)
class Pref:
    """A value set by the preference."""

    facet: str


@dataclass(frozen=True, slots=True)
class Const:
    """A constant of the flow."""

    value: Value


@dataclass(frozen=True, slots=True)
class Pick:
    """The id of the row of a search that matches the preference.

    Attributes:
        search: The tool whose output holds the rows.
        column: The column of the id.
        by: Facets of which the preference has one, which decides.
    """

    search: str
    column: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Above:
    """A test that a looked-up number exceeds the preference's limit; it must be `margin` away from the limit."""

    lookup: str
    column: str
    limit: str
    margin: float


@dataclass(frozen=True, slots=True)
class Among:
    """A test that a looked-up value is among the values that the preference names, joined by "or"."""

    lookup: str
    column: str
    named: str
    outcomes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bands:
    """The preference's value for the band of a number: up to the first limit, up to the second, or above."""

    lookup: str
    column: str
    limits: tuple[str, str]
    wanted: tuple[str, str, str]
    margin: float


Expression = Query | User | Pref | Const | Pick | Bands


@dataclass(frozen=True, slots=True)
class FlowStep:
    """A tool call."""

    tool: str
    arguments: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class If:
    """A conditional: one step if either test holds, or if both do, as the facet `joined` says; else the other.

    Tests make their lookups in the preference's order, and stop as soon as the result is decided.
    """

    tests: tuple[Above | Among, ...]
    then: FlowStep
    otherwise: FlowStep
    joined: str | None = None


@dataclass(frozen=True, slots=True)
class PreferenceFacet:
    """One value that a preference sets.

    Attributes:
        name: A parameter, a column of a search's rows, or a part of a rule.
        values: The possible values, two or more; the first is the default without knowledge of the preference.
        indirect: Whether it decides through a tool's result, rather than as an argument's value.
        beyond: Further possible values that are never drawn: numbers on either side of the others.
    """

    name: str
    values: tuple[Value, ...]
    indirect: bool = False
    beyond: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Preference:
    """A user's preference for every request of a flow.

    Attributes:
        flow: The flow's name.
        values: The value of every facet; of alternative facets, of one only.
        order: The flow's lookups in the order in which they are made.
    """

    flow: str
    values: Mapping[str, Value]
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A recurring task: places and days change, preferences stay.

    Attributes:
        domain: Its domain, such as `travel`.
        kind: How the preference reaches the arguments: `direct` as their values, `indirect` by the row that it picks,
            or `conditional` by a rule over lookups.
        slots: The request's slots, drawn for each request.
        facets: The facets that a preference sets.
        lookups: Lookup steps, one per tool; they are independent of each other.
        last: The final step.
        rising: Facets whose numbers rise in this order.
        apart: Facets whose values must differ.
    """

    name: str
    domain: str
    kind: Literal["direct", "indirect", "conditional"]
    slots: tuple[str, ...]
    facets: tuple[PreferenceFacet, ...]
    lookups: tuple[FlowStep, ...]
    last: FlowStep | If
    rising: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()

    def facet(self, name: str) -> PreferenceFacet:
        """Return a facet by its name."""
        return next(facet for facet in self.facets if facet.name == name)

    def preference(self, draw: random.Random) -> Preference:
        """Draw a valid preference that is not the default in every facet."""
        while True:
            either = self.either
            left_out = set(either) - {draw.choice(either)} if either else set()
            values = {facet.name: draw.choice(facet.values) for facet in self.facets if facet.name not in left_out}
            order = tuple(draw.sample([step.tool for step in self.lookups], len(self.lookups)))
            if self.consistent(values) and any(self.facet(name).values[0] != values[name] for name in values):
                return Preference(self.name, values, order)

    def unknowing(self, preference: Preference) -> Preference:
        """Return the default preference of an agent that does not know this one: the first value of every facet."""
        values = {name: self.facet(name).values[0] for name in preference.values}
        return Preference(self.name, values, preference.order)

    def problems(self, values: Mapping[str, Value], order: Sequence[str]) -> Iterator[str]:
        """Yield the problems of a preference: its values, and the order of its lookups."""
        facets = {facet.name: facet.values for facet in self.facets}
        for name, value in values.items():
            if name not in facets:
                yield f"{self.name} has no facet {name!r}; it has {', '.join(facets)}"
            elif value not in facets[name]:
                yield f"{name} {shown(value)}: it is one of {', '.join(map(str, facets[name]))}"
        for name in facets:
            if name not in values and name not in self.either:
                yield f"values: {name} is missing; it is one of {', '.join(map(str, facets[name]))}"
        if self.either and len(set(self.either) & set(values)) != 1:
            yield f"values: give one of {', '.join(self.either)}"
        lookups = [step.tool for step in self.lookups]
        if sorted(order) != sorted(lookups):
            yield f"order {shown(order)}: give {', '.join(lookups)}, each once, in any order"

    def consistent(self, values: Mapping[str, Value]) -> bool:
        """Return whether values are consistent with each other."""
        limits = [values[name] for name in self.rising]
        apart = [values[name] for name in self.apart]
        return limits == sorted(set(limits)) and len(set(apart)) == len(apart)

    @property
    def either(self) -> tuple[str, ...]:
        """Alternative facets, of which a preference has exactly one."""
        given = self.last.arguments.values() if isinstance(self.last, FlowStep) else ()
        return next((expression.by for expression in given if isinstance(expression, Pick)), ())


def of_row(row: Row, facet: str) -> Any:
    """Return a row's value of a facet: a column, or the part of the day in which it departs or starts."""
    if facet != "part_of_day":
        return row[facet]
    hour = int(row["departs" if "departs" in row else "starts"][:2])
    return (
        "morning" if 5 <= hour < 12 else "afternoon" if 12 <= hour < 17 else "evening" if 17 <= hour < 21 else "night"
    )
