"""What a flow is made of: steps whose arguments are typed expressions, rules, and facets that a preference fixes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..draws import Row
from ..tools import Value

Provenance = Literal["query", "user", "preference", "output", "constant"]


@dataclass(frozen=True, slots=True)
class Query:
    """What the request says; `slot` names it."""

    slot: str


@dataclass(frozen=True, slots=True)
class User:
    """What is known of the user: `city`, or the `start`, which is home or work, as the request has it."""

    field: Literal["city", "start"]


@dataclass(frozen=True, slots=True)
class Pref:
    """What the preference says."""

    facet: str


@dataclass(frozen=True, slots=True)
class Const:
    """What the flow always says."""

    value: Value


@dataclass(frozen=True, slots=True)
class Pick:
    """The id of the row of a search that the preference wants.

    Attributes:
        search: The tool whose output has the rows.
        column: Where the id stands.
        by: Facets, one of which the preference has: it decides.
    """

    search: str
    column: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Above:
    """Whether a number that was looked up is above the preference's limit, from which it must be `margin` away."""

    lookup: str
    column: str
    limit: str
    margin: float


@dataclass(frozen=True, slots=True)
class Among:
    """Whether what was looked up is among what the preference names, joined by "or"."""

    lookup: str
    column: str
    named: str
    outcomes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bands:
    """What the preference wants for the band that a number lies in: up to the first limit, up to the second, above."""

    lookup: str
    column: str
    limits: tuple[str, str]
    wanted: tuple[str, str, str]
    margin: float


Expression = Query | User | Pref | Const | Pick | Bands


@dataclass(frozen=True, slots=True)
class FlowStep:
    """A call of a tool."""

    tool: str
    arguments: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class If:
    """One step if either test holds or both do, as the facet `joined` has it, else the other.

    Tests look up what they need, in the order of the preference's session, and no more than decides.
    """

    tests: tuple[Above | Among, ...]
    then: FlowStep
    otherwise: FlowStep
    joined: str | None = None


@dataclass(frozen=True, slots=True)
class PreferenceFacet:
    """One thing that a preference fixes.

    Attributes:
        name: A parameter, a column of a search's rows, or a part of a rule.
        values: What it can be, two or more; what comes first is what one takes who knows nothing.
        indirect: Whether it decides by way of what a tool says, rather than as the value of an argument.
        beyond: More that it could be, although no preference is drawn so: numbers on either side of the others.
    """

    name: str
    values: tuple[Value, ...]
    indirect: bool = False
    beyond: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Preference:
    """What somebody wants whenever a flow comes up.

    Attributes:
        flow: Its name.
        values: The value of every facet; of facets that stand for each other, of one.
        order: The flow's lookups in the order in which they are made.
    """

    flow: str
    values: Mapping[str, Value]
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A task that comes up again and again, with other places and days, and the same preferences.

    Attributes:
        domain: What it is about, such as `travel`.
        kind: How the preference reaches the arguments: `direct` as their values, `indirect` by the row that it picks,
            or `conditional` by a rule over what was looked up.
        slots: What a request says, drawn anew for each.
        facets: What a preference fixes.
        lookups: Steps that look something up, each by its tool; none needs another.
        last: What is done in the end.
        rising: Facets whose numbers rise in this order.
        apart: Facets whose values differ.
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
        """A facet by its name."""
        return next(facet for facet in self.facets if facet.name == name)

    def preference(self, draw: random.Random) -> Preference:
        """One that somebody may have: never the one of who knows nothing."""
        while True:
            either = self.either
            left_out = set(either) - {draw.choice(either)} if either else set()
            values = {facet.name: draw.choice(facet.values) for facet in self.facets if facet.name not in left_out}
            order = tuple(draw.sample([step.tool for step in self.lookups], len(self.lookups)))
            if self.consistent(values) and any(self.facet(name).values[0] != values[name] for name in values):
                return Preference(self.name, values, order)

    def unknowing(self, preference: Preference) -> Preference:
        """What who does not know this preference takes: the first value of everything."""
        values = {name: self.facet(name).values[0] for name in preference.values}
        return Preference(self.name, values, preference.order)

    def consistent(self, values: Mapping[str, Value]) -> bool:
        """Whether values go together."""
        limits = [values[name] for name in self.rising]
        apart = [values[name] for name in self.apart]
        return limits == sorted(set(limits)) and len(set(apart)) == len(apart)

    @property
    def either(self) -> tuple[str, ...]:
        """Facets that stand for each other: a preference has one of them."""
        given = self.last.arguments.values() if isinstance(self.last, FlowStep) else ()
        return next((expression.by for expression in given if isinstance(expression, Pick)), ())


def of_row(row: Row, facet: str) -> Any:
    """What a row has of a facet: a column, or the part of the day in which it departs or starts."""
    if facet != "part_of_day":
        return row[facet]
    hour = int(row["departs" if "departs" in row else "starts"][:2])
    return (
        "morning" if 5 <= hour < 12 else "afternoon" if 12 <= hour < 17 else "evening" if 17 <= hour < 21 else "night"
    )
