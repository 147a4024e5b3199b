"""What the world draws by seed: numbers and choices, columns of rows, and ids that lead back to their row."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, count
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Row = dict[str, Any]
_Word: TypeAlias = Callable[[], int]
_Drawer: TypeAlias = Callable[[_Word, Mapping[str, Any], Row], Any]
_EIGHT_WORDS = struct.Struct(">8I")


class Draw:
    """Choices that follow from a seed and a key alone, and not from what was drawn before: keyed SHA-256.

    Attributes:
        word: Gives the next number below 2**32.
    """

    __slots__ = ("word",)

    def __init__(self, *key: object) -> None:
        named = "\x1f".join(map(str, key)).encode(errors="surrogatepass")
        self.word: Callable[[], int] = chain.from_iterable(_digests(named)).__next__

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1, of which a million is the most that is asked for here."""
        return self.word() * bound >> 32

    def choice(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[self.below(len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """All the values, in some order."""
        left, word = list(values), self.word
        return [left.pop(word() * len(left) >> 32) for _ in values]


def _digests(key: bytes) -> Iterator[tuple[int, ...]]:
    for number in count():
        yield _EIGHT_WORDS.unpack(sha256(b"%d\x1f%b" % (number, key)).digest())[::-1]


class Columns:
    """The columns of a table's rows, drawn one after the other, each by its rule.

    A rule is a list to choose from; `by`, with a rule for each value of an argument or of an earlier column; a number
    `from`, `to` and in `step`s; `times` of day between two hours; an `id` of these letters. Braces in a text stand
    for an argument's value. Rules are read once, so that a row costs little more than its draws.
    """

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self._rules = rules
        self._columns = [(column, _values(rule), _drawer(rule)) for column, rule in rules.items()]

    def row(self, draw: Draw, arguments: Mapping[str, Any]) -> Row:
        """A row."""
        word = draw.word
        made: Row = {}
        for column, values, drawn in self._columns:
            made[column] = values[word() * len(values) >> 32] if values else drawn(word, arguments, made)
        return made

    def rows(self, draw: Draw, arguments: Mapping[str, Any], count: int) -> list[Row]:
        """So many rows, no two of them with the same text in a column that has enough texts for all."""
        used = {column: set[Any]() for column, rule in self._rules.items() if _spread(rule, arguments) >= count}
        made: list[Row] = []
        while len(made) < count:
            fresh = self.row(draw, arguments)
            if not used or not any(fresh[column] in seen for column, seen in used.items()):
                made.append(fresh)
                for column, seen in used.items():
                    seen.add(fresh[column])
        return made


def in_range(rule: Mapping[str, Any]) -> tuple[int | float, ...]:
    """The numbers of a range, with at most one decimal."""
    first, step = rule["from"], rule.get("step", 1)
    numbers = [first + step * number for number in range(round((rule["to"] - first) / step) + 1)]
    return tuple(round(number, 1) if isinstance(number, float) else number for number in numbers)


def _values(rule: Any) -> Sequence[Any]:
    """What a column's value is one of, whatever else is drawn or asked; nothing where it depends on more."""
    if isinstance(rule, list):
        return () if any(isinstance(value, str) and "{" in value for value in rule) else tuple(rule)
    return in_range(rule) if "from" in rule else ()


def _drawer(rule: Any) -> _Drawer:
    """What draws a column's value, from the arguments and the columns before it."""
    if values := _values(rule):
        return lambda word, _, __: values[word() * len(values) >> 32]
    if isinstance(rule, list):
        return lambda word, arguments, _: _filled(rule[word() * len(rule) >> 32], arguments)
    if "by" in rule:
        return _depending(rule["by"], {value: _drawer(each) for value, each in rule.items() if value != "by"})
    if "id" in rule:
        return lambda word, _, __: f"{rule['id']}{100_000 + (word() * 900_000 >> 32)}"
    hours, minutes = [f"{hour:02}:" for hour in range(*rule["times"])], [f"{5 * minute:02}" for minute in range(12)]
    return lambda word, _, __: hours[word() * len(hours) >> 32] + minutes[word() * 12 >> 32]


def _filled(text: str, arguments: Mapping[str, Any]) -> str:
    if "{" not in text:
        return text
    text = text.format_map(arguments)
    return text[0].upper() + text[1:]


def _depending(name: str, drawers: Mapping[str, _Drawer]) -> _Drawer:
    def drawn(word: _Word, arguments: Mapping[str, Any], made: Row) -> Any:
        return drawers[str(made[name] if name in made else arguments[name])](word, arguments, made)

    return drawn


def _spread(rule: Any, arguments: Mapping[str, Any]) -> int:
    """How many texts a column has to choose from; 0 where nobody minds the same twice."""
    if isinstance(rule, list):
        return len(set(rule)) if isinstance(rule[0], str) and len(rule) > 1 else 0
    if "by" in rule and rule["by"] in arguments:
        return _spread(rule[str(arguments[rule["by"]])], arguments)
    return 0


class RowIds:
    """Ids that look drawn and lead back to the row that they belong to, without a list of all of them.

    Args:
        prefix: Letters that they begin with.
        sizes: How many values each part of a row's place has.
        seed: Another one numbers the rows in another order.
    """

    def __init__(self, prefix: str, sizes: Sequence[int], seed: object) -> None:
        self._prefix, self._sizes, self._count = prefix, sizes, math.prod(sizes)
        draw = Draw(seed, "ids", prefix)
        self._shift = draw.below(self._count)
        self._factor = next(f for f in iter(lambda: draw.below(self._count), 0) if math.gcd(f, self._count) == 1)
        self._inverse = pow(self._factor, -1, self._count)

    def of(self, place: Sequence[int], count: int) -> list[str]:
        """The ids of so many rows.

        Args:
            place: What they have in common: all of a row's place but its last part.
            count: How many there are, from 0 in the last part.
        """
        first = 0
        for part, size in zip(place, self._sizes[:-1], strict=True):
            first = first * size + part
        first *= self._sizes[-1]
        return [
            f"{self._prefix}{100 + ((first + number) * self._factor + self._shift) % self._count}"
            for number in range(count)
        ]

    def place(self, text: str) -> tuple[int, ...] | None:
        """The place that an id in any case leads to; None where there can be no such row."""
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
