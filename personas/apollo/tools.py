"""The tools that an agent may call: their names, parameters and definitions.

This module, `calls` and `scores` need only the standard library, because a trainer's reward loads them alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

Kind = Literal["text", "id", "date", "time", "boolean", "integer", "number"]
Value = str | int | float | bool

CONTENT: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "tools.toml").read_text(encoding="utf-8"))
_JSON_TYPES = {"boolean": "boolean", "integer": "integer", "number": "number"}


class Parameter(NamedTuple):
    """A parameter of a tool.

    Attributes:
        kind: The kind of its values; an `id` comes from another tool's output, a `time` is HH:MM.
        says: Its description.
        of: The allowed values; empty if any value of its kind is allowed.
        default: The value if omitted; None if it is required.
        least: The lowest allowed number; `most` is the highest.
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

    def wanted(self) -> str:
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
        writes: Whether it orders, books or sends something, rather than looking it up.
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


def _parameter(name: str, content: Mapping[str, Any]) -> Parameter:
    of = tuple(content.get("of", ()))
    kind = content.get("is", "text")
    assert kind in get_args(Kind), kind
    numbers = (content.get("default"), content.get("least"), content.get("most"))
    return Parameter(name, cast(Kind, kind), content["says"], of, *numbers)


def _tool(name: str, content: Mapping[str, Any]) -> Tool:
    known = CONTENT["parameters"] | content.get("parameters", {})
    parameters = {taken: _parameter(taken, known[taken]) for taken in content["takes"]}
    return Tool(name, content["domain"], content["says"], parameters, content.get("writes", False))


TOOLS: Mapping[str, Tool] = {name: _tool(name, content) for name, content in CONTENT["tools"].items()}
PREFERENCE_DOMAINS = ("commute", "travel", "entertainment", "food")
