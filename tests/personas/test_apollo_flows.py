"""Flows: gold calls, the origins of their arguments, and uninformative requests, which are refused."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from dialoom.personas.apollo import CITIES, TOOLS, World, compare, execute
from dialoom.personas.apollo.flows import (
    FLOWS,
    FlowError,
    FlowRequest,
    Gold,
    Preference,
    Resident,
    check_request,
    find_request,
    find_sets,
)

WORLD = World()
PLACES = WORLD.places(CITIES.index("Hollin"))
RULE = {"km_limit": 4, "bad_weather": "rain", "joined": "both", "ride_type": "xl", "mode": "bike"}
BOOKED = {"room_type": "suite", "breakfast": True, "payment_method": "wallet"}


def resident(draw: random.Random) -> Resident:
    """Return a person with a home and a workplace."""
    city = draw.randrange(len(CITIES))
    home, work = draw.sample([place.name for place in WORLD.places(city) if place.is_address], 2)
    return Resident(CITIES[city], home, work)


def found(flow: str, seed: int) -> tuple[FlowRequest, Gold]:
    """Return a request that passes the checks, and its gold calls."""
    draw = random.Random(f"{flow} {seed}")
    ((pair,),) = find_sets(WORLD, FLOWS[flow], resident(draw), draw, 1, 1)
    return pair.asked, pair.asked_gold


def asked(flow: str, values: dict[str, Any], order: tuple[str, ...] | None = None, **slots: Any) -> FlowRequest:
    """Return a request of a person who lives in Hollin."""
    home, work, *_ = (place.name for place in PLACES if place.is_address)
    lookups = tuple(step.tool for step in FLOWS[flow].lookups)
    defaults: dict[str, Any] = {
        "today": "2027-03-01",
        "date": "2027-03-02",
        "start": "home",
        "to_city": "Ironby",
        "nights": 2,
    }
    return FlowRequest(
        WORLD, Preference(flow, values, order or lookups), Resident("Hollin", home, work), defaults | slots
    )


def called(gold: Gold) -> list[str]:
    """Return the names of the calls."""
    return [call.name for call in gold.calls]


def test_there_are_nine_flows_in_the_four_domains() -> None:
    assert len(FLOWS) == 9
    assert {flow.domain for flow in FLOWS.values()} == {"commute", "travel", "entertainment", "food"}
    kinds = {name: flow.kind for name, flow in FLOWS.items()}
    assert [name for name in kinds if kinds[name] == "direct"] == ["music", "food"]
    assert [name for name in kinds if kinds[name] == "conditional"] == ["commute-rule", "commute-bus", "commute-reach"]
    for flow in FLOWS.values():
        for facet in flow.facets:
            assert len(set(facet.values)) >= (
                2 if facet.name in ("joined", "direct", "insurance", "breakfast", "cutlery") else 3
            )


@pytest.mark.parametrize("name", FLOWS)
def test_kept_requests_distinguish_informed_agents_from_others(name: str) -> None:
    """For any resident, the gold calls run and score 1; a guess or an omitted call does not."""
    for seed in range(4):
        request, gold = found(name, seed)
        assert check_request(request, gold) is None
        assert [execute(WORLD, call) for call in gold.plain()] == list(gold.outputs)
        assert compare(gold.plain(), gold.plain()).accuracy
        assert set(called(gold)) <= {tool for tool in TOOLS if TOOLS[tool].domain == FLOWS[name].domain}
        guess = request.gold(request.flow.unknowing(request.preference), blind=True)
        assert not compare(guess.plain(), gold.plain()).actions or name == "music"
        assert not compare(guess.plain(), gold.plain()).accuracy
        for place in range(len(gold.calls)):
            assert not compare(gold.plain()[:place] + gold.plain()[place + 1 :], gold.plain()).accuracy
        assert found(name, seed)[1] == gold


def test_rule_is_followed_as_far_as_it_decides() -> None:
    places = {place.name: place for place in PLACES}
    start = asked("commute-rule", RULE).resident.home
    distances = {name: place.distance(places[start]) for name, place in places.items() if name != start}
    far, near = max(distances, key=lambda name: distances[name]), min(distances, key=lambda name: distances[name])
    assert distances[near] < 3.7 < 4.3 < distances[far]
    days = {str(execute(WORLD, _weather(day))["condition"]): day for day in WORLD.days}  # type: ignore[call-overload]

    def gold(where: str, weather: str, **changes: Any) -> tuple[list[str], set[str]]:
        done = asked("commute-rule", RULE | changes, destination=where, date=days[weather]).gold()
        return [name.split("_")[-1] for name in called(done)], set(done.used)

    used = {"km_limit", "bad_weather", "joined"}
    assert gold(far, "rain") == (["distance", "weather", "ride"], used | {"ride_type"})
    assert gold(far, "sunny") == (["distance", "weather", "recommendation"], used | {"mode"})
    assert gold(near, "rain") == (["distance", "recommendation"], used - {"bad_weather"} | {"mode"})
    assert gold(far, "sunny", joined="either") == (["distance", "ride"], used - {"bad_weather"} | {"ride_type"})
    assert gold(near, "rain", joined="either") == (["distance", "weather", "ride"], used | {"ride_type"})
    assert gold(near, "snow", bad_weather="rain or snow", joined="either")[0][-1] == "ride"
    reordered = asked("commute-rule", RULE, ("get_weather", "get_distance"), destination=far, date=days["rain"]).gold()
    assert called(reordered) == ["get_weather", "get_distance", "request_ride"]
    assert reordered.calls[2].arguments == {"city": "Hollin", "location_1": start, "location_2": far, "ride_type": "xl"}
    assert list(reordered.calls[2].provenance.values()) == ["user", "user", "query", "preference"]


def _weather(day: str) -> dict[str, Any]:
    return {"name": "get_weather", "arguments": {"city": "Hollin", "date": day}}


def test_distance_decides_between_three_modes() -> None:
    values = {"near_limit": 4, "far_limit": 7, "near_mode": "walk", "middle_mode": "bus", "far_mode": "drive"}
    start = asked("commute-reach", values).resident.home
    for place in PLACES:
        if place.name != start:
            gold = asked("commute-reach", values, destination=place.name).gold()
            output = gold.outputs[0]
            assert isinstance(output, dict)
            band = (output["distance_km"] > 4) + (output["distance_km"] > 7)
            assert gold.calls[1].arguments["mode"] == ("walk", "bus", "drive")[band]
            assert gold.used >= ({"near_limit"}, {"near_limit", "far_limit"}, {"far_limit"})[band]
            assert len(gold.used) == (2, 3, 2)[band]
            assert gold.gaps[0][0] == pytest.approx(abs(output["distance_km"] - 4))


def test_wanted_hotel_is_unique() -> None:
    request = _one_hotel(matches=1)
    gold = request.gold()
    search, book = gold.calls
    assert search.arguments == {"city": "Ironby", "check_in": request.slots["date"], "nights": 2, "stars": 3}
    assert list(search.provenance.values()) == ["query", "query", "query", "preference"]
    rows = execute(WORLD, search.call())
    assert [row["hotel_id"] for row in rows if row["area"] == "harbour"] == [book.arguments["hotel_id"]]  # type: ignore[index]
    assert book.arguments == {"hotel_id": book.arguments["hotel_id"], **BOOKED}
    assert list(book.provenance.values()) == ["output", "preference", "preference", "preference"]
    assert check_request(request, gold) is None


def _one_hotel(matches: int) -> FlowRequest:
    """Return a request for a hotel at the harbour, on the first day with that many matches."""
    requests = (asked("hotel", {"stars": 3, "area": "harbour", **BOOKED}, date=day) for day in WORLD.days)
    return next(request for request in requests if (request.gold().picked_from or (0, -1))[1] == matches)


@pytest.mark.parametrize("matches", [0, 2])
def test_no_match_and_a_second_match_are_refused(matches: int) -> None:
    request = _one_hotel(matches)
    assert str(check_request(request, request.gold())).startswith(f"pick: {matches} of 7 rows match")


def test_idle_lookup_is_refused() -> None:
    request, gold = found("commute-rule", 1)
    flipped = {"either": "both", "both": "either"}[str(request.preference.values["joined"])]
    idle = replace(
        request, preference=replace(request.preference, values={**request.preference.values, "joined": flipped})
    )
    assert str(check_request(idle, idle.gold())).startswith(f"idle lookup: no other result of {gold.calls[1].name} ")


def test_idle_facet_is_refused() -> None:
    values = {"wait_limit": 15, "ride_type": "comfort"}
    refusals = _refusals(asked("commute-bus", values, destination=place.name) for place in PLACES)
    assert "idle facet: no other value of wait_limit changes the calls" in refusals


def test_close_number_is_refused() -> None:
    values = {"wait_limit": 10, "ride_type": "comfort"}
    refusals = _refusals(
        asked("commute-bus", values, start=start, destination=place.name)
        for place in PLACES
        for start in ("home", "work")
    )
    assert "close number: a looked-up number is 1.0 from a limit; it must be at least 2 from it" in refusals


def test_guessable_value_is_refused() -> None:
    values = {"genre": "classical", "mood": "calm", "order": "newest"}
    request = asked("music", values)
    assert str(check_request(request, request.gold())).startswith("guessed: ")
    with pytest.raises(FlowError, match=r"flow music \(genre classical, .*none of 50 .*: guessed: "):
        find_request(WORLD, request.preference, request.resident, random.Random(1))


@pytest.mark.parametrize(
    ("flow", "values", "slots", "bad"),
    [
        ("commute-bus", {"wait_limit": 5, "ride_type": "xl"}, {"destination": "the moon"}, "the moon"),
        ("commute-reach", {}, {"destination": "the moon"}, "the moon"),
        (
            "movie",
            {"genre": "drama", "cinema": "Bijou Nine", "language": "dubbed"},
            {"date": "2031-01-01"},
            "2031-01-01",
        ),
        ("food", {"cuisine": "thai", "spice_level": "hot", "cutlery": True, "payment_method": "wallet"}, {}, "thai"),
    ],
)
def test_impossible_call_is_refused_in_the_tools_words(
    flow: str, values: dict[str, Any], slots: dict[str, Any], bad: str
) -> None:
    request = asked(flow, values, **slots)
    refused = str(check_request(request, request.gold()))
    assert refused.startswith("not played: ")
    assert bad in refused


def test_wanted_row_is_first_no_more_often_than_by_chance() -> None:
    first, expected = 0, 0.0
    for name in ("flight", "hotel", "movie", "beverage"):
        for seed in range(50):
            _, gold = found(name, seed)
            rows, picked = gold.outputs[0], next(iter(gold.calls[1].arguments.values()))
            assert isinstance(rows, list)
            first += picked in (next(iter(rows[0])), next(iter(rows[0].values())))
            expected += 1 / len(rows)
    assert abs(first - expected) <= 12  # two standard deviations


def test_pairs_share_a_preference_and_differ_in_day_and_place() -> None:
    for name in FLOWS:
        draw = random.Random(name)
        (pairs,) = find_sets(WORLD, FLOWS[name], resident(draw), draw, 1, 4)
        assert len(pairs) == 4
        assert len({str((pair.told.preference, pair.asked.preference)) for pair in pairs}) == 1
        for told, told_gold, asked_for, asked_gold in pairs:
            assert check_request(told, told_gold) is None
            assert all(
                told.slots[slot] != asked_for.slots[slot] for slot in told.slots if slot not in ("start", "nights")
            )
            assert called(told_gold)[:-1] == called(asked_gold)[:-1]


def _refusals(requests: Any) -> list[str | None]:
    return [check_request(request, request.gold()) for request in requests]
