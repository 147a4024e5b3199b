"""The nine flows and the types that define them: steps with typed argument expressions, rules, and facets."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..calls import TOOLS, Value, format_value
from ..world import CONTENT, Row

Provenance = Literal["query", "user", "preference", "output", "constant"]


@dataclass(frozen=True, slots=True)
class Query:
    """A reference to the value of one of the request's slots."""

    slot: str


@dataclass(frozen=True, slots=True)
class User:
    """A value that is known about the user: `city`, or `start`, which is home or work as stated in the request."""

    field: Literal["city", "start"]


@dataclass(frozen=True, slots=True)
class Pref:
    """A reference to a value that the preference sets."""

    facet: str


@dataclass(frozen=True, slots=True)
class Const:
    """A constant value of the flow."""

    value: Value


@dataclass(frozen=True, slots=True)
class Pick:
    """The id of the search row that matches the preference.

    Attributes:
        search: The tool whose output holds the rows.
        column: The column of the id.
        by: Alternative facets. The preference has one of them, and that facet decides.
    """

    search: str
    column: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Above:
    """A test that a looked-up number exceeds the preference's limit.

    The number must differ from the limit by at least `margin`.
    """

    lookup: str
    column: str
    limit: str
    margin: float


@dataclass(frozen=True, slots=True)
class Among:
    """A test that a looked-up value is among the preference's values, which are joined by "or"."""

    lookup: str
    column: str
    named: str
    outcomes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bands:
    """The preference's value for the band of a looked-up number: up to the first limit, up to the second, or above."""

    lookup: str
    column: str
    limits: tuple[str, str]
    values: tuple[str, str, str]
    margin: float


Expression = Query | User | Pref | Const | Pick | Bands


@dataclass(frozen=True, slots=True)
class FlowStep:
    """A tool call."""

    tool: str
    arguments: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class If:
    """A conditional step: `then` if the tests are true, else `otherwise`.

    The facet `joined` states whether one or both tests must be true. Tests make their lookups in the preference's
    order, and stop as soon as the result is decided.
    """

    tests: tuple[Above | Among, ...]
    then: FlowStep
    otherwise: FlowStep
    joined: str | None = None


@dataclass(frozen=True, slots=True)
class PreferenceFacet:
    """A value that a preference sets.

    Attributes:
        name: A parameter, a column of a search's rows, or a part of a rule.
        values: The possible values, at least two. The first one is used by default if the preference is not known.
        indirect: Whether the facet decides through a tool's result rather than as an argument's value.
        beyond: Further possible values that are never drawn: numbers below and above the other values.
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
        values: The value of every facet; of alternative facets, only one has a value.
        order: The flow's lookups in the order in which they are made.
    """

    flow: str
    values: Mapping[str, Value]
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A recurring task. Its places and days change, but the user's preferences stay the same.

    Attributes:
        domain: Its domain, such as `travel`.
        kind: How the preference decides the arguments: `direct` as their values, `indirect` by the row that it picks,
            or `conditional` by a rule over lookups.
        slots: The request's slots, drawn for each request.
        facets: The facets that a preference sets.
        lookups: Lookup steps, one per tool; they are independent of each other.
        last: The final step.
        rising: Facets whose numbers must increase in this order.
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
        """Draw a valid preference that differs from the default in at least one facet."""
        while True:
            either = self.either
            left_out = set(either) - {draw.choice(either)} if either else set()
            values = {facet.name: draw.choice(facet.values) for facet in self.facets if facet.name not in left_out}
            order = tuple(draw.sample([step.tool for step in self.lookups], len(self.lookups)))
            if self.consistent(values) and any(self.facet(name).values[0] != values[name] for name in values):
                return Preference(self.name, values, order)

    def unknowing(self, preference: Preference) -> Preference:
        """Return the preference that an agent assumes if it knows none: the first value of every facet."""
        return Preference(self.name, {name: self.facet(name).values[0] for name in preference.values}, preference.order)

    def problems(self, values: Mapping[str, Value], order: Sequence[str]) -> Iterator[str]:
        """Yield the problems of a preference: its values, and the order of its lookups."""
        facets = {facet.name: facet.values for facet in self.facets}
        for name, value in values.items():
            if name not in facets:
                yield f"{self.name} has no facet {name!r}; it has {', '.join(facets)}"
            elif value not in facets[name]:
                yield f"{name} {format_value(value)}: it is one of {', '.join(map(str, facets[name]))}"
        for name in facets:
            if name not in values and name not in self.either:
                yield f"values: {name} is missing; it is one of {', '.join(map(str, facets[name]))}"
        if self.either and len(set(self.either) & set(values)) != 1:
            yield f"values: give one of {', '.join(self.either)}"
        lookups = [step.tool for step in self.lookups]
        if sorted(order) != sorted(lookups):
            yield f"order {format_value(order)}: give {', '.join(lookups)}, each once, in any order"

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


