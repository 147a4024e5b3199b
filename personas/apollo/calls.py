"""The tools that an agent may call, and the canonical form of calls, which is equal for equivalent calls."""

from __future__ import annotations

import json
import math
import re
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn


def parse_json_value(text: str, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Parse a JSON text. Escaped lone surrogates become U+FFFD, because no file can contain them.

    Args:
        text: The JSON.
        parse_constant: As for `json.loads`.

    Raises:
        ValueError: If the text is not valid JSON.
        RecursionError: If the JSON is nested too deeply.
    """
    value = json.loads(text, parse_constant=parse_constant)
    if "\\ud" not in text.casefold():
        return value
    return json.loads(replace_surrogates(json.dumps(value, ensure_ascii=False)), parse_constant=parse_constant)


def json_text(value: Any) -> str:
    """Return a value as JSON, without escaping letters."""
    return json.dumps(value, ensure_ascii=False)


def replace_surrogates(text: str) -> str:
    """Return a text with every lone surrogate replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


Kind = Literal["text", "id", "date", "time", "boolean", "integer", "number"]
Value = str | int | float | bool

CONTENT: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "tools.toml").read_text(encoding="utf-8"))
_JSON_TYPES = {"boolean": "boolean", "integer": "integer", "number": "number"}


class Parameter(NamedTuple):
    """A parameter of a tool.

    Attributes:
        kind: The kind of the values. An `id` comes from another tool's output; a `time` is HH:MM.
        says: Its description.
        of: The allowed values; empty if any value of its kind is allowed.
        default: The value if the argument is omitted; None if the argument is required.
        least: The lowest allowed number; `most` is the highest allowed number.
    """

    name: str
    kind: Kind
    says: str
    of: tuple[Value, ...] = ()
    default: Value | None = None
    least: float | None = None
    most: float | None = None

    def schema(self) -> dict[str, Any]:
        """Return the parameter's JSON Schema."""
        schema: dict[str, Any] = {"type": _JSON_TYPES.get(self.kind, "string"), "description": self.says}
        if self.kind == "date":
            schema["format"] = "date"
        given = {"enum": list(self.of) or None, "minimum": self.least, "maximum": self.most, "default": self.default}
        return schema | {key: value for key, value in given.items() if value is not None}

    def valid_values(self) -> str:
        """Return the description of valid values."""
        if self.of:
            return f"one of {', '.join(map(str, self.of))}"
        if self.least is not None and self.most is not None:
            return f"{_ARTICLES[self.kind]} from {self.least:,} to {self.most:,}"
        return _ARTICLES[self.kind]


_ARTICLES: Mapping[str, str] = {
    "text": "a text",
    "id": "an id",
    "date": "a day as YYYY-MM-DD",
    "time": "a time as HH:MM",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}


class Tool(NamedTuple):
    """A tool that an agent can call.

    Attributes:
        domain: Its domain, such as `travel`.
        says: Its description.
        parameters: The parameters by name, in order.
        writes: Whether the tool orders, books or sends something rather than looking it up.
    """

    name: str
    domain: str
    says: str
    parameters: Mapping[str, Parameter]
    writes: bool

    def definition(self) -> dict[str, Any]:
        """Return the tool as an OpenAI function, for `tools=` of a chat completion."""
        schema = {
            "type": "object",
            "properties": {name: parameter.schema() for name, parameter in self.parameters.items()},
            "required": [name for name, parameter in self.parameters.items() if parameter.default is None],
            "additionalProperties": False,
        }
        return {"type": "function", "function": {"name": self.name, "description": self.says, "parameters": schema}}


def _build_parameter(name: str, content: Mapping[str, Any]) -> Parameter:
    numbers = (content.get("default"), content.get("least"), content.get("most"))
    return Parameter(name, content.get("is", "text"), content["says"], tuple(content.get("of", ())), *numbers)


def _build_tool(name: str, content: Mapping[str, Any]) -> Tool:
    known = CONTENT["parameters"] | content.get("parameters", {})
    parameters = {taken: _build_parameter(taken, known[taken]) for taken in content["takes"]}
    return Tool(name, content["domain"], content["says"], parameters, content.get("writes", False))


TOOLS: Mapping[str, Tool] = {name: _build_tool(name, content) for name, content in CONTENT["tools"].items()}
PREFERENCE_DOMAINS = ("commute", "travel", "entertainment", "food")


class ToolCall(NamedTuple):
    """A call in canonical form: every parameter of the tool has a value."""

    name: str
    arguments: Mapping[str, Value]


class CallError(ValueError):
    """A call that cannot run. The message states the problem and the correct form."""


def canonicalize(call: Mapping[str, Any]) -> ToolCall:
    """Return the canonical form of a call, for execution and for comparison.

    Names must be exact. An optional argument that is absent or null takes its default. Booleans may also be the words
    "true" and "false", integers may be 3, 3.0 or "3", and ids are strings. Text is normalised (`normalize_text`).
    Listed values match even if spaces, hyphens or underscores are missing. A day is YYYY-MM-DD; `/` may replace `-`.

    Args:
        call: `name` and `arguments`, an object or its JSON text.

    Raises:
        CallError: If the tool is unknown, or an argument is missing, unknown or invalid.
    """
    name = call.get("name")
    if (tool := TOOLS.get(name) if isinstance(name, str) else None) is None:
        raise CallError(f"there is no tool {format_value(name)}")
    given = call.get("arguments")
    if type(given) is not dict:
        given = parse_arguments(call)
    if not given.keys() <= tool.parameters.keys():
        unknown = next(name for name in given if name not in tool.parameters)
        raise CallError(f"{tool.name} takes no argument {format_value(unknown)}; it takes {', '.join(tool.parameters)}")
    found = {}
    for name, known, read in _argument_parsers(tool.name):
        value = given.get(name)
        kind = type(value)
        again = known.get(value if kind is str else (kind, value)) if kind in _CACHEABLE_TYPES else None
        found[name] = read(value) if again is None else again
    return ToolCall(tool.name, found)


