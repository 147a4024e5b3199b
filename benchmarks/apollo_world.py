"""How many calls of tools a core answers in a second: at first sight, and when they come again.

    python benchmarks/apollo_world.py [--rounds 5]

Lookups, searches and orders of all cities and days, each tool as often as the others. Seconds are of computing.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from dialoom.personas.apollo import CITIES, World, execute


def calls(world: World) -> list[dict[str, Any]]:
    """Eight calls for each city and day."""
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
    """Print calls a second for worlds that nobody has asked anything, and the microseconds of each tool."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how many fresh worlds")
    for number in range(parser.parse_args().rounds):
        world = World()
        asked = calls(world)
        first, again = (spent(world, asked) for _ in range(2))
        told = ", ".join(f"{len(asked) / sum(each.values()):,.0f} a second {when}" for when, each in
                         (("at first sight", first), ("again", again)))  # fmt: skip
        print(f"world {number + 1}: {len(asked):,} calls, {told}")
    by_tool = ", ".join(f"{name} {1e6 * seconds * len(first) / len(asked):.1f}" for name, seconds in first.items())
    print(f"microseconds of a call at first sight: {by_tool}")


def spent(world: World, asked: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds of computing for each tool's calls."""
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
