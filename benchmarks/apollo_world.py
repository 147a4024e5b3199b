"""How many calls of tools a core answers in a second: at first sight, and when they come again.

    python benchmarks/apollo_world.py [--rounds 3]

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
    """Print calls a second of each round; the first makes the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    world = World()
    asked = calls(world)
    for number in range(parser.parse_args().rounds):
        begun = time.process_time()
        for call in asked:
            execute(world, call)
        seconds = time.process_time() - begun
        print(f"round {number + 1}: {len(asked):,} calls, {len(asked) / seconds:,.0f} a second")


if __name__ == "__main__":
    main()
