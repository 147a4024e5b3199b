"""The world that tools query: the same in every process, with explanations of invalid calls."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dialoom.personas.apollo import CITIES, PREFERENCE_DOMAINS, TOOLS, Parameter, World, execute
from tests.conftest import ROOT

WORLD = World()
HERE = {"city": "Hollin", "location_1": WORLD.places(7)[0].name, "location_2": WORLD.places(7)[3].name}
STAY = {"city": "Kestrow", "check_in": "2027-03-09", "nights": 2, "stars": 5}


def answer(tool: str, **arguments: Any) -> Any:
    """Return a tool's answer."""
    return execute(WORLD, {"name": tool, "arguments": arguments})


def some_calls(count: int) -> list[dict[str, Any]]:
    """Return valid calls of all tools; bookings may be of rows that no search has shown."""
    draw = random.Random(1)
    return [_call(draw, name) for _ in range(count) for name in TOOLS]


def _call(draw: random.Random, name: str) -> dict[str, Any]:
    city = draw.randrange(len(CITIES))
    known: dict[str, Any] = {"city": CITIES[city], "from_city": CITIES[city], "to_city": CITIES[city - 1]}
    places = draw.sample([place.name for place in WORLD.places(city)], 3)
    known |= zip(("location_1", "location_2", "address"), places, strict=True)
    known["flight_id"] = WORLD.flights.at(0, city, city - 1)[0][0]
    known["hotel_id"] = WORLD.hotels.at(city, draw.randrange(28), 3)[0][7]
    known["movie_id"] = WORLD.showings.at(draw.randrange(28), 1, 1)[0][2]
    known["beverage_id"] = WORLD.beverages.at(city, draw.randrange(28))[0][4]
    parameters = TOOLS[name].parameters.values()
    return {"name": name, "arguments": {p.name: known.get(p.name) or _value(draw, p) for p in parameters}}


def _value(draw: random.Random, parameter: Parameter) -> Any:
    if parameter.of:
        return draw.choice(parameter.of)
    free = {"text": f"words {draw.randrange(99)}", "date": draw.choice(WORLD.days), "boolean": draw.random() < 0.5}
    free["time"] = f"{draw.randrange(24):02}:{draw.randrange(60):02}"
    return free.get(parameter.kind, draw.randint(int(parameter.least or 0), int(parameter.most or 9)))


def digest_of_answers() -> str:
    """Return the SHA-256 of a new world's answers."""
    world = World()
    return hashlib.sha256(json.dumps([execute(world, call) for call in some_calls(6)]).encode()).hexdigest()


def test_papers_tools_are_openai_functions() -> None:
    """There are 15 tools in 4 domains with preferences and 31 in 7 others; their schemas allow only known scalars."""
    assert sum(tool.domain in PREFERENCE_DOMAINS for tool in TOOLS.values()) == 15
    assert len(TOOLS) == 46
    assert len({tool.domain for tool in TOOLS.values()}) == 11
    for name, tool in TOOLS.items():
        function = tool.definition()["function"]
        schema = function["parameters"]
        assert (function["name"], schema["additionalProperties"]) == (name, False)
        optional = {key for key, value in schema["properties"].items() if "default" in value}
        assert set(schema["required"]) == set(schema["properties"]) - optional
        assert {value["type"] for value in schema["properties"].values()} <= {"string", "boolean", "integer", "number"}
        assert all(
            value["default"] in value.get("enum", [True, False])
            for value in schema["properties"].values()
            if "default" in value
        )
        assert 2 <= len(schema["properties"]) <= 4 or tool.domain == "food"


def test_every_tool_answers() -> None:
    for call in some_calls(6):
        output = execute(WORLD, call)
        for row in output if isinstance(output, list) else [output]:
            assert "error" not in row, (call, row)
            assert all(round(value, 1) == value for value in row.values() if isinstance(value, float))


def test_unrelated_tools_have_many_answers() -> None:
    """Among 200 random calls of such a tool, at least 24 differ, and 12 of their answers."""
    draw = random.Random(3)
    for tool in TOOLS.values():
        if tool.domain not in PREFERENCE_DOMAINS:
            calls = [_call(draw, tool.name) for _ in range(200)]
            assert len({json.dumps(call) for call in calls}) >= 24, tool.name
            assert len({json.dumps(execute(WORLD, call)) for call in calls}) >= 12, tool.name


