"""Seeded draws of the world: numbers and choices, and columns of rows."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from itertools import product, repeat
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
Row = dict[str, Any]
_Values: TypeAlias = Sequence[Any]
_Rule: TypeAlias = Callable[[Mapping[str, Any]], _Values]
_MOST_TOGETHER = 10_000
_BETWEEN = "\x1f"
_WORDS = struct.Struct("<16I")


def keyed(*parts: object) -> bytes:
    """Return the key of a draw, made of the texts of its parts."""
    return _BETWEEN.join(map(str, parts)).encode(errors="surrogatepass")


class Draw:
    """A random stream determined by a key alone, independent of other draws: BLAKE2b of key and counter.

    Each method uses the next numbers below 2**32 of an endless sequence; one digest gives sixteen.
    """

    __slots__ = ("_key", "_taken", "_words")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._words: tuple[int, ...] = ()
        self._taken = 0

    def below(self, bound: int) -> int:
        """Return a whole number from 0 to `bound` - 1; bounds are at most about a million, so bias is negligible."""
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
    """Rows of a table in columnar form, converted to objects on demand.

    Attributes:
        names: The names of the columns; empty if each row is one value keyed by another.
        columns: The values of each column, possibly followed by columns that are not shown.
        places: The indices of the rows, in order; None for all of them.
    """

    names: tuple[str, ...]
    columns: Sequence[Sequence[Any]]
    places: Sequence[int] | None = None

    def told(self) -> list[Row]:
        """Return the rows as a tool's output."""
        rows: Iterable[tuple[Any, ...]] = zip(*self.columns, strict=True)
        if self.places is not None:
            rows = map(list(rows).__getitem__, self.places)
        if not self.names:
            return [{key: value} for key, value in rows]
        return list(map(dict, map(zip, repeat(self.names), rows)))


class Columns:
    """The columns of a table's rows, drawn one after the other, each by its rule.

    A rule is a list to choose from; `by`, with a rule for each value of an argument or of an earlier column; a number
    `from`, `to` and in `step`s; `times` of day between two hours; an `id` with these letters. Braces in a text stand
    for an argument's value. Rules are parsed once, and many rows are drawn column by column, so that a row costs little
    more than its draws.
    """

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self._columns = {column: _rule(rule) for column, rule in rules.items()}
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
        """Draw the columns of `count` rows, at least one; a column with enough texts repeats none.

        Here, a column cannot depend on an earlier one.
        """
        made: list[Sequence[Any]] = []
        for group in self._groups(count):
            if isinstance(group, list):
                made += zip(*draw.choices(group, count), strict=True)
            elif not callable(group):
                made.append(draw.shuffled(group, count))
            else:
                values = group(arguments)
                made.append((draw.shuffled if _is_apart(values, count) else draw.choices)(values, count))
        return made

    def _grouped(self, count: int) -> list[_Values | _Rule]:
        """Return the columns' rules, with adjacent independent columns joined to lists of tuples, drawn at once.

        Elements that are neither a rule nor a list are texts that should not be repeated.
        """
        groups: list[_Values | _Rule] = []
        for rule in self._columns.values():
            if callable(rule) or _is_apart(rule, count):
                groups.append(rule)
            elif groups and isinstance(groups[-1], list) and len(groups[-1]) * len(rule) <= _MOST_TOGETHER:
                groups[-1] = [(*row, value) for row in groups[-1] for value in rule]
            else:
                groups.append([(value,) for value in rule])
        return groups


def _is_apart(values: _Values, count: int) -> bool:
    return len(values) >= max(count, 2) and isinstance(values, _Texts)


class _Texts(tuple[str, ...]):
    """Texts that should not be repeated within a column."""

    __slots__ = ()


class _Ids(Sequence[str]):
    """Ids of some letters and six digits, generated on access."""

    def __init__(self, letters: str) -> None:
        self._letters = letters

    def __len__(self) -> int:
        return 900_000

    def __getitem__(self, place: Any) -> Any:
        return f"{self._letters}{100_000 + place}"


def in_range(rule: Mapping[str, Any]) -> tuple[int | float, ...]:
    """Return the numbers of a range, with at most one decimal."""
    first, step = rule["from"], rule.get("step", 1)
    numbers = [first + step * number for number in range(round((rule["to"] - first) / step) + 1)]
    return tuple(round(number, 1) if isinstance(number, float) else number for number in numbers)


def _rule(rule: Any) -> _Values | _Rule:
    """Return a column's values, or the function that computes them from arguments and earlier columns."""
    if isinstance(rule, list):
        if any("{" in value for value in rule if isinstance(value, str)):
            return lambda known: _Texts(_filled(value, known) for value in rule)
        return _Texts(rule) if all(isinstance(value, str) for value in rule) else tuple(rule)
    if "by" in rule:
        name, rules = rule["by"], {value: _rule(each) for value, each in rule.items() if value != "by"}
        return lambda known: each(known) if callable(each := rules[str(known[name])]) else each
    if "from" in rule:
        return in_range(rule)
    if "id" in rule:
        ids = _Ids(rule["id"])
        return lambda _: ids
    return tuple(f"{hour:02}:{minute:02}" for hour, minute in product(range(*rule["times"]), range(0, 60, 5)))


def _filled(text: str, arguments: Mapping[str, Any]) -> str:
    if "{" not in text:
        return text
    text = text.format_map(arguments)
    return text[0].upper() + text[1:]
