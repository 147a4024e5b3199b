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


def build_calls(world: World) -> list[dict[str, Any]]:
    """Return eight calls for each city and day."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for number, city in enumerate(CITIES):
        start, end, *_ = (place.name for place in world.places(number))
        route = {"city": city, "location_1": start, "location_2": end}
        meal = {"city": city, "address": start, "cuisine": "korean", "payment_method": "wallet"}
        for day in world.days:
            flight = {"date": day, "from_city": city, "to_city": CITIES[number - 1], "direct": True}
            hotel = {"city": city, "check_in": day, "nights": 3, "stars": 3}
            calls += [("search_flight", flight), ("search_hotel", hotel), ("get_distance", route)]
            calls += [("search_beverage_id", {"city": city, "date": day}), ("get_weather", {"city": city, "date": day})]
            calls += [("search_movie", {"date": day, "genre": "drama", "cinema": "Bijou Nine"})]
            calls += [("order_food_delivery", meal), ("request_ride", route | {"ride_type": "xl"})]
    return [{"name": name, "arguments": arguments} for name, arguments in calls]


def main() -> None:
    """Print calls per second and the microseconds of each tool."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="number of new worlds")
    rounds = []
    for _ in range(parser.parse_args().rounds):
        world = World()
        calls = build_calls(world)
        rounds.append([measure_seconds_by_tool(world, calls) for _ in range(2)])
    for when, timings in zip(("new calls", "repeated calls"), zip(*rounds, strict=True), strict=True):
        rates = [len(calls) / sum(timing.values()) for timing in timings]
        print(f"{when}: {min(rates):,.0f} to {max(rates):,.0f} calls a second, median {median(rates):,.0f}")
        quickest = {
            name: 1e6 * min(timing[name] for timing in timings) * len(timings[0]) / len(calls) for name in timings[0]
        }
        print("  microseconds, fastest round: " + ", ".join(f"{name} {value:.1f}" for name, value in quickest.items()))


def measure_seconds_by_tool(world: World, calls: list[dict[str, Any]]) -> dict[str, float]:
    """Return the processor time of each tool's calls in seconds."""
    seconds: dict[str, float] = {}
    for name in dict.fromkeys(call["name"] for call in calls):
        tool_calls = [call for call in calls if call["name"] == name]
        started = time.process_time()
        for call in tool_calls:
            execute(world, call)
        seconds[name] = time.process_time() - started
    return seconds


if __name__ == "__main__":
    main()
