"""Types of replies: what a prompt's `reply` names, and how a model's text becomes one of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError


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
    """The reply as its type.

    Raises:
        ValueError: If the text holds no JSON object, or not one of that type; the message can be shown to the model.
    """
    values = first_json_object(text)
    if values is None:
        raise ValueError("the answer holds no JSON object")
    try:
        return type_.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the object"
        raise ValueError(f"{key}: {first['msg']}, got {first['input']!r:.60}") from error


def first_json_object(text: str) -> dict[str, Any] | None:
    """The first JSON object in a text, whatever stands around it (a sentence, a code fence)."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            value, _ = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            start = text.find("{", start + 1)
            continue
        return value if isinstance(value, dict) else None
    return None
