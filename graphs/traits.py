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

from dialoom.grouping import group_pairs
from dialoom.inputs import DataError
from dialoom.text import CHARACTER, pluralize

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
from .transcript_rows import read_talks

COLUMNS = "columns"
STRESS: Mapping[str, str] = {
    "uncooperative": "You answer only a part of what you are asked, and pass over the rest.\n"
    "You give a detail only when you are asked for it a second time, and you do not say why you want something.",
    "mistaken": "You are wrong about one fact of your matter, such as a date, a number, a name or what was agreed, and "
    "you state it as if it were true.\nYou give it up only when you are shown why it cannot be.",
}
"""The built-in stress kinds, with the instructions of each."""

MANNER = "manner"
MEASURED_TRAITS = ("length", "directness", "patience", "corrections")
TRAIT_FACETS = (*(f"trait_{name}" for name in MEASURED_TRAITS), "stress")
"""The facets of traits by which results are reported."""

UNKNOWN = "unknown"
"""The facet's value if a trait cannot be measured in a conversation, e.g. corrections in a single line."""

LENGTH_UNIT, WORDS, CHARACTERS = "length_unit", "words", "characters"
"""The column of the unit of `length`, and its values; words if it is missing."""

_LEVEL_COUNT = 3


def _resolve_spec(spec: str) -> str:
    return spec if spec in STRESS else str(Path(spec).expanduser().absolute())


TraitSpec: TypeAlias = Annotated[str, AfterValidator(_resolve_spec)]
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


TraitFunction: TypeAlias = "Callable[[str, Mapping[str, Any]], dict[str, str]]"
"""A function that returns the traits of a person, given their name and columns.

It returns the same traits for all scenarios of a person.
"""


def load_traits(spec: str, draw: Random, note: Callable[[str], None]) -> TraitFunction:
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
        return lambda name, row: {MANNER: format_manner(_parse_columns(name, row))}
    manners, seed = _read_manners(Path(spec)), draw.getrandbits(64)
    note(f"traits of users are drawn from {pluralize(len(manners), 'conversations')}")
    levels = {
        name: _make_level_function([trait[name] for trait in manners if name in trait]) for name in MEASURED_TRAITS
    }

    def draw_traits(name: str, _row: Mapping[str, Any]) -> dict[str, str]:
        manner = Random(f"{seed} {name}").choice(manners)
        levels_by_trait = {
            trait: levels[trait](manner[trait]) if trait in manner else UNKNOWN for trait in MEASURED_TRAITS
        }
        return {MANNER: format_manner(manner), **{f"trait_{trait}": value for trait, value in levels_by_trait.items()}}

    return draw_traits


def _read_manners(path: Path) -> list[dict[str, Any]]:
    """Return the manner of each conversation's user."""
    if not path.exists():
        raise DataError(path, f"there is no such file; give one, or {' or '.join(STRESS)}")
    manners, roles = [], dict[str, None]()
    for _, row in read_talks(path):
        if isinstance(row, DataError):
            raise row
        roles |= dict.fromkeys(line.role for line in row.lines)
        if lines := [line.content for line in row.lines if line.role == USER and line.content.strip()]:
            manners.append(measure_manner(lines))
    if not manners:
        raise DataError(path, f"contains no line of the role {USER!r}; its roles are {', '.join(roles) or 'none'}")
    return manners


def _make_level_function(values: Sequence[float]) -> Callable[[float], str]:
    """Return a function that maps a value to the third of the given values that contains it, written as a range.

    The three thirds contain the lowest, the middle and the highest values.
    """
    ordered = sorted(values)
    cuts = sorted({ordered[len(ordered) * part // _LEVEL_COUNT] for part in range(1, _LEVEL_COUNT)} if ordered else ())
    parts = group_pairs((bisect_right(cuts, value), value) for value in ordered)

    def level(value: float) -> str:
        part = parts[bisect_right(cuts, value)]
        return f"{part[0]:g}" if part[0] == part[-1] else f"{part[0]:g} to {part[-1]:g}"

    return level


def _parse_columns(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manner that is given in the columns of a person's row."""
    manner: dict[str, Any] = {}
    for trait in MEASURED_TRAITS:
        if (value := row.get(trait, "")) == "":
            continue
        maximum = 100 if trait in ("directness", "corrections") else math.inf
        try:
            manner[trait] = float(value)
        except (TypeError, ValueError):
            manner[trait] = math.nan
        if not 0 <= manner[trait] <= maximum or math.isinf(manner[trait]):
            bounds = "from 0 to 100" if maximum == 100 else "of at least 0"
            raise RecipeError(f"traits of {name}: {trait!r} must be a number {bounds}, got {value!r:.60}")
    if (unit := row.get(LENGTH_UNIT) or WORDS) not in (WORDS, CHARACTERS):
        raise RecipeError(f"traits of {name}: {LENGTH_UNIT!r} must be {WORDS!r} or {CHARACTERS!r}, got {unit!r:.60}")
    if not manner:
        raise RecipeError(f"traits of {name}: at least one of the columns {', '.join(MEASURED_TRAITS)} is needed")
    return {**manner, LENGTH_UNIT: unit}


_OBJECTION = re.compile(
    r"^(?:no\b(?! (?:problem|worries|need|thanks|thank you))|wrong\b|nope\b|wait\b|but i (?:said|asked|wanted)\b)"
    r"|\b(?:(?:that(?:'s| is)|this is) (?:not|wrong|incorrect)|not what i (?:asked|said|wanted|meant)"
    r"|you(?:'re| are) wrong|i (?:said|asked for)|i didn't (?:say|ask|mean)"
    r"|you (?:forgot|missed|misunderstood|ignored))\b"
)


def compute_percentage(lines: Sequence[str], condition: Callable[[str], object]) -> float | None:
    """Return the percentage of lines for which a condition is true; `None` without lines."""
    return 100 * sum(bool(condition(line)) for line in lines) / len(lines) if lines else None


def measure_length(lines: Sequence[str]) -> float:
    """Return the mean number of words per line; each character of Chinese or Japanese counts as a word."""
    return sum(len(split_units(line)) for line in lines) / len(lines)


def measure_directness(lines: Sequence[str]) -> float | None:
    """Return the percentage of all different content words that occur in the first line; `None` for a single line."""
    stop = select_vocabulary([detect_language("\n".join(lines)) or "en"]).stop
    words = [{word for word in split_terms(line) if word not in stop} for line in lines]
    all_words = set().union(*words)
    return 100 * len(words[0]) / len(all_words) if len(words) > 1 and all_words else None


def measure_corrections(lines: Sequence[str]) -> float | None:
    """Return the percentage of lines after the first that object to the other side; `None` for a single line.

    Objections are recognised by English phrases.
    """
    return compute_percentage(lines[1:], lambda line: _OBJECTION.search(normalize(line)))


def measure_manner(lines: Sequence[str]) -> dict[str, Any]:
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
    values = {
        "length": measure_length(lines) if has_words else None,
        "directness": measure_directness(lines) if has_words else None,
        "patience": float(len(lines)),
        "corrections": measure_corrections(lines) if may_be_english(text) else None,
    }
    manner: dict[str, Any] = {name: round(value, 1) for name, value in values.items() if value is not None}
    units = split_units(text)
    if 2 * sum(re.fullmatch(CHARACTER, unit) is not None for unit in units) > len(units):
        manner[LENGTH_UNIT] = CHARACTERS
    return manner


def format_manner(manner: Mapping[str, Any]) -> str:
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
