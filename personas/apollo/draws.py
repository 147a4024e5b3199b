"""What the world draws by seed: numbers and choices, columns of rows, and ids that lead back to their row."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Row = dict[str, Any]
_EIGHT_WORDS = struct.Struct(">8I")


class Draw:
    """Choices that follow from a seed and a key alone, and not from what was drawn before: keyed SHA-256."""

    __slots__ = ("_key", "_round", "_words")

    def __init__(self, *key: object) -> None:
        self._key = "\x1f".join(map(str, key)).encode(errors="surrogatepass")
        self._round = 0
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1, of which a million is the most that is asked for here."""
        if not self._words:
            digest = hashlib.sha256(b"%d\x1f" % self._round + self._key).digest()
            self._words = list(_EIGHT_WORDS.unpack(digest))
            self._round += 1
        return self._words.pop() * bound >> 32

    def choice(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[self.below(len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """All the values, in some order."""
        left = list(values)
        return [left.pop(self.below(len(left))) for _ in values]


def row(draw: Draw, columns: Mapping[str, Any], arguments: Mapping[str, Any]) -> Row:
    """A row whose columns are drawn one after the other, each by its rule.

    A rule is a list to choose from; `by`, with a rule for each value of an argument or of an earlier column; a number
    `from`, `to` and in `step`s; `times` of day between two hours; an `id` of these letters. Braces in a text stand
    for an argument's value.
    """
    made: Row = {}
    for column, rule in columns.items():
        made[column] = _value(draw, rule, arguments, made)
    return made


def rows(draw: Draw, columns: Mapping[str, Any], arguments: Mapping[str, Any], count: int) -> list[Row]:
    """So many rows, no two of them with the same text in a column that has enough texts for all."""
    apart = [column for column, rule in columns.items() if _spread(rule, arguments) >= count]
    made: list[Row] = []
    used: set[tuple[str, Any]] = set()
    while len(made) < count:
        fresh = row(draw, columns, arguments)
        marks = {(column, fresh[column]) for column in apart}
        if not marks & used:
            used |= marks
            made.append(fresh)
    return made


def in_range(draw: Draw, rule: Mapping[str, Any]) -> int | float:
    """A number of a range, with at most one decimal."""
    step = rule.get("step", 1)
    number = rule["from"] + step * draw.below(round((rule["to"] - rule["from"]) / step) + 1)
    return round(number, 1) if isinstance(number, float) else int(number)


def _value(draw: Draw, rule: Any, arguments: Mapping[str, Any], made: Row) -> Any:
    if isinstance(rule, list):
        chosen = draw.choice(rule)
        if not isinstance(chosen, str) or "{" not in chosen:
            return chosen
        text = chosen.format_map(arguments)
        return text[0].upper() + text[1:]
    if "by" in rule:
        key = made[rule["by"]] if rule["by"] in made else arguments[rule["by"]]
        return _value(draw, rule[str(key)], arguments, made)
    if "id" in rule:
        return f"{rule['id']}{100_000 + draw.below(900_000)}"
    if "times" in rule:
        first, last = rule["times"]
        return f"{first + draw.below(last - first):02}:{5 * draw.below(12):02}"
    return in_range(draw, rule)


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

    def of(self, place: Sequence[int]) -> str:
        """The id of the row in a place."""
        number = 0
        for part, size in zip(place, self._sizes, strict=True):
            number = number * size + part
        return f"{self._prefix}{100 + (number * self._factor + self._shift) % self._count}"

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