def test_world_is_constant() -> None:
    assert World(1).hash != WORLD.hash
    assert WORLD.hash == "aa97e835a2b0746cc9c931c0c4fe4c5bcb9d59d7d47aa957bf83c35ba9cf8235"
    assert digest_of_answers() == "528e5ab7fae3dc3161805d132b2318576a3d3d1dbf6b58e6fd52eedbe1834a26"


def test_equal_calls_have_equal_outputs_in_another_process() -> None:
    script = "import tests.personas.test_apollo_world as t; print(t.digest_of_answers())"
    environment = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    backwards = [execute(WORLD, call) for call in reversed(some_calls(6))][::-1]
    assert done.stdout.strip() == hashlib.sha256(json.dumps(backwards).encode()).hexdigest()


def test_answer_can_be_changed_without_changing_the_world() -> None:
    first = answer("search_hotel", **STAY)
    first[0]["price"] = -1
    first.clear()
    assert [hotel["price"] > 0 for hotel in answer("search_hotel", **STAY)] == [True] * 3


def test_searches_and_bookings_agree() -> None:
    hotel = answer("search_hotel", **STAY)[1]
    booked = answer(
        "book_hotel", hotel_id=hotel["hotel_id"], room_type="single", breakfast=True, payment_method="wallet"
    )
    assert booked["total"] == 2 * (hotel["price"] + 12)
    assert [len(answer("search_hotel", **STAY | {"stars": stars})) for stars in (2, 3, 4, 5)] == [8, 7, 5, 3]
    day = {"date": "2027-03-02", "from_city": "Eastrel", "to_city": "Ironby"}
    flights = answer("search_flight", **day)
    assert answer("search_flight", **day, direct=True) == [flight for flight in flights if flight["stops"] == 0]
    booked = answer("book_flight", flight_id=flights[5]["flight_id"].lower(), insurance="true", payment_method="wallet")
    assert booked["total"] == flights[5]["price"] + 18


def test_rows_come_in_the_stated_order() -> None:
    known = TOOLS["search_products"].parameters
    newest, by_rating, fitting = (
        [
            answer("search_products", category=category, budget=budget, sort=sort)
            for category in known["category"].of
            for budget in known["budget"].of
        ]
        for sort in ("newest", "rating", "relevance")
    )
    assert newest != fitting != by_rating != newest
    for found in zip(newest, by_rating, fitting, strict=True):
        assert len({tuple(sorted(row["product_id"] for row in rows)) for rows in found}) == 1
    tools = {
        "rating": by_rating,
        "sold_today": [answer("get_trending_products", **call) for call in calls_of("get_trending_products")],
        "minutes_ago": [answer("get_latest_messages", **call) for call in calls_of("get_latest_messages")],
    }
    for column, outputs in tools.items():
        values = [[row[column] for row in rows] for rows in outputs]
        assert values == [sorted(each, reverse=column != "minutes_ago") for each in values]
        assert any(len(set(each)) > 1 for each in values)


def calls_of(tool: str) -> list[dict[str, Any]]:
    """Return every call of a tool whose parameters all have a list of values."""
    known = TOOLS[tool].parameters
    return [dict(zip(known, values, strict=True)) for values in product(*(each.of for each in known.values()))]


def test_length_and_rating_of_a_game_do_not_depend_on_the_search() -> None:
    draw, found = random.Random(0), dict[str, set[tuple[int, float]]]()
    outputs = [execute(WORLD, _call(draw, "game_recommendation")) for _ in range(150)]
    for output in outputs:
        assert isinstance(output, list) and 2 <= len({row["title"] for row in output}) == len(output) <= 3
        for row in output:
            found.setdefault(row["title"], set()).add((row["minutes"], row["rating"]))
    assert len(found) == 18
    assert {len(each) for each in found.values()} == {1}


