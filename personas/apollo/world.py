"""The simulated world of the tools (invented cities, weather, flights, hotels, films etc.), and its random draws."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from hashlib import blake2b
from itertools import permutations, product, repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from .calls import CONTENT as TOOLS_CONTENT
from .calls import TOOLS, CallError, Value, format_value, normalize_text

T = TypeVar("T")
Row = dict[str, Any]
_Values: TypeAlias = Sequence[Any]
_Rule: TypeAlias = Callable[[Mapping[str, Any]], _Values]
_MAX_JOINED_VALUES = 10_000
_WORDS = struct.Struct("<16I")


def make_key(*parts: object) -> bytes:
    """Return the key of a draw: its parts as strings, joined."""
    return "\x1f".join(map(str, parts)).encode(errors="surrogatepass")


class Draw:
    """A random stream that depends only on a key and not on other draws. It hashes key and counter (BLAKE2b).

    Each method uses the next numbers of an endless sequence of numbers below 2**32. One digest gives sixteen of them.
    """

    __slots__ = ("_key", "_taken", "_words")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._words: tuple[int, ...] = ()
        self._taken = 0

    def below(self, bound: int) -> int:
        """Return a whole number from 0 to `bound` - 1.

        Bounds are at most about a million, so the bias is negligible.
        """
        return self._next(1)[0] * bound >> 32

    def choice(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self._next(1)[0] * len(values) >> 32]

    def choices(self, values: Sequence[T], count: int) -> list[T]:
        """Return `count` of the values, with replacement."""
        size = len(values)
        return [values[word * size >> 32] for word in self._next(count)]

    def shuffled(self, values: Sequence[T], count: int | None = None) -> list[T]:
        """Return the values in random order, or the first `count` of them."""
        left = list(values)
        size = len(left)
        return [left.pop(word * (size - place) >> 32) for place, word in enumerate(self._next(count or size))]

    def _next(self, count: int) -> tuple[int, ...]:
        begin = self._taken
        self._taken = end = begin + count
        while len(self._words) < end:
            number = b"%d\x1f" % (len(self._words) // 16)
            self._words += _WORDS.unpack(blake2b(number + self._key).digest())
        return self._words[begin:end]


class TableRows(NamedTuple):
    """The rows of a table in columnar form, which are converted to objects on demand.

    Attributes:
        names: The names of the columns; empty if each row is an object with a single entry, whose key is the value of
            the first column and whose value is that of the second.
        columns: The values of each column, possibly followed by columns that are not shown.
        places: The indices of the rows in order; None for all rows.
    """

    names: tuple[str, ...]
    columns: Sequence[Sequence[Any]]
    places: Sequence[int] | None = None

    def as_rows(self) -> list[Row]:
        """Return the rows in the form in which a tool returns them."""
        rows: Iterable[tuple[Any, ...]] = zip(*self.columns, strict=True)
        if self.places is not None:
            rows = map(list(rows).__getitem__, self.places)
        if not self.names:
            return [{key: value} for key, value in rows]
        return list(map(dict, map(zip, repeat(self.names), rows)))


class Columns:
    """The columns of a table. They are drawn one after the other, each by its rule.

    A rule is one of these: a list to choose from; `by`, with a rule for each value of an argument or of an earlier
    column; a number with `from`, `to` and `step`; `times` of day between two hours; an `id` with given letters. Braces
    in a text are replaced by an argument's value. Rules are parsed once, and many rows are drawn column by column, so
    that a row costs little more than its draws.
    """

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self._columns = {column: _parse_rule(rule) for column, rule in rules.items()}
        self._groups = cache(self._grouped)

    def row(self, draw: Draw, arguments: Mapping[str, Any]) -> Row:
        """Draw one row."""
        made: Row = {}
        known = {**arguments}
        for column, rule in self._columns.items():
            known[column] = made[column] = draw.choice(rule(known) if callable(rule) else rule)
        return made

    def rows(self, draw: Draw, arguments: Mapping[str, Any], count: int) -> TableRows:
        """Draw `count` rows; see `drawn`."""
        return TableRows(tuple(self._columns), self.drawn(draw, arguments, count))

    def drawn(self, draw: Draw, arguments: Mapping[str, Any], count: int) -> list[Sequence[Any]]:
        """Draw the columns of `count` rows, at least one. A column with enough texts repeats no text.

        Unlike in `row`, a column cannot depend on an earlier one.
        """
        made: list[Sequence[Any]] = []
        for group in self._groups(count):
            if isinstance(group, list):
                made += zip(*draw.choices(group, count), strict=True)
            elif not callable(group):
                made.append(draw.shuffled(group, count))
            else:
                values = group(arguments)
                made.append((draw.shuffled if _has_enough_texts(values, count) else draw.choices)(values, count))
        return made

    def _grouped(self, count: int) -> list[_Values | _Rule]:
        """Return the columns' rules.

        Adjacent independent columns are joined into lists of tuples, which are drawn at once. Elements of the
        result that are neither rules nor lists hold texts that should not be repeated.
        """
        groups: list[_Values | _Rule] = []
        for rule in self._columns.values():
            if callable(rule) or _has_enough_texts(rule, count):
                groups.append(rule)
            elif groups and isinstance(groups[-1], list) and len(groups[-1]) * len(rule) <= _MAX_JOINED_VALUES:
                groups[-1] = [(*row, value) for row in groups[-1] for value in rule]
            else:
                groups.append([(value,) for value in rule])
        return groups


def _has_enough_texts(values: _Values, count: int) -> bool:
    return len(values) >= max(count, 2) and isinstance(values, _Texts)


class _Texts(tuple[str, ...]):
    """Texts that should not be repeated within a column."""

    __slots__ = ()


class _Ids(Sequence[str]):
    """Ids of given letters and six digits, generated on access."""

    def __init__(self, letters: str) -> None:
        self._letters = letters

    def __len__(self) -> int:
        return 900_000

    def __getitem__(self, place: Any) -> Any:
        return f"{self._letters}{100_000 + place}"


def expand_range(rule: Mapping[str, Any]) -> tuple[int | float, ...]:
    """Return the numbers of a range, with at most one decimal."""
    first, step = rule["from"], rule.get("step", 1)
    numbers = [first + step * number for number in range(round((rule["to"] - first) / step) + 1)]
    return tuple(round(number, 1) if isinstance(number, float) else number for number in numbers)


def _parse_rule(rule: Any) -> _Values | _Rule:
    """Return a column's values, or the function that computes them from arguments and earlier columns."""
    if isinstance(rule, list):
        if any("{" in value for value in rule if isinstance(value, str)):
            return lambda known: _Texts(_fill(value, known) for value in rule)
        return _Texts(rule) if all(isinstance(value, str) for value in rule) else tuple(rule)
    if "by" in rule:
        name, rules = rule["by"], {value: _parse_rule(each) for value, each in rule.items() if value != "by"}
        return lambda known: each(known) if callable(each := rules[str(known[name])]) else each
    if "from" in rule:
        return expand_range(rule)
    if "id" in rule:
        ids = _Ids(rule["id"])
        return lambda _: ids
    return tuple(f"{hour:02}:{minute:02}" for hour, minute in product(range(*rule["times"]), range(0, 60, 5)))


