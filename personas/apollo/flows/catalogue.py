"""The nine flows."""

from __future__ import annotations

from collections.abc import Mapping

from dialoom.personas.apollo.calls import TOOLS, Value

from ..world import CONTENT
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
    PreferenceFacet,
    Query,
    User,
)

_CONDITIONS = tuple(dict.fromkeys(CONTENT["weather"]["condition"]))
_WAY: Mapping[str, Expression] = {"city": User("city"), "location_1": User("start"), "location_2": Query("destination")}
_KM_MARGIN, _MINUTES_MARGIN = 0.3, 2


def _like(tool: str, *names: str, **renamed: str) -> tuple[PreferenceFacet, ...]:
    """Return facets for parameters of a tool; `renamed` maps facets' names to parameters with other names."""
    parameters = TOOLS[tool].parameters
    pairs = [(name, name) for name in names] + list(renamed.items())
    return tuple(PreferenceFacet(facet, parameters[name].of or (False, True)) for facet, name in pairs)


def _column(name: str, *values: Value) -> PreferenceFacet:
    return PreferenceFacet(name, values, indirect=True)


def _prefs(*names: str) -> dict[str, Pref]:
    return {name: Pref(name) for name in names}


def _book(tool: str, search: str, column: str, by: tuple[str, ...], *names: str) -> FlowStep:
    return FlowStep(tool, {column: Pick(search, column, by), **_prefs(*names)})


_PAID = "payment_method"
_PARTS_OF_DAY = ("morning", "afternoon", "evening", "night")
_DISTANCE, _WEATHER, _BUS = (
    FlowStep("get_distance", _WAY),
    FlowStep("get_weather", {"city": User("city"), "date": Query("date")}),
    FlowStep("get_bus_eta", _WAY),
)
_RIDE = FlowStep("request_ride", {**_WAY, "ride_type": Pref("ride_type")})

_COMMUTE_RULE = Flow(
    name="commute-rule",
    domain="commute",
    kind="conditional",
    slots=("today", "date", "start", "destination"),
    facets=(
        PreferenceFacet("km_limit", (4, 5, 7), indirect=True, beyond=(2, 10)),
        _column("bad_weather", "rain", "snow", "rain or snow", "cloudy or rain"),
        _column("joined", "both", "either"),
        *_like("request_ride", "ride_type"),
        *_like("transport_recommendation", "mode"),
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
)

_COMMUTE_BUS = Flow(
    name="commute-bus",
    domain="commute",
    kind="conditional",
    slots=("today", "start", "destination"),
    facets=(_column("wait_limit", 5, 10, 15), *_like("request_ride", "ride_type")),
    lookups=(_BUS,),
    last=If(
        tests=(Above("get_bus_eta", "eta_min", "wait_limit", _MINUTES_MARGIN),),
        then=_RIDE,
        otherwise=FlowStep("transport_recommendation", {**_WAY, "mode": Const("bus")}),
    ),
)

_COMMUTE_REACH = Flow(
    name="commute-reach",
    domain="commute",
    kind="conditional",
    slots=("today", "start", "destination"),
    facets=(
        _column("near_limit", 2, 4, 6),
        _column("far_limit", 5, 7, 9),
        *_like("transport_recommendation", near_mode="mode", middle_mode="mode", far_mode="mode"),
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
)

_FLIGHT = Flow(
    name="flight",
    domain="travel",
    kind="indirect",
    slots=("today", "date", "to_city"),
    facets=(
        *_like("search_flight", "direct"),
        _column("airline", *CONTENT["flights"]["airline"]),
        _column("part_of_day", *_PARTS_OF_DAY),
        *_like("book_flight", "cabin", "insurance", _PAID),
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
    last=_book("book_flight", "search_flight", "flight_id", ("airline", "part_of_day"), "cabin", "insurance", _PAID),
)

_HOTEL = Flow(
    name="hotel",
    domain="travel",
    kind="indirect",
    slots=("today", "date", "to_city", "nights"),
    facets=(
        *_like("search_hotel", "stars"),
        _column("area", *CONTENT["hotels"]["area"]),
        _column("view", *CONTENT["hotels"]["view"]),
        *_like("book_hotel", "room_type", "breakfast", _PAID),
    ),
    lookups=(
        FlowStep(
            "search_hotel",
            {"city": Query("to_city"), "check_in": Query("date"), "nights": Query("nights"), "stars": Pref("stars")},
        ),
    ),
    last=_book("book_hotel", "search_hotel", "hotel_id", ("area", "view"), "room_type", "breakfast", _PAID),
)

_MOVIE = Flow(
    name="movie",
    domain="entertainment",
    kind="indirect",
    slots=("today", "date"),
    facets=(
        *_like("search_movie", "genre", "cinema"),
        _column("language", *CONTENT["showings"]["language"]),
        _column("part_of_day", *_PARTS_OF_DAY[1:]),
        *_like("book_movie_ticket", "hall_type", _PAID),
    ),
    lookups=(FlowStep("search_movie", {"date": Query("date"), **_prefs("genre", "cinema")}),),
    last=_book("book_movie_ticket", "search_movie", "movie_id", ("language", "part_of_day"), "hall_type", _PAID),
)

_MUSIC = Flow(
    name="music",
    domain="entertainment",
    kind="direct",
    slots=("today",),
    facets=_like("search_music", "genre", "mood", "order"),
    lookups=(),
    last=FlowStep("search_music", _prefs("genre", "mood", "order")),
)

_BEVERAGE = Flow(
    name="beverage",
    domain="food",
    kind="indirect",
    slots=("today", "date"),
    facets=(
        _column("category", *CONTENT["beverages"]["category"]),
        *_like("order_beverage", "brand", "ice_level", "sugar_level"),
    ),
    lookups=(FlowStep("search_beverage_id", {"date": Query("date"), "city": User("city")}),),
    last=_book(
        "order_beverage", "search_beverage_id", "beverage_id", ("category",), "brand", "ice_level", "sugar_level"
    ),
)

_FOOD = Flow(
    name="food",
    domain="food",
    kind="direct",
    slots=("today", "start"),
    facets=_like("order_food_delivery", "cuisine", "spice_level", "cutlery", _PAID),
    lookups=(),
    last=FlowStep(
        "order_food_delivery",
        {
            "city": User("city"),
            "address": User("start"),
            **_prefs("cuisine", "spice_level", "cutlery", _PAID),
        },
    ),
)

FLOWS: Mapping[str, Flow] = {
    flow.name: flow
    for flow in (_COMMUTE_RULE, _COMMUTE_BUS, _COMMUTE_REACH, _FLIGHT, _HOTEL, _MOVIE, _MUSIC, _BEVERAGE, _FOOD)
}
