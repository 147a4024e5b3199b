"""Types of replies: what a prompt's `reply` names, and how a model's text becomes one of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dialoom.errors import first_problem
from dialoom.text import well_formed_value


class Verdict(BaseModel):
    """Yes or no, and why."""

    model_config = ConfigDict(frozen=True)
    verdict: bool
    explanation: str = ""


class Score4(BaseModel):
    """A whole number from 1 to 4, and why."""

    model_config = ConfigDict(frozen=True)
    score: Annotated[int, Field(ge=1, le=4)]
    explanation: str = ""


class Score5(BaseModel):
    """A whole number from 1 to 5, and why."""

    model_config = ConfigDict(frozen=True)
    score: Annotated[int, Field(ge=1, le=5)]
    explanation: str = ""


TEXT = "text"
REPLY_TYPES: Mapping[str, type[BaseModel]] = {"verdict": Verdict, "score-1-4": Score4, "score-1-5": Score5}
"""Reply types by the name that a prompt's front matter uses; `text` stands for plain text."""


def parse_reply(text: str, type_: type[BaseModel]) -> BaseModel:
    """The reply as its type; JSON that is slightly broken is mended, and only that.

    Raises:
        ValueError: If the text holds no JSON object, or not one of that type; the message can be shown to the model.
    """
    problem = ""
    for values in _candidates(text, type_):
        try:
            return type_.model_validate(well_formed_value(values))
        except ValidationError as error:
            problem = problem or _problem(error)
    raise ValueError(problem or "the answer holds no JSON object")


def _candidates(text: str, type_: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Objects that may be the answer, the likeliest first: what is proper JSON, unless it stands in a broken object."""
    proper, at = _first_proper_object(text)
    beginning = _BEGINNING.search(text)
    is_within = beginning is not None and beginning.start() < at and "}" not in text[beginning.start() : at]
    if proper is not None and not is_within:
        yield proper
    if beginning is not None and (mended := _mended_object(text[beginning.start() :], type_)) is not None:
        yield mended


def _problem(error: ValidationError) -> str:
    place, message, value = first_problem(error)
    return f"{place or 'the object'}: {message}, got {value!r:.60}"


def _first_proper_object(text: str) -> tuple[dict[str, Any] | None, int]:
    """The first JSON object in a text, whatever stands around it (a sentence, a code fence), and where it begins."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            value, _ = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            start = text.find("{", start + 1)
            continue
        return (value if isinstance(value, dict) else None), start
    return None, len(text)


_BEGINNING = re.compile(r"""\{\s*["'`“”‘’]?\w[\w -]{0,60}["'`“”‘’]?\s*:""")
_CUT_VALUE = re.compile(r"""[:\[,]\s*[^\s"'{}\[\],:]+$""")
_LONGEST = 100_000


def _mended_object(text: str, type_: type[BaseModel]) -> dict[str, Any] | None:
    """The object that a text begins with, with its quotes, commas, line breaks and braces put right.

    Nothing is made of one that has none of the type's keys, or that breaks off within a number or a word: `{"score": 1`
    may have been going to be 10.
    """
    if len(text) > _LONGEST or _CUT_VALUE.search(text.rstrip()):
        return None
    import json_repair  # needed for few replies

    try:
        found = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    meant = found[0] if isinstance(found, list) and found else found
    if not isinstance(meant, dict):
        return None
    keys = {name for field, info in type_.model_fields.items() for name in (field, info.alias)}
    return meant if keys & meant.keys() else None
