"""The simulated world of the tools: cities, weather, flights, hotels, films, music, beverages, all invented."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from .calls import CONTENT as TOOLS_CONTENT
from .calls import TOOLS, CallError, Value, folded, shown
from .draws import Columns, Draw, Row, TableRows, keyed

CONTENT: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "world.toml").read_text(encoding="utf-8"))
CITIES: tuple[str, ...] = tuple(CONTENT["cities"])
CLASSES_OF_HOTELS = (5, 5, 5, 4, 4, 3, 3, 2)  # at least three hotels even for the highest class
_GENRES, _CINEMAS = (TOOLS["search_movie"].parameters[name].of for name in ("genre", "cinema"))
_BEVERAGES: tuple[str, ...] = tuple(CONTENT["beverages"]["category"])
_KM_ACROSS = 10
_FLIGHTS, _HOTELS, _SHOWINGS, _TRACKS = (Columns(CONTENT[name]) for name in ("flights", "hotels", "showings", "tracks"))


class Place(NamedTuple):
    """A place in a city.

    Attributes:
        name: An address, or a venue's name.
        is_address: Whether it is an address, where people live or work.
        east: Kilometres from the city's south-western corner; `north` likewise.
    """

    name: str
    is_address: bool
    east: float
    north: float

    def distance(self, other: Place) -> float:
        """Return the distance in kilometres; streets are a quarter longer than the straight line."""
        return max(0.3, round(1.25 * math.hypot(self.east - other.east, self.north - other.north), 1))


class RowTable:
    """Rows with ids, generated on first access; the rows of a place depend only on the seed and the place.

    Ids look random, and the place and the number of their row can be computed from them.

    Args:
        seed: The seed of the rows, and of the order of the ids.
        columns: The names of the columns, the id's first, such as `flight_id`.
        prefix: The letters at the beginning of the ids.
        sizes: The number of values of each part of a place, and last the most rows of a place.
        make: Returns the values of each column except the id's for all rows of a place, given a draw and the place.
    """

    def __init__(
        self,
        seed: int,
        columns: tuple[str, ...],
        prefix: str,
        sizes: Sequence[int],
        make: Callable[[Draw, tuple[int, ...]], Sequence[Sequence[Any]]],
    ) -> None:
        self.columns = columns
        self._key, self._make = keyed(seed, columns[0]) + b"\x1f%d" * (len(sizes) - 1), make
        self._prefix, self._sizes, self._count = prefix, sizes, math.prod(sizes)
        draw = Draw(keyed(seed, "ids", prefix))
        self._shift = draw.below(self._count)
        self._factor = next(f for f in iter(lambda: draw.below(self._count), 0) if math.gcd(f, self._count) == 1)
        self._inverse = pow(self._factor, -1, self._count)
        self._kept: dict[tuple[int, ...], Sequence[Sequence[Any]]] = {}

    def at(self, *place: int) -> Sequence[Sequence[Any]]:
        """Return the rows of a place: the values of each of `columns`, possibly with one more that is not shown."""
        kept = self._kept.get(place)
        if kept is None:
            made = self._make(Draw(self._key % place), place)
            kept = self._kept[place] = (self._row_ids(place, len(made[0]) if made else 0), *made)
        return kept

    def find(self, row_id: Any) -> tuple[tuple[int, ...], Row]:
        """Return the place and the row of an id.

        Raises:
            CallError: If there is no such row.
        """
        *place, row = self._place(row_id) or (0,)
        if place and row < len((found := self.at(*place))[0]):
            return tuple(place), {name: values[row] for name, values in zip(self.columns, found, strict=False)}
        raise CallError(f"{self.columns[0]} {shown(row_id)}: there is none; give one from the output of the search")

    def _row_ids(self, place: Sequence[int], count: int) -> list[str]:
        """Return the ids of the first `count` rows of a place."""
        first = 0
        for part, size in zip(place, self._sizes[:-1], strict=True):
            first = first * size + part
        prefix, step, size = self._prefix, self._factor, self._count
        start = (first * self._sizes[-1] * step + self._shift) % size
        return [f"{prefix}{100 + number % size}" for number in range(start, start + count * step, step)]

    def _place(self, text: str) -> tuple[int, ...] | None:
        """Return the place of an id's row and its number there, ignoring case; None if there can be no such row."""
        digits = text[len(self._prefix) :]
        if text[: len(self._prefix)].upper() != self._prefix or not (digits.isascii() and digits.isdigit()):
            return None
        if digits != str(int(digits[:9])) or not 100 <= int(digits) < 100 + self._count:
            return None
        number = (int(digits) - 100 - self._shift) * self._inverse % self._count
        parts = []
        for size in reversed(self._sizes):
            number, part = divmod(number, size)
            parts.append(part)
        return tuple(reversed(parts))