def get_facet_value(row: Row, facet: str) -> Any:
    """Return a row's value of a facet: a column's value, or the part of the day in which the row departs or starts."""
    if facet != "part_of_day":
        return row[facet]
    hour = int(row["departs" if "departs" in row else "starts"][:2])
    return (
        "morning" if 5 <= hour < 12 else "afternoon" if 12 <= hour < 17 else "evening" if 17 <= hour < 21 else "night"
    )


_CONDITIONS = tuple(dict.fromkeys(CONTENT["weather"]["condition"]))
_WAY: Mapping[str, Expression] = {"city": User("city"), "location_1": User("start"), "location_2": Query("destination")}
_KM_MARGIN, _MINUTES_MARGIN = 0.3, 2


def _parameter_facets(tool: str, *names: str, **renamed: str) -> tuple[PreferenceFacet, ...]:
    """Return facets for parameters of a tool. `renamed` maps a facet's name to its parameter if the names differ."""
    parameters = TOOLS[tool].parameters
    pairs = [(name, name) for name in names] + list(renamed.items())
    return tuple(PreferenceFacet(facet, parameters[name].of or (False, True)) for facet, name in pairs)


def _column_facet(name: str, *values: Value) -> PreferenceFacet:
    return PreferenceFacet(name, values, indirect=True)


def _preference_arguments(*names: str) -> dict[str, Pref]:
    return {name: Pref(name) for name in names}


def _booking_step(tool: str, search: str, column: str, by: tuple[str, ...], *names: str) -> FlowStep:
    return FlowStep(tool, {column: Pick(search, column, by), **_preference_arguments(*names)})


_PAID = "payment_method"
_PARTS_OF_DAY = ("morning", "afternoon", "evening", "night")
_DISTANCE, _WEATHER, _BUS = (
    FlowStep("get_distance", _WAY),
    FlowStep("get_weather", {"city": User("city"), "date": Query("date")}),
    FlowStep("get_bus_eta", _WAY),
)
_RIDE = FlowStep("request_ride", {**_WAY, "ride_type": Pref("ride_type")})