def _fill(text: str, arguments: Mapping[str, Any]) -> str:
    if "{" not in text:
        return text
    text = text.format_map(arguments)
    return text[0].upper() + text[1:]


CONTENT: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "world.toml").read_text(encoding="utf-8"))
CITIES: tuple[str, ...] = tuple(CONTENT["cities"])
HOTEL_CLASSES = (5, 5, 5, 4, 4, 3, 3, 2)  # at least three hotels even for the highest class
_GENRES, _CINEMAS = (TOOLS["search_movie"].parameters[name].of for name in ("genre", "cinema"))
_CITY_SIZE_KM = 10
_FLIGHTS, _HOTELS, _SHOWINGS, _TRACKS = (Columns(CONTENT[name]) for name in ("flights", "hotels", "showings", "tracks"))


class Place(NamedTuple):
    """A place in a city.

    Attributes:
        name: An address, or a venue's name.
        is_address: Whether it is an address, where people live or work.
        east: Kilometres east of the city's south-western corner; `north` is the distance north of it.
    """

    name: str
    is_address: bool
    east: float
    north: float

    def distance(self, other: Place) -> float:
        """Return the distance in kilometres, estimated as a quarter longer than the straight line."""
        return max(0.3, round(1.25 * math.hypot(self.east - other.east, self.north - other.north), 1))