class World:
    """Read-only tables, derived from the packaged content and a seed: equal requests always have equal results.

    Args:
        seed: Another seed makes another world with the same names.

    Attributes:
        hash: SHA-256 of all inputs of the results. Samples of one world are invalid in another.
        days: The days of the world, as YYYY-MM-DD.
        flights: The flights by day and two cities; likewise `hotels` (city, day, nights - 1), `showings` (day, genre,
            cinema), `beverages` (city, day) and `tracks` (genre, mood), all given as indices.
        said: The executor's cache of results.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        described = json.dumps([CONTENT, TOOLS_CONTENT, seed], sort_keys=True, ensure_ascii=False)
        self.hash = hashlib.sha256(described.encode()).hexdigest()
        first = date.fromisoformat(CONTENT["first_day"])
        self.days = tuple((first + timedelta(days=n)).isoformat() for n in range(CONTENT["days"]))
        self._day_numbers = {day: number for number, day in enumerate(self.days)}
        self._city_numbers = {folded(city): number for number, city in enumerate(CITIES)}
        self._places = [{folded(place.name): place for place in self._made_places(city)} for city in CITIES]
        self.said: dict[tuple[Value, ...], Row | TableRows] = {}
        cities, days, music = len(CITIES), len(self.days), TOOLS["search_music"].parameters
        self.flights = RowTable(seed, ("flight_id", *CONTENT["flights"]), "FL", (days, cities, cities, 6), _flights)
        self.hotels = RowTable(
            seed, ("hotel_id", *CONTENT["hotels"]), "HT", (cities, days, 14, len(CLASSES_OF_HOTELS)), _hotels
        )
        self.showings = RowTable(
            seed, ("movie_id", "title", *CONTENT["showings"]), "MV", (days, len(_GENRES), len(_CINEMAS), 5), _showings
        )
        self.beverages = RowTable(seed, ("beverage_id", "category"), "BV", (cities, days, 5), _beverages)
        self.tracks = RowTable(
            seed, ("track_id", "title", "artist"), "TR", (len(music["genre"].of), len(music["mood"].of), 6), _tracks
        )

    def draw(self, *key: object) -> Draw:
        """Return the world's random stream for a key."""
        return Draw(keyed(self.seed, *key))

    def city(self, name: Any, called: str = "city") -> int:
        """Return the index of a city, by its name in canonical form.

        Raises:
            CallError: If the city is unknown.
        """
        number = self._city_numbers.get(folded(name))
        if number is None:
            raise CallError(f"{called} {shown(name)}: there is no such city; there are {', '.join(CITIES)}")
        return number

    def day(self, text: Any, called: str = "date") -> int:
        """Return the index of a day.

        Raises:
            CallError: If the day is outside the world's days.
        """
        number = self._day_numbers.get(text)
        if number is None:
            raise CallError(f"{called} {shown(text)}: give a day from {self.days[0]} to {self.days[-1]}")
        return number

    def places(self, city: int) -> list[Place]:
        """Return all places of a city: 12 venues and 12 addresses."""
        return list(self._places[city].values())

    def place(self, city: int, name: Any, called: str) -> Place:
        """Return a place of a city.

        Raises:
            CallError: If the place is unknown.
        """
        place = self._places[city].get(folded(name))
        if place is None:
            known = ", ".join(place.name for place in self.places(city))
            raise CallError(f"{called} {shown(name)}: no such place in {CITIES[city]}; there are {known}")
        return place

    def _made_places(self, city: str) -> list[Place]:
        draw = self.draw("places", city)
        places = []
        for street, venue in zip(CONTENT["cities"][city], draw.shuffled(CONTENT["venues"]), strict=True):
            east, north = (draw.below(10 * _KM_ACROSS) / 10 for _ in "xy")
            places.append(Place(f"{street} {venue}", False, east, north))
            near = (round(part + (draw.below(11) - 5) / 10, 1) for part in (east, north))  # on the same street
            places.append(Place(f"{1 + draw.below(80)} {street}", True, *near))
        return places


@cache
def _orders(values: tuple[Any, ...]) -> Sequence[tuple[Any, ...]]:
    """Return all permutations of a few values, so that one number draws one."""
    return sorted(set(permutations(values)))


def _flights(draw: Draw, place: tuple[int, ...]) -> Sequence[Sequence[Any]]:
    _, origin, target = place
    return _FLIGHTS.drawn(draw, {}, 6) if origin != target else ()


def _hotels(draw: Draw, _: tuple[int, ...]) -> Sequence[Sequence[Any]]:
    """Draw hotels. Stars are not shown: otherwise a search by minimum stars would reveal the exact matches."""
    stars = draw.choice(_orders(CLASSES_OF_HOTELS))
    return (*_HOTELS.drawn(draw, {}, len(stars)), stars)


def _showings(draw: Draw, place: tuple[int, ...]) -> Sequence[Sequence[Any]]:
    films = draw.shuffled(CONTENT["films"][_GENRES[place[1]]], 3 + draw.below(3))
    return (films, *_SHOWINGS.drawn(draw, {}, len(films)))


def _beverages(draw: Draw, _: tuple[int, ...]) -> Sequence[Sequence[Any]]:
    return (draw.choice(_orders(_BEVERAGES))[:5],)


def _tracks(draw: Draw, _: tuple[int, ...]) -> Sequence[Sequence[Any]]:
    first, second, artists = _TRACKS.drawn(draw, {}, 6)
    return ([" ".join(words) for words in zip(first, second, strict=True)], artists)