FLOWS: Mapping[str, Flow] = {
    flow.name: flow
    for flow in (
        Flow(
            name="commute-rule",
            domain="commute",
            kind="conditional",
            slots=("today", "date", "start", "destination"),
            facets=(
                PreferenceFacet("km_limit", (4, 5, 7), indirect=True, beyond=(2, 10)),
                _column_facet("bad_weather", "rain", "snow", "rain or snow", "cloudy or rain"),
                _column_facet("joined", "both", "either"),
                *_parameter_facets("request_ride", "ride_type"),
                *_parameter_facets("transport_recommendation", "mode"),
            ),
            lookups=(_DISTANCE, _WEATHER),
            last=If(
                tests=(
                    Above("get_distance", "distance_km", "km_limit", _KM_MARGIN),
                    Among("get_weather", "condition", "bad_weather", _CONDITIONS),
                ),
                then=_RIDE,
                otherwise=FlowStep("transport_recommendation", {**_WAY, "mode": Pref("mode")}),
                joined="joined",
            ),
        ),
        Flow(
            name="commute-bus",
            domain="commute",
            kind="conditional",
            slots=("today", "start", "destination"),
            facets=(_column_facet("wait_limit", 5, 10, 15), *_parameter_facets("request_ride", "ride_type")),
            lookups=(_BUS,),
            last=If(
                tests=(Above("get_bus_eta", "eta_min", "wait_limit", _MINUTES_MARGIN),),
                then=_RIDE,
                otherwise=FlowStep("transport_recommendation", {**_WAY, "mode": Const("bus")}),
            ),
        ),
        Flow(
            name="commute-reach",
            domain="commute",
            kind="conditional",
            slots=("today", "start", "destination"),
            facets=(
                _column_facet("near_limit", 2, 4, 6),
                _column_facet("far_limit", 5, 7, 9),
                *_parameter_facets("transport_recommendation", near_mode="mode", middle_mode="mode", far_mode="mode"),
            ),
            lookups=(_DISTANCE,),
            last=FlowStep(
                "transport_recommendation",
                {
                    **_WAY,
                    "mode": Bands(
                        "get_distance",
                        "distance_km",
                        ("near_limit", "far_limit"),
                        ("near_mode", "middle_mode", "far_mode"),
                        _KM_MARGIN,
                    ),
                },
            ),
            rising=("near_limit", "far_limit"),
            apart=("near_mode", "middle_mode", "far_mode"),
        ),
        Flow(
            name="flight",
            domain="travel",
            kind="indirect",
            slots=("today", "date", "to_city"),
            facets=(
                *_parameter_facets("search_flight", "direct"),
                _column_facet("airline", *CONTENT["flights"]["airline"]),
                _column_facet("part_of_day", *_PARTS_OF_DAY),
                *_parameter_facets("book_flight", "cabin", "insurance", _PAID),
            ),
            lookups=(
                FlowStep(
                    "search_flight",
                    {
                        "date": Query("date"),
                        "from_city": User("city"),
                        "to_city": Query("to_city"),
                        "direct": Pref("direct"),
                    },
                ),
            ),
            last=_booking_step(
                "book_flight", "search_flight", "flight_id", ("airline", "part_of_day"), "cabin", "insurance", _PAID
            ),
        ),
        Flow(
            name="hotel",
            domain="travel",
            kind="indirect",
            slots=("today", "date", "to_city", "nights"),
            facets=(
                *_parameter_facets("search_hotel", "stars"),
                _column_facet("area", *CONTENT["hotels"]["area"]),
                _column_facet("view", *CONTENT["hotels"]["view"]),
                *_parameter_facets("book_hotel", "room_type", "breakfast", _PAID),
            ),
            lookups=(
                FlowStep(
                    "search_hotel",
                    {
                        "city": Query("to_city"),
                        "check_in": Query("date"),
                        "nights": Query("nights"),
                        "stars": Pref("stars"),
                    },
                ),
            ),
            last=_booking_step(
                "book_hotel", "search_hotel", "hotel_id", ("area", "view"), "room_type", "breakfast", _PAID
            ),
        ),
        Flow(
            name="movie",
            domain="entertainment",
            kind="indirect",
            slots=("today", "date"),
            facets=(
                *_parameter_facets("search_movie", "genre", "cinema"),
                _column_facet("language", *CONTENT["showings"]["language"]),
                _column_facet("part_of_day", *_PARTS_OF_DAY[1:]),
                *_parameter_facets("book_movie_ticket", "hall_type", _PAID),
            ),
            lookups=(FlowStep("search_movie", {"date": Query("date"), **_preference_arguments("genre", "cinema")}),),
            last=_booking_step(
                "book_movie_ticket", "search_movie", "movie_id", ("language", "part_of_day"), "hall_type", _PAID
            ),
        ),
        Flow(
            name="music",
            domain="entertainment",
            kind="direct",
            slots=("today",),
            facets=_parameter_facets("search_music", "genre", "mood", "order"),
            lookups=(),
            last=FlowStep("search_music", _preference_arguments("genre", "mood", "order")),
        ),
        Flow(
            name="beverage",
            domain="food",
            kind="indirect",
            slots=("today", "date"),
            facets=(
                _column_facet("category", *CONTENT["beverages"]["category"]),
                *_parameter_facets("order_beverage", "brand", "ice_level", "sugar_level"),
            ),
            lookups=(FlowStep("search_beverage_id", {"date": Query("date"), "city": User("city")}),),
            last=_booking_step(
                "order_beverage",
                "search_beverage_id",
                "beverage_id",
                ("category",),
                "brand",
                "ice_level",
                "sugar_level",
            ),
        ),
        Flow(
            name="food",
            domain="food",
            kind="direct",
            slots=("today", "start"),
            facets=_parameter_facets("order_food_delivery", "cuisine", "spice_level", "cutlery", _PAID),
            lookups=(),
            last=FlowStep(
                "order_food_delivery",
                {
                    "city": User("city"),
                    "address": User("start"),
                    **_preference_arguments("cuisine", "spice_level", "cutlery", _PAID),
                },
            ),
        ),
    )
}
