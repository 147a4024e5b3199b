"""Understudies: scripted stand-ins for a language model that are deterministic and work offline.

They play every role of every system, from the messages that a real model would see and the prompt's id and inputs. An
understudy follows the rules stated in its module; its text comes from templates in data files, filled with values from
the request. It neither learns nor understands anything. Understudies are for tests and demonstrations: they show that a
pipeline works, and their scores change in the expected direction. Their scores are never evidence about any model,
prompt or dataset. A user's own system brings its own understudies: see `understudy`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from dialoom.prompts import ToolDefinition

from .understudy import (
    Draws,
    MarkedRequest,
    NoUnderstudyError,
    Part,
    SilentUnderstudyError,
    SpokenLine,
    ToolTurn,
    UnderstudyError,
    find_understudy,
    plays,
    read_request,
    understudy,
)
from .words import Words, collect_missing_texts, joined, match_template, tidy

SCRIPTED: frozenset[str] = frozenset({"attentive", "generic"})
"""Models whose replies come from the understudy registered for the role."""

MODELS: frozenset[str] = SCRIPTED | {"placeholder"}

__all__ = [
    "MODELS",
    "SCRIPTED",
    "Draws",
    "MarkedRequest",
    "NoUnderstudyError",
    "Part",
    "SilentUnderstudyError",
    "SpokenLine",
    "ToolTurn",
    "UnderstudyError",
    "Words",
    "joined",
    "match_template",
    "play",
    "plays",
    "read_request",
    "tidy",
    "understudy",
]


def play(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    prompt: str,
    role: str,
    *,
    seed: int | None = None,
    inputs: Mapping[str, Any] | None = None,
    tools: Sequence[ToolDefinition] = (),
    reply_type: type[BaseModel] | None = None,
) -> ToolTurn:
    """Answer a chat request with text, with tool calls, or both.

    Args:
        model: "attentive" or "generic". As an assistant, "generic" ignores the person; as a judge, it uses fewer
            criteria. "placeholder" plays any role; its replies have a valid form and no meaning.
        messages: OpenAI-style chat messages, with parts that are marked by tags.
        prompt: The prompt's id. It begins with the system's name; only this system's understudies are considered.
        role: The role to be played.
        seed: Varies the wording, never the decisions.
        inputs: The prompt's inputs.
        tools: The tools that the request offers.
        reply_type: The reply type; used by the placeholder only.

    Raises:
        ValueError: If the model is not one of `MODELS`, or the placeholder finds no instance of the reply type.
        NoUnderstudyError: If no understudy plays the role.
        SilentUnderstudyError: If the understudy found no text in its data file and called no tool.
    """
    if model not in MODELS:
        raise ValueError(f"unknown offline model {model!r}; the offline models are {', '.join(sorted(MODELS))}")
    request = read_request(messages, prompt, role, model=model, seed=seed, inputs=inputs, tools=tools)
    if model == "placeholder":
        draws = request.draws()
        return ToolTurn(
            draw_placeholder_instance(reply_type, request, draws)
            if reply_type
            else write_placeholder_text(request, draws)
        )
    with collect_missing_texts() as unsaid:
        reply = find_understudy(request)(request, request.draws())
    text = json.dumps(reply, ensure_ascii=False) if isinstance(reply, Mapping) else reply
    turn = ToolTurn(text) if isinstance(text, str) else text
    if not turn.words.strip() and not turn.calls:
        found = "; ".join(dict.fromkeys(unsaid)) or "it returned an empty text"
        raise SilentUnderstudyError(f"the understudy of the role {request.role!r} found no text: {found}")
    return turn


_WORDS = Words(Path(__file__).parent / "data" / "placeholder.toml")
_MARKER = re.compile(r"\b(?:word|write|say)\b[^.\n]{0,20}?\b([A-Z]{3,})\b")
_FIELD = re.compile(r"^\W*\w+(?: \w+)?: (?=.*\w)")
"""The name of a field at the beginning of a line."""

_MAX_USER_TURNS = 3
"""Number of a user's messages after which the user ends the conversation, if the prompt defines an end marker."""

