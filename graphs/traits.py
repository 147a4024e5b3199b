"""Traits of simulated users: a manner (measured in real conversations, or given in columns) or a stress kind."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, SerializerFunctionWrapHandler, model_serializer

from dialoom.grouping import grouped
from dialoom.inputs import DataError
from dialoom.text import CHARACTER, counted

from . import RecipeError, Scenario
from .gate.talk import (
    UNSPLIT_SCRIPTS,
    detect_language,
    is_written_in,
    may_be_english,
    normalize,
    select_vocabulary,
    split_terms,
    split_units,
)
from .outcome import USER
from .transcript_rows import recorded_talks

COLUMNS = "columns"
STRESS: Mapping[str, str] = {
    "uncooperative": "You answer only a part of what you are asked, and pass over the rest.\n"
    "You give a detail only when you are asked for it a second time, and you do not say why you want something.",
    "mistaken": "You are wrong about one fact of your matter, such as a date, a number, a name or what was agreed, and "
    "you state it as if it were true.\nYou give it up only when you are shown why it cannot be.",
}
"""The built-in stress kinds, with the instructions of each."""

MANNER = "manner"
MEASURED = ("length", "directness", "patience", "corrections")
TRAIT_FACETS = (*(f"trait_{name}" for name in MEASURED), "stress")
"""The facets of traits by which results are reported."""

UNKNOWN = "unknown"
"""The facet's value if a trait cannot be measured in a conversation, e.g. corrections in a single line."""

LENGTH_UNIT, WORDS, CHARACTERS = "length_unit", "words", "characters"
"""The column of the unit of `length`, and its values; words if it is missing."""

_LEVELS = 3


def _located(spec: str) -> str:
    return spec if spec in STRESS else str(Path(spec).expanduser().absolute())


TraitsFrom: TypeAlias = Annotated[str, AfterValidator(_located)]
"""A stress kind, or a file or folder of conversations, whose path is made absolute."""