def parse_arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's arguments as an object.

    Raises:
        CallError: If the arguments are not a JSON object.
    """
    given = call.get("arguments")
    if isinstance(given, str):
        try:
            given = parse_json_value(given, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:
            raise CallError(f"the arguments {format_value(given)} are no JSON: give an object") from error
    if not isinstance(given, Mapping):
        raise CallError(f"the arguments {format_value(given)} are no JSON object")
    return given


def format_value(value: Any, width: int = 60) -> str:
    """Return a value in the form that error messages show: shortened JSON."""
    text = replace_surrogates(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= width else text[: width - 3] + "..."


@lru_cache(maxsize=4096)
def normalize_text(text: str) -> str:
    """Return normalised text for comparison: NFKC, case-folded, straight quotes, single spaces, no final full stop."""
    while True:  # case folding can undo the normal form, and a full stop can hide a space: repeat until stable
        once = unicodedata.normalize("NFKC", text).translate(_STRAIGHT).casefold()
        if (once := " ".join(once.split()).rstrip(" .")) == text:
            return once
        text = once


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


@cache
def _argument_parsers(tool: str) -> tuple[tuple[str, Mapping[Any, Value], Callable[[Any], Value]], ...]:
    """Return, for each argument of a tool, its name, a cache of parsed values, and a parser for all other values."""
    return tuple((name, *_build_parser(TOOLS[tool], parameter)) for name, parameter in TOOLS[tool].parameters.items())


def _build_parser(tool: Tool, parameter: Parameter) -> tuple[Mapping[Any, Value], Callable[[Any], Value]]:
    """Return, for an argument, a cache of parsed values and the parser of all other values.

    Keys of the cache include the type, because True equals 1.
    """
    known: dict[Any, Value] = {}

    def read(value: Any) -> Value:
        if value is None:
            if parameter.default is None:
                raise CallError(f"{tool.name} needs {parameter.name}: {parameter.valid_values()}")
            return parameter.default
        found = _match_choice(parameter, value) if parameter.of else _PARSERS[parameter.kind](value)
        if found is None or not _is_in_range(parameter, found):
            raise CallError(f"{tool.name}: {parameter.name} {format_value(value)}: give {parameter.valid_values()}")
        kind = type(value)
        if (
            len(known) < _MAX_CACHED_VALUES
            and kind in _CACHEABLE_TYPES
            and (kind is not str or len(value) < _MAX_CACHED_CHARACTERS)
        ):
            known[value if kind is str else (kind, value)] = found
        return found

    return known, read


def _is_in_range(parameter: Parameter, value: Value) -> bool:
    if parameter.least is None or parameter.most is None or isinstance(value, str):
        return True
    return parameter.least <= value <= parameter.most


def _match_choice(parameter: Parameter, value: Any) -> Value | None:
    if parameter.kind == "integer":
        return number if (number := _parse_integer(value)) in parameter.of else None
    return _choices_by_key(parameter.of).get(_remove_gaps(value)) if isinstance(value, str) else None


@lru_cache(maxsize=256)
def _choices_by_key(of: tuple[Value, ...]) -> Mapping[str, Value]:
    return {_remove_gaps(str(value)): value for value in of}


@lru_cache(maxsize=4096)
def _remove_gaps(text: str) -> str:
    return normalize_text(text).translate(_GAPS)


def _parse_text(value: Any) -> str | None:
    return normalize_text(value) or None if isinstance(value, str) else None


def _parse_id(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = _parse_text(value)
    return text.upper() if text is not None else None


def _parse_date(value: Any) -> str | None:
    if not isinstance(value, str) or not _DAY.fullmatch(text := value.strip().replace("/", "-")):
        return None
    try:
        date.fromisoformat(text)
    except ValueError:
        return None
    return text


def _parse_time(value: Any) -> str | None:
    return value.strip() if isinstance(value, str) and _HOUR.fullmatch(value.strip()) else None


def _parse_boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(normalize_text(value))
    return value if isinstance(value, bool) else None  # 0 and 1 are numbers, although they equal False and True


def _parse_integer(value: Any) -> int | None:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parse_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


_PARSERS: Mapping[Kind, Callable[[Any], Value | None]] = {
    "text": _parse_text,
    "id": _parse_id,
    "date": _parse_date,
    "time": _parse_time,
    "boolean": _parse_boolean,
    "integer": _parse_integer,
    "number": _parse_number,
}
_MAX_CACHED_CHARACTERS = 100
_MAX_CACHED_VALUES = 2_000
_CACHEABLE_TYPES = frozenset({str, int, bool})
_STRAIGHT = str.maketrans("‘’‚‛“”„‟", "''''\"\"\"\"")
_GAPS = str.maketrans("", "", " -_")
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_HOUR = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
