"""Reply types: the types named by a prompt's `reply`, and parsing a model's text into them."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field, ValidationError, create_model

from dialoom.errors import first_problem
from dialoom.inputs import Frozen
from dialoom.text import well_formed_value


class Verdict(Frozen):
    """Yes or no, and why."""

    verdict: bool
    explanation: str = ""


TEXT = "text"
_SCORE = re.compile(r"score-(-?\d+)-(-?\d+)")


class Score(Frozen):
    """A whole number on a scale, and why."""

    score: int
    explanation: str = ""


@lru_cache(maxsize=64)
def score_type(low: int, high: int) -> type[Score]:
    """Return the reply type of a score from `low` to `high`."""
    return create_model(
        f"Score{high}" if low == 1 else f"Score{low}To{high}",
        __base__=Score,
        __doc__=f"A whole number from {low} to {high}, and why.",
        score=(Annotated[int, Field(ge=low, le=high)], ...),
    )


def reply_type(name: str, own: Mapping[str, type[BaseModel]] | None = None) -> type[BaseModel] | None:
    """Return the type named by a prompt's `reply`; `None` for plain text.

    Args:
        name: `text`, `verdict`, `score-LOW-HIGH`, or one of the recipe's own.
        own: The recipe's reply types by name.

    Raises:
        KeyError: If the type is unknown.
    """
    if own and name in own:
        return own[name]
    if name == TEXT:
        return None
    if name == "verdict":
        return Verdict
    if (found := _SCORE.fullmatch(name)) and (bounds := (int(found[1]), int(found[2])))[0] < bounds[1]:
        return score_type(*bounds)
    raise KeyError(name)


def parse_reply(text: str, type_: type[BaseModel]) -> BaseModel:
    """Parse a reply into its type; JSON that is slightly malformed is repaired.

    Raises:
        ValueError: If the text holds no JSON object, none of that type, or several answers that contradict each other;
            the message can be shown to the model.
    """
    problem = ""
    for values in _candidates(text, type_):
        try:
            _refuse_truth(values, type_)
            return type_.model_validate(well_formed_value(values))
        except ValidationError as error:
            problem = problem or _problem(error)
        except RecursionError:
            problem = problem or "the object is nested too deeply"
        except ValueError as error:
            problem = problem or str(error)
    raise ValueError(problem or "the answer holds no JSON object")


def _candidates(text: str, type_: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yield the objects that may be the answer, likeliest first.

    These are the first valid JSON object, unless it is inside a malformed one, and a repaired object, if there is one.

    Raises:
        ValueError: If a later object has another score or verdict, or if an object has a key twice, with two values.
    """
    proper, at, end = _first_proper_object(text)
    if proper is not None:
        _refuse_another(proper, text[end:], type_)
    beginning = _BEGINNING.search(text)
    is_within = beginning is not None and beginning.start() < at and "}" not in text[beginning.start() : at]
    if proper is not None and not is_within:
        yield proper
    if beginning is not None and (mended := _mended_object(text[beginning.start() :], type_)) is not None:
        yield mended


def _refuse_truth(values: Mapping[str, Any], type_: type[BaseModel]) -> None:
    """Raise `ValueError` for a boolean in a numeric field, because pydantic would accept `true` as 1."""
    for name, field in type_.model_fields.items():
        for key in (name, field.alias):
            kinds = set(get_args(field.annotation) or [field.annotation])
            if key is not None and isinstance(values.get(key), bool) and kinds & {int, float} and bool not in kinds:
                raise ValueError(f"{key}: a number is needed, got {json.dumps(values[key])}")


def _problem(error: ValidationError) -> str:
    place, message, value = first_problem(error)
    shown = reprlib.repr(value) if isinstance(value, list | dict) else repr(value)
    return f"{place or 'the object'}: {message}, got {shown:.60}"


class _Contradiction(ValueError):
    """Two values for one key."""


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise _Contradiction(f"{key} has two values, {found[key]!r:.60} and {value!r:.60}")
        found[key] = value
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unambiguous)


def _first_proper_object(text: str) -> tuple[dict[str, Any] | None, int, int]:
    """Return the first JSON object in a text, ignoring surrounding text and code fences, its position and its end."""
    for begins in islice(_OPENING.finditer(text), _MOST_OPENINGS):
        try:
            value, end = _DECODER.raw_decode(text, begins.start())
        except _Contradiction:
            raise
        except (ValueError, RecursionError):  # not JSON, or a number with thousands of digits
            continue
        return value, begins.start(), end
    return None, len(text), len(text)


def _refuse_another(first: Mapping[str, Any], rest: str, type_: type[BaseModel]) -> None:
    """Raise `ValueError` if an object in the rest of a text has another score or verdict than the first one.

    Lists and free text are not compared: several drafts or explanations do not contradict each other.
    """
    compared = {name: field for name, field in type_.model_fields.items() if field.annotation is not str}
    keys = compared.keys() | {field.alias for field in compared.values() if field.alias}
    for _ in range(_MOST_OPENINGS):
        other, _begin, end = _first_proper_object(rest)
        if other is None:
            return
        for key in sorted(keys & first.keys() & other.keys()):
            values = first[key], other[key]
            is_compared = not any(isinstance(value, list | dict) for value in values)
            if is_compared and values[0] != values[1] and str(values[0]).lower() != str(values[1]).lower():
                raise _Contradiction(f"{key} has two values, {values[0]!r:.60} and {values[1]!r:.60}")
        rest = rest[end:]


_OPENING = re.compile(r"""\{(?=\s*["}])""")
_MOST_OPENINGS = 64
"""Maximum number of positions at which an object is looked for. Each attempt may scan to the end of the text, so an
unlimited number could take quadratic time.
"""

_BEGINNING = re.compile(r"""\{\s*["'`“”‘’]?\w[\w -]{0,60}["'`“”‘’]?\s*:""")
_CUT_VALUE = re.compile(r"""[:\[,]\s*[^\s"'{}\[\],:]+$""")
_LONGEST = 20_000
"""Maximum length, in characters, of a text that is repaired: some malformed texts take quadratic time."""


def _mended_object(text: str, type_: type[BaseModel]) -> dict[str, Any] | None:
    """Repair and return the object at the start of a text: quotes, commas, line breaks and braces.

    Return `None` for an object that has none of the type's keys, or that is cut off within a number or a word, as
    `{"score": 1` may have been the beginning of `{"score": 10}`.
    """
    if len(text) > _LONGEST or _CUT_VALUE.search(text.rstrip()):
        return None
    import json_repair  # deferred: few replies need it

    try:
        found = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    meant = found[0] if isinstance(found, list) and found else found
    keys = {name for field, info in type_.model_fields.items() for name in (field, info.alias)}
    return meant if isinstance(meant, dict) and keys & meant.keys() else None