class TraitedScenario(Scenario):
    """A scenario whose user may have traits.

    Attributes:
        traits: The user's instructions under the key `manner`, and the values of facets; empty if the user has no
            traits.
    """

    traits: Mapping[str, str] = {}

    @model_serializer(mode="wrap")
    def _plain(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the field if it is empty, so that ids of scenarios without traits do not depend on it."""
        dumped: dict[str, Any] = dump(self)
        if not self.traits:
            dumped.pop("traits", None)
        return dumped

    def trait_facets(self) -> dict[str, str]:
        """Return the traits by which results are reported."""
        return {name: value for name, value in self.traits.items() if name != MANNER}


Traits: TypeAlias = "Callable[[str, Mapping[str, Any]], dict[str, str]]"
"""A function that returns the traits of a person, given their name and columns.

It returns the same traits for all scenarios of a person.
"""


def traits_of(spec: str, draw: Random, note: Callable[[str], None]) -> Traits:
    """Return a function that maps a person's name and columns to the person's traits.

    Args:
        spec: A file or folder of real conversations, from which each person draws a conversation and takes its user's
            manner; or a key of `STRESS`; or `columns`, for each person's own `length`, `directness`, `patience` and
            `corrections`.
        draw: The random stream of planning.
        note: A function that passes a message to the user.

    Raises:
        DataError: If the file cannot be read, has a broken row, or contains no lines of a user.
    """
    if spec in STRESS:
        return lambda _name, _row: {MANNER: STRESS[spec], "stress": spec}
    if spec == COLUMNS:
        return lambda name, row: {MANNER: described(_columns(name, row))}
    manners, seed = _manners(Path(spec)), draw.getrandbits(64)
    note(f"traits of users are drawn from {counted(len(manners), 'conversations')}")
    levels = {name: _levels([each[name] for each in manners if name in each]) for name in MEASURED}

    def drawn(name: str, _row: Mapping[str, Any]) -> dict[str, str]:
        manner = Random(f"{seed} {name}").choice(manners)
        known = {each: levels[each](manner[each]) if each in manner else UNKNOWN for each in MEASURED}
        return {MANNER: described(manner), **{f"trait_{each}": value for each, value in known.items()}}

    return drawn


def _manners(path: Path) -> list[dict[str, Any]]:
    """Return the manner of each conversation's user."""
    if not path.exists():
        raise DataError(path, f"there is no such file; give one, or {' or '.join(STRESS)}")
    found, roles = [], dict[str, None]()
    for _, row in recorded_talks(path):
        if isinstance(row, DataError):
            raise row
        roles |= dict.fromkeys(line.role for line in row.lines)
        if lines := [line.content for line in row.lines if line.role == USER and line.content.strip()]:
            found.append(manner_of(lines))
    if not found:
        raise DataError(path, f"contains no line of the role {USER!r}; its roles are {', '.join(roles) or 'none'}")
    return found


def _levels(values: Sequence[float]) -> Callable[[float], str]:
    """Return a function that maps a value to the third of the given values that contains it, written as a range.

    The three thirds contain the lowest, the middle and the highest values.
    """
    ordered = sorted(values)
    cuts = sorted({ordered[len(ordered) * part // _LEVELS] for part in range(1, _LEVELS)} if ordered else ())
    parts = grouped((bisect_right(cuts, value), value) for value in ordered)

    def level(value: float) -> str:
        part = parts[bisect_right(cuts, value)]
        return f"{part[0]:g}" if part[0] == part[-1] else f"{part[0]:g} to {part[-1]:g}"

    return level


def _columns(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manner that is given in the columns of a person's row."""
    found: dict[str, Any] = {}
    for each in MEASURED:
        if (value := row.get(each, "")) == "":
            continue
        most = 100 if each in ("directness", "corrections") else math.inf
        try:
            found[each] = float(value)
        except (TypeError, ValueError):
            found[each] = math.nan
        if not 0 <= found[each] <= most or math.isinf(found[each]):
            bounds = "from 0 to 100" if most == 100 else "of at least 0"
            raise RecipeError(f"traits of {name}: {each!r} must be a number {bounds}, got {value!r:.60}")
    if (unit := row.get(LENGTH_UNIT) or WORDS) not in (WORDS, CHARACTERS):
        raise RecipeError(f"traits of {name}: {LENGTH_UNIT!r} must be {WORDS!r} or {CHARACTERS!r}, got {unit!r:.60}")
    if not found:
        raise RecipeError(f"traits of {name}: at least one of the columns {', '.join(MEASURED)} is needed")
    return {**found, LENGTH_UNIT: unit}


_OBJECTS = re.compile(
    r"^(?:no\b(?! (?:problem|worries|need|thanks|thank you))|wrong\b|nope\b|wait\b|but i (?:said|asked|wanted)\b)"
    r"|\b(?:(?:that(?:'s| is)|this is) (?:not|wrong|incorrect)|not what i (?:asked|said|wanted|meant)"
    r"|you(?:'re| are) wrong|i (?:said|asked for)|i didn't (?:say|ask|mean)"
    r"|you (?:forgot|missed|misunderstood|ignored))\b"
)


def share(lines: Sequence[str], holds: Callable[[str], object]) -> float | None:
    """Return the percentage of lines for which a condition is true; `None` without lines."""
    return 100 * sum(bool(holds(line)) for line in lines) / len(lines) if lines else None


def words_per_line(lines: Sequence[str]) -> float:
    """Return the mean number of words per line; each character of Chinese or Japanese counts as a word."""
    return sum(len(split_units(line)) for line in lines) / len(lines)


def disclosed(lines: Sequence[str]) -> float | None:
    """Return the percentage of all different content words that occur in the first line; `None` for a single line."""
    stop = select_vocabulary([detect_language("\n".join(lines)) or "en"]).stop
    words = [{word for word in split_terms(line) if word not in stop} for line in lines]
    whole = set().union(*words)
    return 100 * len(words[0]) / len(whole) if len(words) > 1 and whole else None


def pushed_back(lines: Sequence[str]) -> float | None:
    """Return the percentage of lines after the first that object to the other side; `None` for a single line.

    Objections are recognised by English phrases.
    """
    return share(lines[1:], lambda line: _OBJECTS.search(normalize(line)))


def manner_of(lines: Sequence[str]) -> dict[str, Any]:
    """Return the manner of a user, measured in the user's lines of a conversation.

    Args:
        lines: The user's lines, at least one.

    Returns:
        `length`: words per line. `directness`: the percentage of all different content words that occur in the first
        line. `patience`: the number of lines. `corrections`: the percentage of lines after the first that object.
        Values that cannot be counted are left out: `directness` and `corrections` for a single line, `corrections` for
        languages other than English, and the first two for languages such as Thai, whose words nothing separates.
        `length_unit` is present if most units are characters of Chinese or Japanese, which count as words.
    """
    text = "\n".join(lines)
    has_words = not is_written_in(UNSPLIT_SCRIPTS, text)
    found = {
        "length": words_per_line(lines) if has_words else None,
        "directness": disclosed(lines) if has_words else None,
        "patience": float(len(lines)),
        "corrections": pushed_back(lines) if may_be_english(text) else None,
    }
    known: dict[str, Any] = {name: round(value, 1) for name, value in found.items() if value is not None}
    units = split_units(text)
    if 2 * sum(re.fullmatch(CHARACTER, unit) is not None for unit in units) > len(units):
        known[LENGTH_UNIT] = CHARACTERS
    return known


def described(manner: Mapping[str, Any]) -> str:
    """Return a manner as instructions for a simulated user, one per line."""
    unit = manner.get(LENGTH_UNIT, WORDS)
    return "\n".join(instruction(manner[name], unit) for name, instruction in _INSTRUCTIONS.items() if name in manner)


_INSTRUCTIONS: Mapping[str, Callable[[float, str], str]] = {
    "length": lambda value, unit: (
        f"Each of your messages has {f'about {value:.0f} {unit}' if value >= 1.5 else f'one {unit[:-1]}'}."
    ),
    "patience": lambda value, _: (
        f"You write {f'about {value:.0f} messages' if value >= 1.5 else 'one message'} in all, and then you stop."
    ),
    "directness": lambda value, _: f"Your first message tells about {value:.0f} % of what you tell in all.",
    "corrections": lambda value, _: (
        f"In about {value:.0f} % of your later messages you object to what the assistant has said."
        if value
        else "You do not object to what the assistant says unless it is plainly wrong."
    ),
}
