"""The execution of calls: results of each tool, errors of calls that cannot run, and the tools as Python functions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from inspect import Parameter as Argument
from inspect import Signature
from typing import Any, Literal

from .calls import CONTENT as TOOLS_CONTENT
from .calls import TOOLS, CallError, Kind, Tool, ToolCall, canonicalize, format_value
from .world import CONTENT, Columns, Draw, Place, Row, TableRows, World, expand_range

Output = dict[str, Any] | list[Row]
_Result = Row | TableRows
_MAX_CACHED_RESULTS = 20_000
_BOOKING: Mapping[str, Any] = CONTENT["booking"]
_RANGES = {name: expand_range(_BOOKING[name]) for name in ("pickup_min", "ready_min", "delivery_min")}
_STOPS = [*CONTENT["flights"]].index("stops") + 1  # after the id, the first column
_WEATHER, _BUSES = Columns(CONTENT["weather"]), Columns(CONTENT["bus"])


def execute(world: World, call: Mapping[str, Any], offered: Collection[str] = TOOLS.keys()) -> Output:
    """Return a tool's result.

    If the call cannot run, return `{"error": ...}` with the wrong value and the valid values.

    Calls change nothing. Bookings and orders get an id that is derived from the call. A search without matches returns
    an empty list.

    Args:
        world: The source of the results.
        call: `name` and `arguments`, an object or its JSON text.
        offered: The tools that may be called.
    """
    try:
        name = call.get("name")
        if not isinstance(name, str) or name not in offered:
            raise CallError(f"there is no tool {format_value(name)}; the tools are {', '.join(offered)}")
        return _run_tool(world, canonicalize(call))
    except CallError as error:
        return {"error": str(error)}


def _run_tool(world: World, call: ToolCall) -> Output:
    """Return a tool's result as a new object. The world caches some results, because calls are repeated."""
    key = (call.name, *call.arguments.values())
    if (result := world.results.get(key)) is None:
        result = _RESULT_FUNCTIONS.get(call.name, _draw_result)(world, call)
        if len(world.results) < _MAX_CACHED_RESULTS:
            world.results[key] = result
    return dict(result) if isinstance(result, dict) else result.as_rows()


def _draw_result(world: World, call: ToolCall) -> _Result:
    """Return the result of a tool that has no code: rows or one object, drawn by the rules in the data file."""
    columns, count, order = _load_columns(call.name)
    draw = world.draw(call.name, *call.arguments.values())
    _check_different(call)
    if not count:
        return columns.row(draw, call.arguments)
    found = _draw_rows(call, draw)
    return _sort_rows(found, **order) if order else found


def _draw_rows(call: ToolCall, draw: Draw) -> TableRows:
    """Return result rows for a tool that has no code. The call states their number, or it is drawn at random."""
    columns, count, _ = _load_columns(call.name)
    if isinstance(count, str):
        return columns.rows(draw, call.arguments, int(call.arguments[count]))
    least, most = count
    return columns.rows(draw, call.arguments, least + draw.below(most - least + 1))


@cache
def _load_columns(tool: str) -> tuple[Columns, str | Sequence[int], Mapping[str, str]]:
    """Return a tool's columns, the number of rows, and the arguments of `_ordered`, if rows are sorted.

    The number is a range or an argument's name. If it is empty, the result is one object.
    """
    content = TOOLS_CONTENT["tools"][tool]
    return Columns(content["answer"]), content.get("rows", ""), content.get("order", {})


def _sort_rows(found: TableRows, least: str = "", most: str = "") -> TableRows:
    """Sort rows by a column, ascending by `least` or descending by `most`."""
    values = found.columns[found.names.index(least or most)]
    return found._replace(places=sorted(range(len(values)), key=values.__getitem__, reverse=bool(most)))


def _draw_id(world: World, call: ToolCall, prefix: str) -> str:
    return f"{prefix}{100_000 + world.draw(call.name, *call.arguments.values()).below(900_000)}"


def _draw_in_range(world: World, call: ToolCall, rule: str) -> int | float:
    return world.draw(call.name, rule, *call.arguments.values()).choice(_RANGES[rule])


def _check_different(call: ToolCall) -> None:
    for start, end in (("location_1", "location_2"), ("from_city", "to_city"), ("from_station", "to_station")):
        if start in call.arguments and call.arguments[start] == call.arguments[end]:
            raise CallError(f"{end} {format_value(call.arguments[end])} is {start} too: give two different ones")


def _find_endpoints(world: World, call: ToolCall) -> tuple[int, Place, Place]:
    city = world.city(call.arguments["city"])
    one, other = (world.place(city, call.arguments[name], name) for name in ("location_1", "location_2"))
    _check_different(call)
    return city, one, other


def _get_distance(world: World, call: ToolCall) -> _Result:
    _, one, other = _find_endpoints(world, call)
    return {"distance_km": one.distance(other)}


def _get_weather(world: World, call: ToolCall) -> _Result:
    key = (world.city(call.arguments["city"]), world.day(call.arguments["date"]))
    return _WEATHER.row(world.draw("weather", *key), {})


