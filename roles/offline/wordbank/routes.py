"""Times, seats, hotels, cars and sights for journeys; hotels are invented unless a chain is known."""

from __future__ import annotations

from collections.abc import Mapping

from ..draws import Draws

_HOURS = {
    "morning": (7, 10),
    "late morning": (10, 11),
    "early morning": (6, 7),
    "afternoon": (13, 16),
    "evening": (17, 20),
    "night": (20, 22),
}


def _clock(minutes: int) -> str:
    hour, minute = divmod(minutes % 1440, 60)
    return f"{(hour - 1) % 12 + 1}:{minute:02d} {'AM' if hour < 12 else 'PM'}"


def _duration(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    parts = ["an hour" if hours == 1 else f"{hours} hours"] if hours else []
    parts += [f"{rest} minutes"] if rest else []
    return " and ".join(parts)


def _ride(
    values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws, shortest: int, longest: int
) -> dict[str, str]:
    part = (values.get("hours") or [""])[0].lower()
    stream = draws.fork("ride", slots.get("dest", ""), part)
    low, high = _HOURS.get(part.rstrip("s"), (9, 18))
    leaves = stream.number(low, high) * 60 + stream.pick([5, 10, 20, 35, 45, 50])
    takes = stream.number(shortest, longest) * 5
    code = "".join(stream.pick("BCDFGHJKLMNPQRTVWXYZ23456789") for _ in range(6))
    return {
        "dep": _clock(leaves),
        "arr": _clock(leaves + takes),
        "length": _duration(takes),
        "seat_or": slots.get("seat_fit") or stream.fork("seat").pick(["a few seats", "good seats", "several seats"]),
        "date_or": slots.get("date") or stream.fork("date").pick(["next Friday", "next Thursday", "next Tuesday"]),
        "dest": slots.get("dest") or "the coast",
        "code": code,
        "fee": str(stream.pick([25, 40, 60])),
        "price": str(stream.pick([12, 17, 21, 26, 34])),
    }


def flight(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose times and a reference for a flight, and a stopover for a round trip."""
    ride = _ride(values, slots, draws, 24, 70)
    mids = [city for city in ("Lisbon", "Vienna", "Istanbul", "Copenhagen", "Madrid") if city != ride["dest"]]
    mid = draws.fork("mid").pick(mids)
    stops = " ".join(values.get("stops", [])).lower()
    kind = "a non-stop flight" if "stop" in stops and "lay" not in stops.split("non-stop")[0] else "a flight"
    return ride | {
        "flight": kind,
        "stops": "" if kind == "a non-stop flight" else slots.get("stops", ""),
        "mid": mid,
        "city_or": slots.get("city") or "home",
        "daypart_dep": (values.get("hours") or ["morning"])[0],
    }


def train_ride(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose times for a train, and what one sees from it."""
    view = draws.fork("view").pick(["the river", "the coast", "two mountain passes", "vineyards and small stations"])
    return _ride(values, slots, draws, 16, 50) | {"view": view}


def bus_ride(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose times and a price for a bus."""
    return _ride(values, slots, draws, 18, 60)


def hotel(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Name a hotel of the known chain or an invented one, with a room and a price."""
    chain = next((name for name in values.get("chain") or [] if name.lower() not in ("boutique", "budget")), "")
    wants_small = (values.get("chain") or [""])[0].lower() == "boutique"
    stream = draws.fork("hotel", slots.get("dest", ""))
    small = stream.pick(
        [
            "the Linden House",
            "Hotel Meridian",
            "the Lantern Inn",
            "the Old Customs House",
            "Hotel Aurelia",
            "the Garden Rooms",
        ]
    )
    area = stream.pick(["Central", "Riverside", "Old Town", "Garden", "Station Square"])
    name = f"the {chain} {area}" if chain and not wants_small else small
    five = "5" in " ".join(values.get("stars", []))
    price = stream.pick([165, 189, 210]) if five else stream.pick([78, 95, 112, 129])
    code = "".join(stream.pick("BCDFGHJKLMNPQRTVWXYZ23456789") for _ in range(6))
    return {
        "hotel": name,
        "price": str(price),
        "code": code,
        "room_or": slots.get("room") or "a standard room",
        "distance": slots.get("area")
        or stream.fork("area").pick(["ten minutes from the centre", "close to a tram stop", "on a quiet street"]),
    }


_CARS = {
    "suv": ("Volvo XC60", "Toyota RAV4", "BMW X3", "Nissan Qashqai"),
    "economy": ("Fiat Panda", "Hyundai i10", "Kia Picanto"),
    "compact": ("Volkswagen Golf", "Mazda 3", "Ford Focus", "Toyota Yaris"),
    "intermediate": ("Skoda Octavia", "Toyota Corolla", "Honda Civic"),
    "premium": ("BMW 3 Series", "Audi A4", "Volvo S60", "Mercedes-Benz C-Class"),
    "luxury": ("Mercedes-Benz E-Class", "BMW 5 Series", "Jaguar XF", "Audi A6"),
    "minivan": ("Volkswagen Touran", "Ford Galaxy", "Kia Carnival"),
    "convertible": ("Mini Convertible", "Mazda MX-5"),
}


def car(values: Mapping[str, list[str]], _slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose two cars of the known sizes, of the known makes where the bank has one."""
    kinds = [kind.lower().rstrip("s") for kind in values.get("type") or []]
    known = [kind for kind in kinds if kind in _CARS] or ["compact", "intermediate"]
    stream = draws.fork("car", *known)
    pool = [model for kind in known for model in stream.shuffled(_CARS[kind])]
    makes = tuple(brand.lower() for brand in values.get("brand") or [])
    fitting = [model for model in pool if makes and model.lower().startswith(makes)]
    one, two = [*fitting, *(model for model in pool if model not in fitting)][:2]
    pickup = stream.pick(["at the main station", "at the airport desk", "at the office in town"])
    pricey = known[0] in ("luxury", "premium", "suv", "convertible")
    price = stream.pick([74, 82, 96]) if pricey else stream.pick([31, 38, 44])
    return {"car": f"a {one}", "car2": f"a {two}", "price": str(price), "pickup": pickup}


_SIGHTS: dict[str, tuple[str, ...]] = {
    "beach": ("the quiet beach past the headland", "the bathing huts at low tide", "the coast path to the lighthouse"),
    "mountain": (
        "the ridge walk with the hut at the top",
        "the cable car and the long way down",
        "the lake under the pass",
    ),
    "cultural": ("the museum quarter", "the music school's open evening", "the craft lanes behind the market"),
    "historical": ("the old fortress", "the town archive tour", "the merchants' houses"),
    "food": ("the covered market", "a tasting at a small cellar", "the bakery street at seven in the morning"),
    "nature": ("the gorge trail", "the bird reserve at dawn", "the botanical garden"),
    "city": ("the old town on foot", "the roof terrace of the library", "the tram line that loops the centre"),
}
_NEAR_SIGHTS = {
    "island": "beach",
    "coastal": "beach",
    "scenic": "nature",
    "countryside": "nature",
    "rural": "nature",
    "wildlife": "nature",
    "national park": "nature",
    "adventure": "mountain",
    "hiking": "mountain",
    "heritage": "historical",
    "food and wine": "food",
    "museums": "cultural",
    "urban exploration": "city",
    "ski resort": "mountain",
    "photography": "nature",
    "road trip": "nature",
}


def trip(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose three sights that suit the known tastes, in the destination, at home, or somewhere near."""
    kinds = [kind.lower() for kind in values.get("kind") or []]
    known = [near for near in (_NEAR_SIGHTS.get(kind, kind.rstrip("s")) for kind in kinds) if near in _SIGHTS]
    known = list(dict.fromkeys([*known, "city", "food", "cultural"]))
    stream = draws.fork("trip", slots.get("dest", ""))
    first = stream.shuffled(_SIGHTS[known[0]])
    second = stream.shuffled(_SIGHTS[known[1]])
    dest = (
        slots.get("dest") or slots.get("city") or stream.fork("city").pick(["a small town an hour away", "the lakes"])
    )
    return {"sight1": first[0], "sight2": second[0], "sight3": first[1], "dest": dest}