class RowTable:
    """Rows with ids, generated on first access. The rows of a place depend only on the seed and the place.

    Ids look random, but the place and the number of a row can be computed from its id.

    Args:
        seed: The seed of the rows, and of the order of the ids.
        columns: The names of the columns. The first is the id, such as `flight_id`.
        prefix: The letters at the beginning of the ids.
        sizes: The number of values of each part of a place, followed by the maximum number of rows of a place.
        make: A function of a draw and a place that returns the values of each column except the id, for all rows of the
            place.
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
        self._key, self._make = make_key(seed, columns[0]) + b"\x1f%d" * (len(sizes) - 1), make
        self._prefix, self._sizes, self._count = prefix, sizes, math.prod(sizes)
        draw = Draw(make_key(seed, "ids", prefix))
        self._shift = draw.below(self._count)
        self._factor = next(f for f in iter(lambda: draw.below(self._count), 0) if math.gcd(f, self._count) == 1)
        self._inverse = pow(self._factor, -1, self._count)
        self._cache: dict[tuple[int, ...], Sequence[Sequence[Any]]] = {}

    def at(self, *place: int) -> Sequence[Sequence[Any]]:
        """Return the rows of a place: the values of each of `columns`, and possibly a last one that is not shown."""
        if (cached := self._cache.get(place)) is None:
            made = self._make(Draw(self._key % place), place)
            cached = self._cache[place] = (self._row_ids(place, len(made[0]) if made else 0), *made)
        return cached

    def find(self, row_id: Any) -> tuple[tuple[int, ...], Row]:
        """Return the place and the row of an id.

        Raises:
            CallError: If there is no row with this id.
        """
        *place, row = self._place(row_id) or (0,)
        if place and row < len((found := self.at(*place))[0]):
            return tuple(place), {name: values[row] for name, values in zip(self.columns, found, strict=False)}
        raise CallError(
            f"{self.columns[0]} {format_value(row_id)}: there is none; give one from the output of the search"
        )

    def _row_ids(self, place: Sequence[int], count: int) -> list[str]:
        """Return the ids of the first `count` rows of a place."""
        first = 0
        for part, size in zip(place, self._sizes[:-1], strict=True):
            first = first * size + part
        prefix, step, size = self._prefix, self._factor, self._count
        start = (first * self._sizes[-1] * step + self._shift) % size
        return [f"{prefix}{100 + number % size}" for number in range(start, start + count * step, step)]

    def _place(self, text: str) -> tuple[int, ...] | None:
        """Return the place of an id's row and the row's number there, ignoring case.

        The result is None if no row can have this id.
        """
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
    """Read-only tables that are derived from the packaged content and a seed. Equal requests always have equal results.

    Args:
        seed: The seed. Another seed gives another world with the same names.

    Attributes:
        hash: The SHA-256 of everything that determines results. Samples of one world are invalid in another.
        days: The days of the world, as YYYY-MM-DD.
        flights: The flights by day and two cities. In the same way, `hotels` are by (city, day, nights - 1), `showings`
            by (day, genre, cinema), `beverages` by (city, day) and `tracks` by (genre, mood). All keys are indices.
        results: The results that the executor has cached.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        described = json.dumps([CONTENT, TOOLS_CONTENT, seed], sort_keys=True, ensure_ascii=False)
        self.hash = hashlib.sha256(described.encode()).hexdigest()
        first = date.fromisoformat(CONTENT["first_day"])
        self.days = tuple((first + timedelta(days=n)).isoformat() for n in range(CONTENT["days"]))
        self._day_numbers = {day: number for number, day in enumerate(self.days)}
        self._city_numbers = {normalize_text(city): number for number, city in enumerate(CITIES)}
        self._places = [{normalize_text(place.name): place for place in self._made_places(city)} for city in CITIES]
        self.results: dict[tuple[Value, ...], Row | TableRows] = {}
        cities, days, music = len(CITIES), len(self.days), TOOLS["search_music"].parameters
        self.flights = RowTable(
            seed, ("flight_id", *CONTENT["flights"]), "FL", (days, cities, cities, 6), _draw_flights
        )
        self.hotels = RowTable(
            seed, ("hotel_id", *CONTENT["hotels"]), "HT", (cities, days, 14, len(HOTEL_CLASSES)), _draw_hotels
        )
        self.showings = RowTable(
            seed,
            ("movie_id", "title", *CONTENT["showings"]),
            "MV",
            (days, len(_GENRES), len(_CINEMAS), 5),
            _draw_showings,
        )
        self.beverages = RowTable(seed, ("beverage_id", "category"), "BV", (cities, days, 5), _draw_beverages)
        self.tracks = RowTable(
            seed,
            ("track_id", "title", "artist"),
            "TR",
            (len(music["genre"].of), len(music["mood"].of), 6),
            _draw_tracks,
        )

    def draw(self, *key: object) -> Draw:
        """Return the world's random stream for a key."""
        return Draw(make_key(self.seed, *key))

    def city(self, name: Any, called: str = "city") -> int:
        """Return the index of a city, by its name in canonical form.

        Raises:
            CallError: If the city is unknown.
        """
        if (number := self._city_numbers.get(normalize_text(name))) is None:
            raise CallError(f"{called} {format_value(name)}: there is no such city; there are {', '.join(CITIES)}")
        return number

    def day(self, text: Any, called: str = "date") -> int:
        """Return the index of a day.

        Raises:
            CallError: If the day is outside the world's days.
        """
        if (number := self._day_numbers.get(text)) is None:
            raise CallError(f"{called} {format_value(text)}: give a day from {self.days[0]} to {self.days[-1]}")
        return number

    def places(self, city: int) -> list[Place]:
        """Return all places of a city: 12 venues and 12 addresses."""
        return list(self._places[city].values())

    def place(self, city: int, name: Any, called: str) -> Place:
        """Return a place of a city.

        Raises:
            CallError: If the place is unknown.
        """
        if (place := self._places[city].get(normalize_text(name))) is None:
            known = ", ".join(place.name for place in self.places(city))
            raise CallError(f"{called} {format_value(name)}: no such place in {CITIES[city]}; there are {known}")
        return place

    def _made_places(self, city: str) -> list[Place]:
        draw = self.draw("places", city)
        places = []
        for street, venue in zip(CONTENT["cities"][city], draw.shuffled(CONTENT["venues"]), strict=True):
            east, north = (draw.below(10 * _CITY_SIZE_KM) / 10 for _ in "xy")
            places.append(Place(f"{street} {venue}", False, east, north))
            near = (round(part + (draw.below(11) - 5) / 10, 1) for part in (east, north))  # venues on the same street
            places.append(Place(f"{1 + draw.below(80)} {street}", True, *near))
        return places