def _get_bus_eta(world: World, call: ToolCall) -> _Result:
    city, one, other = _find_endpoints(world, call)
    return _BUSES.row(world.draw("bus", city, one.name, other.name), {})


def _transport_recommendation(world: World, call: ToolCall) -> _Result:
    _, one, other = _find_endpoints(world, call)
    speed, lost, price, per_km = CONTENT["ways"][call.arguments["mode"]]
    distance = one.distance(other)
    return {"minutes": round(60 * distance / speed + lost), "cost": round(price + per_km * distance, 1)}


def _request_ride(world: World, call: ToolCall) -> _Result:
    _, one, other = _find_endpoints(world, call)
    price, per_km = CONTENT["rides"][call.arguments["ride_type"]]
    return {
        "ride_id": _draw_id(world, call, "RD"),
        "fare": round(price + per_km * one.distance(other), 1),
        "pickup_min": _draw_in_range(world, call, "pickup_min"),
    }


def _search_flight(world: World, call: ToolCall) -> _Result:
    day = world.day(call.arguments["date"])
    origin, target = (world.city(call.arguments[name], name) for name in ("from_city", "to_city"))
    _check_different(call)
    found = world.flights.at(day, origin, target)
    direct = [place for place, stops in enumerate(found[_STOPS]) if not stops] if call.arguments["direct"] else None
    return TableRows(world.flights.columns, found, direct)


def _book_flight(world: World, call: ToolCall) -> _Result:
    _, flight = world.flights.find(call.arguments["flight_id"])
    total = flight["price"] * _BOOKING["cabin"][call.arguments["cabin"]]
    total += _BOOKING["insurance"] * bool(call.arguments["insurance"])
    return {"booking_id": _draw_id(world, call, "BK"), "total": round(total, 1)}


def _search_hotel(world: World, call: ToolCall) -> _Result:
    city, day = world.city(call.arguments["city"]), world.day(call.arguments["check_in"], "check_in")
    nights, stars = int(call.arguments["nights"]), int(call.arguments["stars"])
    found = world.hotels.at(city, day, nights - 1)
    return TableRows(world.hotels.columns, found, [place for place, each in enumerate(found[-1]) if each >= stars])


def _book_hotel(world: World, call: ToolCall) -> _Result:
    (_, _, nights), hotel = world.hotels.find(call.arguments["hotel_id"])
    night = hotel["price"] * _BOOKING["room_type"][call.arguments["room_type"]]
    night += _BOOKING["breakfast"] * bool(call.arguments["breakfast"])
    return {"booking_id": _draw_id(world, call, "BK"), "total": round((nights + 1) * night, 1)}


def _search_movie(world: World, call: ToolCall) -> _Result:
    day = world.day(call.arguments["date"])
    return TableRows(world.showings.columns, world.showings.at(day, *_find_choice_indices(call, "genre", "cinema")))


def _book_movie_ticket(world: World, call: ToolCall) -> _Result:
    world.showings.find(call.arguments["movie_id"])
    draw = world.draw("seat", *call.arguments.values())
    return {"ticket_id": _draw_id(world, call, "TK"), "seat": f"{draw.choice(_BOOKING['seat'])}{1 + draw.below(18)}"}


def _find_choice_indices(call: ToolCall, *names: str) -> Iterable[int]:
    """Return the places of arguments among the values that their parameters allow."""
    return (TOOLS[call.name].parameters[name].of.index(call.arguments[name]) for name in names)


def _search_music(world: World, call: ToolCall) -> _Result:
    found = world.tracks.at(*_find_choice_indices(call, "genre", "mood"))
    order = world.draw("order", *call.arguments.values()).shuffled(range(len(found[0])))
    return TableRows(world.tracks.columns, found, order)


def _search_beverage_id(world: World, call: ToolCall) -> _Result:
    """Return ids in the paper's form, which includes the category."""
    return TableRows((), world.beverages.at(world.city(call.arguments["city"]), world.day(call.arguments["date"])))


def _order_beverage(world: World, call: ToolCall) -> _Result:
    world.beverages.find(call.arguments["beverage_id"])
    return {"order_id": _draw_id(world, call, "OR"), "ready_min": _draw_in_range(world, call, "ready_min")}


def _order_food_delivery(world: World, call: ToolCall) -> _Result:
    world.place(world.city(call.arguments["city"]), call.arguments["address"], "address")
    return {"order_id": _draw_id(world, call, "OR"), "eta_min": _draw_in_range(world, call, "delivery_min")}


def _game_recommendation(world: World, call: ToolCall) -> _Result:
    """Return some games of a kind. A game's properties do not depend on the other arguments."""
    (columns, rows, _), (kind, *_) = _load_columns(call.name), call.arguments.values()
    least, most = map(int, rows)
    known = columns.rows(world.draw(call.name, kind), call.arguments, most)
    draw = world.draw("order", *call.arguments.values())
    return known._replace(places=draw.shuffled(range(most), least + draw.below(most - least + 1)))


