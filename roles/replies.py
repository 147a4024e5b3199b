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
from dialoom.text import to_well_formed_value


class Verdict(Frozen):
    """Yes or no, and why."""

    verdict: bool
    explanation: str = ""


TEXT = "text"
_SCORE_NAME = re.compile(r"score-(-?\d+)-(-?\d+)")


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


def reply_type(name: str, recipe_types: Mapping[str, type[BaseModel]] | None = None) -> type[BaseModel] | None:
    """Return the type named by a prompt's `reply`; `None` for plain text.

    Args:
        name: `text`, `verdict`, `score-LOW-HIGH`, or one of the recipe's own.
        recipe_types: The recipe's reply types by name.

    Raises:
        KeyError: If the type is unknown.
    """
    if recipe_types and name in recipe_types:
        return recipe_types[name]
    if name == TEXT:
        return None
    if name == "verdict":
        return Verdict
    if (match := _SCORE_NAME.fullmatch(name)) and (bounds := (int(match[1]), int(match[2])))[0] < bounds[1]:
        return score_type(*bounds)
    raise KeyError(name)


def parse_reply(text: str, type_: type[BaseModel]) -> BaseModel:
    """Parse a reply into its type; JSON that is slightly malformed is repaired.

    Raises:
        ValueError: If the text holds no JSON object, none of that type, or several answers that contradict each other;
            the message can be shown to the model.
    """
    problem = ""
    for values in _find_candidates(text, type_):
        try:
            _reject_booleans(values, type_)
            return type_.model_validate(to_well_formed_value(values))
        except ValidationError as error:
            problem = problem or _format_problem(error)
        except RecursionError:
            problem = problem or "the object is nested too deeply"
        except ValueError as error:
            problem = problem or str(error)
    raise ValueError(problem or "the answer holds no JSON object")


def _find_candidates(text: str, type_: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yield the objects that may be the answer, likeliest first.

    These are the first valid JSON object, unless it is inside a malformed one, and a repaired object, if there is one.

    Raises:
        ValueError: If a later object has another score or verdict, or if an object has a key twice, with two values.
    """
    valid, start, end = _find_first_object(text)
    if valid is not None:
        _reject_contradiction(valid, text[end:], type_)
    malformed = _MALFORMED_OBJECT_START.search(text)
    is_nested = malformed is not None and malformed.start() < start and "}" not in text[malformed.start() : start]
    if valid is not None and not is_nested:
        yield valid
    if malformed is not None and (repaired := _repair_object(text[malformed.start() :], type_)) is not None:
        yield repaired


def _reject_booleans(values: Mapping[str, Any], type_: type[BaseModel]) -> None:
    """Raise `ValueError` for a boolean in a numeric field, because pydantic would accept `true` as 1."""
    for name, field in type_.model_fields.items():
        for key in (name, field.alias):
            types = set(get_args(field.annotation) or [field.annotation])
            if key is not None and isinstance(values.get(key), bool) and types & {int, float} and bool not in types:
                raise ValueError(f"{key}: a number is needed, got {json.dumps(values[key])}")


def _format_problem(error: ValidationError) -> str:
    location, message, value = first_problem(error)
    value_text = reprlib.repr(value) if isinstance(value, list | dict) else repr(value)
    return f"{location or 'the object'}: {message}, got {value_text:.60}"


class _ContradictionError(ValueError):
    """Two values for one key."""


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values and values[key] != value:
            raise _ContradictionError(f"{key} has two values, {values[key]!r:.60} and {value!r:.60}")
        values[key] = value
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_build_object)


def _find_first_object(text: str) -> tuple[dict[str, Any] | None, int, int]:
    """Return the first JSON object in a text, ignoring surrounding text and code fences, its position and its end."""
    for match in islice(_OBJECT_START.finditer(text), _MAX_OBJECT_STARTS):
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except _ContradictionError:
            raise
        except (ValueError, RecursionError):  # not JSON, or a number with thousands of digits
            continue
        return value, match.start(), end
    return None, len(text), len(text)


def _reject_contradiction(first: Mapping[str, Any], rest: str, type_: type[BaseModel]) -> None:
    """Raise `ValueError` if an object in the rest of a text has another score or verdict than the first one.

    Lists and free text are not compared: several drafts or explanations do not contradict each other.
    """
    compared = {name: field for name, field in type_.model_fields.items() if field.annotation is not str}
    keys = compared.keys() | {field.alias for field in compared.values() if field.alias}
    for _ in range(_MAX_OBJECT_STARTS):
        later, _start, end = _find_first_object(rest)
        if later is None:
            return
        for key in sorted(keys & first.keys() & later.keys()):
            values = first[key], later[key]
            is_compared = not any(isinstance(value, list | dict) for value in values)
            if is_compared and values[0] != values[1] and str(values[0]).lower() != str(values[1]).lower():
                raise _ContradictionError(f"{key} has two values, {values[0]!r:.60} and {values[1]!r:.60}")
        rest = rest[end:]


_OBJECT_START = re.compile(r"""\{(?=\s*["}])""")
_MAX_OBJECT_STARTS = 64
"""Maximum number of positions at which an object is looked for. Each attempt may scan to the end of the text, so an
unlimited number could take quadratic time.
"""

_MALFORMED_OBJECT_START = re.compile(r"""\{\s*["'`“”‘’]?\w[\w -]{0,60}["'`“”‘’]?\s*:""")
_TRUNCATED_VALUE = re.compile(r"""[:\[,]\s*[^\s"'{}\[\],:]+$""")
_MAX_REPAIR_CHARACTERS = 20_000
"""Maximum length, in characters, of a text that is repaired: some malformed texts take quadratic time."""


def _repair_object(text: str, type_: type[BaseModel]) -> dict[str, Any] | None:
    """Repair and return the object at the start of a text: quotes, commas, line breaks and braces.

    Return `None` for an object that has none of the type's keys, or that is cut off within a number or a word, as
    `{"score": 1` may have been the beginning of `{"score": 10}`.
    """
    if len(text) > _MAX_REPAIR_CHARACTERS or _TRUNCATED_VALUE.search(text.rstrip()):
        return None
    import json_repair  # deferred: few replies need it

    try:
        loaded = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    candidate = loaded[0] if isinstance(loaded, list) and loaded else loaded
    keys = {name for field, info in type_.model_fields.items() for name in (field, info.alias)}
    return candidate if isinstance(candidate, dict) and keys & candidate.keys() else None
