"""The placeholder: plays any role offline, so that a new recipe runs before it has understudies of its own.

Text roles produce a text from the marked parts of their prompt and the last message. Typed roles return a valid
instance of their reply type. Everything is drawn from a hash of the request and meaningless, so scores by this player
are valid in form only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from .request import Draws, MarkedRequest
from .words import Words

_WORDS = Words(Path(__file__).parent / "data" / "placeholder.toml")
_MARKER = re.compile(r"\b(?:word|write|say)\b[^.\n]{0,20}?\b([A-Z]{3,})\b")
_LAST_TURN = 3
"""The number of own messages after which a user ends the conversation, if the prompt names a word for that."""

_LONGEST = 80
_TRIES = 50


def placeholder_text(request: MarkedRequest, draws: Draws) -> str:
    """Return the next message of a role without an understudy.

    Args:
        request: The request.
        draws: Draws seeded by the whole request.
    """
    own = len(request.said_by("user" if request.role == "user" else "assistant"))
    heard = next((line.text for line in reversed(request.lines)), "")
    about = "".join(_texts(request)[own : own + 1])  # another part each turn
    slots = {"heard": _short(heard), "about": about}
    if request.role != "user":
        return _WORDS.say("other.reply" if heard else "other.opening", draws, slots)
    if not own:
        return _WORDS.say("user.opening", draws, {"about": about or "a question"})
    if own >= _LAST_TURN and (found := list(dict.fromkeys(_MARKER.findall(request.system)))):
        marker = found[0] if len(found) == 1 else draws.pick(found)
        return _WORDS.say("user.last", draws, {"marker": marker})
    return _WORDS.say("user.next", draws, slots)


def placeholder_instance(type_: type[BaseModel], request: MarkedRequest, draws: Draws) -> str:
    """Return a valid instance of a reply type as JSON.

    Args:
        type_: The type.
        request: The request, from which the instance's texts are taken.
        draws: Draws seeded by the whole request.

    Raises:
        ValueError: If no drawn instance passes the type's own validators.
    """
    schema = type_.model_json_schema()
    problem = ""
    for number in range(_TRIES):
        value = _value(schema, schema.get("$defs", {}), request, draws.fork("instance", number), number)
        try:
            return type_.model_validate(value).model_dump_json()
        except ValidationError as error:
            problem = str(error.errors()[0]["msg"])
    raise ValueError(f"no instance of {type_.__name__} was found in {_TRIES} draws: {problem}")


def _value(
    schema: Mapping[str, Any], known: Mapping[str, Any], request: MarkedRequest, draws: Draws, tries: int
) -> Any:
    """Return a value that a JSON schema allows."""
    if "$ref" in schema:
        return _value(known[schema["$ref"].rpartition("/")[2]], known, request, draws, tries)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draws.pick(schema["enum"])
    if "anyOf" in schema:
        return _value(draws.pick(schema["anyOf"]), known, request, draws, tries)
    match schema.get("type"):
        case "boolean":
            return draws.chance(0.5)
        case "integer":
            low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
            return draws.number(low, schema.get("maximum", schema.get("exclusiveMaximum", low + 11) - 1))
        case "number":
            low, high = schema.get("minimum", 0.0), schema.get("maximum", 1.0)
            return round(low + (high - low) * draws.number(0, 100) / 100, 4)
        case "array":
            fewest = schema.get("minItems", 0)
            count = draws.number(fewest, max(fewest, min(schema.get("maxItems", fewest + 2), fewest + 2)))
            items = schema.get("items", {"type": "string"})
            return [_value(items, known, request, draws.fork(number), tries) for number in range(count)]
        case "object":
            fields = schema.get("properties", {})
            return {name: _value(each, known, request, draws.fork(name), tries) for name, each in fields.items()}
        case "null":
            return None
    text = draws.pick(_texts(request) or ["text"])
    if tries:  # a validator may require distinct texts
        text += f" ({draws.number(1, 999)})"
    return text[: schema.get("maxLength", _LONGEST)].ljust(schema.get("minLength", 0), ".")


def _texts(request: MarkedRequest) -> list[str]:
    """Return the distinct lines of the prompt's marked parts, without the names of fields."""
    shown = sorted(request.shown, key=lambda part: part.tag != "task")
    parts = [part.body for part in shown if part.tag not in ("conversation", "instruction")]
    lines = [line.partition(": ")[2] or line for body in parts for line in body.splitlines()]
    return list(dict.fromkeys(_short(line) for line in lines if re.search(r"\w", line)))


def _short(text: str) -> str:
    plain = " ".join(re.sub(r"[{}\[\]<>|]", " ", text).split()).rstrip(".")
    return plain if len(plain) <= _LONGEST else plain[:_LONGEST].rsplit(" ", 1)[0] + " ..."