def test_addresses_of_one_street_are_near() -> None:
    for number in range(len(CITIES)):
        places = WORLD.places(number)
        for venue, address in zip(places[::2], places[1::2], strict=True):
            assert venue.name.startswith(address.name.partition(" ")[2])
            assert venue.distance(address) < 1


def test_each_id_identifies_one_row() -> None:
    way = {"date": WORLD.days[4], "direct": False}
    ways = [way | {"from_city": a, "to_city": b} for a in CITIES for b in CITIES if a != b]
    found = [row for way in ways for row in answer("search_flight", **way)]
    assert len({row["flight_id"] for row in found}) == len(found) == 12 * 11 * 6
    assert all(WORLD.flights.find(row["flight_id"])[1] == row for row in found)


@pytest.mark.parametrize(
    ("tool", "arguments", "bad", "right"),
    [
        ("get_wether", {}, '"get_wether"', "get_weather"),
        ("book_flight", {}, '"book_flight"', "the tools are get_distance, get_weather"),
        ("get_weather", {"city": "Hollin"}, "date", "YYYY-MM-DD"),
        ("get_weather", {"city": "Hollin", "date": None}, "date", "YYYY-MM-DD"),
        ("get_weather", {"city": "Hollin", "date": "2026-03-01"}, "2026-03-01", "from 2027-03-01 to 2027-03-28"),
        ("get_weather", {"city": "Hollin", "date": "1 March"}, "1 March", "YYYY-MM-DD"),
        ("get_weather", {"city": "Atlantis", "date": "2027-03-01"}, "atlantis", "Aldermouth"),
        ("get_weather", {"city": "Hollin", "day": "2027-03-01"}, '"day"', "takes city, date"),
        ("get_weather", "[1]", "[1]", "JSON object"),
        ("get_weather", '{"city": ', '{\\"city', "no JSON"),
        ("get_weather", "[" * 99_999, "[[[", "no JSON"),
        ("get_distance", HERE | {"location_2": "Moon"}, "moon", HERE["location_1"]),
        ("get_distance", HERE | {"location_2": HERE["location_1"]}, "location_2", "two different ones"),
        ("request_ride", HERE | {"ride_type": "limousine"}, "limousine", "economy, comfort, xl, electric"),
        ("search_hotel", STAY | {"nights": 15}, "15", "from 1 to 14"),
        ("search_hotel", STAY | {"stars": 1}, "1", "2, 3, 4, 5"),
        ("book_movie_ticket", {"movie_id": 99, "hall_type": "imax", "payment_method": "wallet"}, '"99"', "search"),
    ],
)
def test_call_that_cannot_run_gets_an_explanation(tool: str, arguments: Any, bad: str, right: str) -> None:
    offered = [name for name in TOOLS if name != "book_flight"]
    output = execute(WORLD, {"name": tool, "arguments": arguments}, offered)
    assert isinstance(output, dict)
    assert list(output) == ["error"]
    assert bad in output["error"]
    assert right in output["error"]
    assert len(output["error"]) < 1000


def test_trainer_loads_calls_and_scores_without_dialoom() -> None:
    folder = ROOT / "personas" / "apollo"
    script = (
        "import sys, importlib.util as u\n"
        f"spec = u.spec_from_file_location('light', {str(folder / '__init__.py')!r})\n"
        "light = u.module_from_spec(spec); sys.modules['light'] = light; spec.loader.exec_module(light)\n"
        "call = {'name': 'get_weather', 'arguments': {'city': 'Hollin', 'date': '2027-03-01'}}\n"
        "print(light.compare([call], [call]).f1)\n"
        "print([m for m in ('dialoom', 'pydantic', 'numpy', 'langchain_core') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path("/"))
    assert done.stdout.split("\n")[:2] == ["1.0", "[]"]


def test_folded_names_are_distinct() -> None:
    names = [place.name for city in range(len(CITIES)) for place in WORLD.places(city)]
    assert len({name.casefold() for name in names}) == len(names) == 12 * 24
    for tool in TOOLS.values():
        for parameter in tool.parameters.values():
            folded = {
                str(value).casefold().replace(" ", "").replace("_", "").replace("-", "") for value in parameter.of
            }
            assert len(folded) == len(parameter.of)