@cache
def _distinct_permutations(values: tuple[Any, ...]) -> Sequence[tuple[Any, ...]]:
    """Return all permutations of a few values, so that one random number selects a permutation."""
    return sorted(set(permutations(values)))


def _draw_flights(draw: Draw, place: tuple[int, ...]) -> Sequence[Sequence[Any]]:
    _, origin, target = place
    return _FLIGHTS.drawn(draw, {}, 6) if origin != target else ()


def _draw_hotels(draw: Draw, _: tuple[int, ...]) -> Sequence[Sequence[Any]]:
    """Draw hotels. Stars are not shown, because otherwise a search by minimum stars would reveal the exact matches."""
    stars = draw.choice(_distinct_permutations(HOTEL_CLASSES))
    return (*_HOTELS.drawn(draw, {}, len(stars)), stars)


def _draw_showings(draw: Draw, place: tuple[int, ...]) -> Sequence[Sequence[Any]]:
    films = draw.shuffled(CONTENT["films"][_GENRES[place[1]]], 3 + draw.below(3))
    return (films, *_SHOWINGS.drawn(draw, {}, len(films)))


def _draw_beverages(draw: Draw, _: tuple[int, ...]) -> Sequence[Sequence[Any]]:
    return (draw.choice(_distinct_permutations(tuple(CONTENT["beverages"]["category"])))[:5],)


def _draw_tracks(draw: Draw, _: tuple[int, ...]) -> Sequence[Sequence[Any]]:
    first, second, artists = _TRACKS.drawn(draw, {}, 6)
    return ([" ".join(words) for words in zip(first, second, strict=True)], artists)