def _search_products(world: World, call: ToolCall) -> _Result:
    """Return products in the requested order. The order does not affect which products are found.

    Orders by novelty and by match are random, because rows do not show these properties.
    """
    *within, sort = call.arguments.values()
    found = _draw_rows(call, world.draw(call.name, *within))
    if sort == "rating":
        return _sort_rows(found, most="rating")
    return found._replace(places=world.draw("order", *within, sort).shuffled(range(len(found.columns[0]))))


def _loan_repayment_calculator(_: World, call: ToolCall) -> _Result:
    amount, rate, years = (float(value) for value in call.arguments.values())
    months, monthly = 12 * years, rate / 1200
    part = amount * monthly / -math.expm1(-months * math.log1p(monthly)) if monthly else amount / months
    return {"monthly": round(part, 1), "total": round(part * months, 1)}


def _investment_return_calculator(_: World, call: ToolCall) -> _Result:
    amount, rate, years = (float(value) for value in call.arguments.values())
    value = amount * (1 + rate / 100) ** years
    return {"value": round(value, 1), "gain": round(value - amount, 1)}


def _currency_converter(_: World, call: ToolCall) -> _Result:
    amount, worth = float(call.arguments["amount"]), CONTENT["money"]
    return {"amount": round(amount / worth[call.arguments["from_currency"]] * worth[call.arguments["to_currency"]], 1)}


def _daily_water_intake(_: World, call: ToolCall) -> _Result:
    per_kg = CONTENT["water"][call.arguments["activity"]]
    return {"litres": round(int(call.arguments["weight_kg"]) * per_kg / 1000, 1)}


def _sleep_quality_checker(_: World, call: ToolCall) -> _Result:
    """Score sleep: subtract twelve points per hour of difference from eight hours, and five per awakening."""
    score = round(100 - 12 * abs(8 - float(call.arguments["hours"])) - 5 * int(call.arguments["wake_ups"]))
    return {"score": max(0, score), "rating": "good" if score >= 75 else "fair" if score >= 50 else "poor"}


def _sleep_duration(_: World, call: ToolCall) -> _Result:
    to_bed, up = (
        int(str(call.arguments[name])[:2]) * 60 + int(str(call.arguments[name])[3:])
        for name in ("bedtime", "wake_time")
    )
    return {"hours": round((up - to_bed) % 1440 / 60, 1)}


def _nutrition_analysis(_: World, call: ToolCall) -> _Result:
    energy, protein = CONTENT["food"][call.arguments["food"]]
    portion = int(call.arguments["grams"]) / 100
    return {"kcal": round(energy * portion), "protein_g": round(protein * portion, 1)}


_RESULT_FUNCTIONS: Mapping[str, Callable[[World, ToolCall], _Result]] = {
    answer.__name__.removeprefix("_"): answer
    for answer in (
        _get_distance,
        _get_weather,
        _get_bus_eta,
        _transport_recommendation,
        _request_ride,
        _search_flight,
        _book_flight,
        _search_hotel,
        _book_hotel,
        _search_movie,
        _book_movie_ticket,
        _search_music,
        _search_beverage_id,
        _order_beverage,
        _order_food_delivery,
        _game_recommendation,
        _search_products,
        _loan_repayment_calculator,
        _investment_return_calculator,
        _currency_converter,
        _daily_water_intake,
        _sleep_quality_checker,
        _sleep_duration,
        _nutrition_analysis,
    )
}


def tool_functions(names: Iterable[str] | None = None, seed: int = 0) -> list[Callable[..., str]]:
    """Return one function per tool. It returns the tool's result, or the error of a call, as JSON text.

    Args:
        names: The names of the tools; by default all tools.
        seed: The world's seed, which the rows of a dataset state.

    Raises:
        ValueError: If a tool is unknown.
    """
    world, requested = World(seed), list(TOOLS if names is None else names)
    if unknown := [name for name in requested if name not in TOOLS]:
        raise ValueError(f"there is no tool {unknown[0]!r}; the tools are {', '.join(TOOLS)}")
    return [_build_function(world, TOOLS[name]) for name in requested]


def _build_function(world: World, tool: Tool) -> Callable[..., str]:
    def function(**arguments: Any) -> str:
        return json.dumps(execute(world, {"name": tool.name, "arguments": arguments}), ensure_ascii=False)

    taken = [
        Argument(
            name,
            Argument.KEYWORD_ONLY,
            default=Argument.empty if parameter.default is None else parameter.default,
            annotation=Literal[parameter.of] if parameter.of else _TYPES[parameter.kind],
        )
        for name, parameter in tool.parameters.items()
    ]
    says = "\n".join(f"    {name}: {parameter.says}" for name, parameter in tool.parameters.items())
    function.__name__ = function.__qualname__ = tool.name
    function.__doc__ = f"{tool.says}\n\nArgs:\n{says}\n\nReturns:\n    What the tool says, as JSON.\n"
    function.__annotations__ = {**{each.name: each.annotation for each in taken}, "return": str}
    function.__signature__ = Signature(taken, return_annotation=str)  # type: ignore[attr-defined]
    return function


_TYPES: Mapping[Kind, type] = {
    "text": str,
    "id": str,
    "date": str,
    "time": str,
    "boolean": bool,
    "integer": int,
    "number": float,
}