_REPLY_COUNT = 6
"""Number of different replies, so that an assistant does not repeat itself in a conversation of usual length."""

_REASON_FIELDS = ("explanation", "reason")
"""Names of the fields in which a judge states its reason; a placeholder states in these fields that it has none."""

_MAX_TEXT_CHARACTERS = 80
_MAX_TRIES = 50


def write_placeholder_text(request: MarkedRequest, draws: Draws) -> str:
    """Return the next message of a role without an understudy.

    Args:
        request: The request.
        draws: Draws seeded by the whole request.
    """
    own = len(request.said_by("user" if request.role == "user" else "assistant"))
    texts = _extract_texts(request)
    if request.role == "user":  # a user speaks about the task, not about their own description
        texts = _extract_texts(request, "task") or texts
    about = "".join(texts[own : own + 1])  # a different part in each turn
    slots = {"about": about}
    if request.role != "user":
        return _WORDS.say(f"other.reply.{own % _REPLY_COUNT}" if request.lines else "other.opening", draws, slots)
    if not own:
        return _WORDS.say("user.opening", draws, {"about": about or "a question"})
    if own >= _MAX_USER_TURNS and (found := list(dict.fromkeys(_MARKER.findall(request.system)))):
        return _WORDS.say("user.last", draws, {"marker": found[0] if len(found) == 1 else draws.pick(found)})
    return _WORDS.say("user.next" if about else f"user.more.{own % 4}", draws, slots)


def draw_placeholder_instance(type_: type[BaseModel], request: MarkedRequest, draws: Draws) -> str:
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
    for number in range(_MAX_TRIES):
        value = _draw_value(schema, schema.get("$defs", {}), request, draws.fork("instance", number), number)
        try:
            return type_.model_validate(value).model_dump_json()
        except ValidationError as error:
            problem = str(error.errors()[0]["msg"])
    raise ValueError(f"no instance of {type_.__name__} was found in {_MAX_TRIES} draws: {problem}")


def _draw_value(
    schema: Mapping[str, Any],
    known: Mapping[str, Any],
    request: MarkedRequest,
    draws: Draws,
    tries: int,
    name: str = "",
) -> Any:
    """Return a value that a JSON schema allows, for a field with this name."""
    if "$ref" in schema:
        return _draw_value(known[schema["$ref"].rpartition("/")[2]], known, request, draws, tries, name)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draws.pick(schema["enum"])
    if "anyOf" in schema:
        return _draw_value(draws.pick(schema["anyOf"]), known, request, draws, tries, name)
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
            return [_draw_value(items, known, request, draws.fork(number), tries) for number in range(count)]
        case "object":
            fields = schema.get("properties", {})
            return {
                name: _draw_value(each, known, request, draws.fork(name), tries, name) for name, each in fields.items()
            }
        case "null":
            return None
    text = (
        _WORDS.say("reason", draws, {}) if name in _REASON_FIELDS else draws.pick(_extract_texts(request) or ["text"])
    )
    if tries:  # a validator may require distinct texts
        text += f" ({draws.number(1, 999)})"
    return text[: schema.get("maxLength", _MAX_TEXT_CHARACTERS)].ljust(schema.get("minLength", 0), ".")


def _extract_texts(request: MarkedRequest, tag: str | None = None) -> list[str]:
    """Return the distinct lines of the prompt's marked parts, or of the parts with a given tag, without field names."""
    shown = sorted(request.shown, key=lambda part: part.tag != "task")
    parts = [part.body for part in shown if part.tag not in ("conversation", "instruction") and tag in (None, part.tag)]
    lines = [_FIELD.sub("", line) for body in parts for line in body.splitlines()]
    plain = (
        " ".join(re.sub(r"[{}\[\]<>|]", " ", line).split()).rstrip(".") for line in lines if re.search(r"\w", line)
    )
    short = (
        each if len(each) <= _MAX_TEXT_CHARACTERS else each[:_MAX_TEXT_CHARACTERS].rsplit(" ", 1)[0] + " ..."
        for each in plain
    )
    return list(dict.fromkeys(short))
