"""Tool calls per second on one core, for new and for repeated calls.

    python benchmarks/apollo_world.py [--rounds 15]

Lookups, searches and orders for all cities and days, with equally many calls of each tool. Times are processor times;
on a machine under load, the fastest round is the most reliable.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

from dialoom.personas.apollo import CITIES, World, execute


def calls(world: World) -> list[dict[str, Any]]:
    """Return eight calls for each city and day."""
    made: list[tuple[str, dict[str, Any]]] = []
    for number, city in enumerate(CITIES):
        start, end, *_ = (place.name for place in world.places(number))
        way = {"city": city, "location_1": start, "location_2": end}
        meal = {"city": city, "address": start, "cuisine": "korean", "payment_method": "wallet"}
        for day in world.days:
            flight = {"date": day, "from_city": city, "to_city": CITIES[number - 1], "direct": True}
            hotel = {"city": city, "check_in": day, "nights": 3, "stars": 3}
            made += [("search_flight", flight), ("search_hotel", hotel), ("get_distance", way)]
            made += [("search_beverage_id", {"city": city, "date": day}), ("get_weather", {"city": city, "date": day})]
            made += [("search_movie", {"date": day, "genre": "drama", "cinema": "Bijou Nine"})]
            made += [("order_food_delivery", meal), ("request_ride", way | {"ride_type": "xl"})]
    return [{"name": name, "arguments": arguments} for name, arguments in made]


def main() -> None:
    """Print calls per second and the microseconds of each tool."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="number of new worlds")
    rounds = []
    for _ in range(parser.parse_args().rounds):
        world = World()
        asked = calls(world)
        rounds.append([seconds_by_tool(world, asked) for _ in range(2)])
    for when, found in zip(("new calls", "repeated calls"), zip(*rounds, strict=True), strict=True):
        rates = [len(asked) / sum(each.values()) for each in found]
        print(f"{when}: {min(rates):,.0f} to {max(rates):,.0f} calls a second, median {median(rates):,.0f}")
        quickest = {name: 1e6 * min(each[name] for each in found) * len(found[0]) / len(asked) for name in found[0]}
        print("  microseconds, fastest round: " + ", ".join(f"{name} {value:.1f}" for name, value in quickest.items()))


def seconds_by_tool(world: World, asked: list[dict[str, Any]]) -> dict[str, float]:
    """Return the processor time of each tool's calls in seconds."""
    seconds: dict[str, float] = {}
    for name in dict.fromkeys(call["name"] for call in asked):
        some = [call for call in asked if call["name"] == name]
        begun = time.process_time()
        for call in some:
            execute(world, call)
        seconds[name] = time.process_time() - begun
    return seconds


if __name__ == "__main__":
    main()
