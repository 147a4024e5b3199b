"""Holding a model to the shape of a reply: in which form it is asked for one, and what was found out about that.

LiteLLM's table says what known models can be held to. A server of one's own (llama.cpp, vLLM, Ollama behind `openai/`
and an address) is in no table: it is asked in one form after the other until one is taken, and that is remembered.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from dialoom.roles.binding import Structured
from dialoom.roles.errors import PermanentProviderError

from .calls import Request


class Form(StrEnum):
    """In which form a shape is asked for."""

    SCHEMA = "JSON schema"
    BESIDE = "JSON mode with a schema"
    JSON = "JSON mode"
    NONE = "prompt alone"


_LADDERS: Mapping[Structured, tuple[Form, ...]] = {
    "schema": (Form.SCHEMA, Form.BESIDE),
    "json": (Form.JSON,),
    "prompt": (Form.NONE,),
}
_FORMS = frozenset(Form)
_MOST_NAMED = 10
"""So many whole numbers are named one by one: not every server holds a model to bounds, but each to a list."""
_OWN_SERVER = (Form.SCHEMA, Form.BESIDE, Form.JSON, Form.NONE)


class Shapes:
    """Which forms the models of a run have refused.

    Args:
        refused: What earlier sittings have found out: forms by `MODEL ADDRESS`.
    """

    def __init__(self, refused: Mapping[str, Iterable[str]] | None = None) -> None:
        self._refused = {
            place: {Form(form) for form in forms if form in _FORMS} for place, forms in (refused or {}).items()
        }

    @property
    def found(self) -> dict[str, list[str]]:
        """What is to be remembered, as plain values."""
        return {place: sorted(forms) for place, forms in sorted(self._refused.items())}

    def form(self, litellm: ModuleType, request: Request) -> Form:
        """In which form a request asks for its shape.

        Raises:
            PermanentProviderError: If the model has refused every form of what is wanted of it.
        """
        if request.reply_type is None:
            return Form.NONE
        refused = self._refused.get(_place(request), set())
        for form in _ladder(litellm, request):
            # Providers refuse JSON mode in a request that does not speak of JSON.
            if form not in refused and (form is not Form.JSON or _speaks_of_json(request)):
                return form
        if request.structured == "json" and Form.JSON not in refused:
            return Form.NONE
        raise PermanentProviderError(
            f"{request.model}: structured {request.structured!r}: the server refuses every form of it - let structured "
            "be 'auto', which goes down to what it takes"
        )

    def refuse(self, request: Request, form: Form) -> None:
        """Remember that a model takes no shape in a form."""
        self._refused.setdefault(_place(request), set()).add(form)


def response_format(request: Request, form: Form) -> dict[str, Any] | None:
    """The `response_format` of a request in a form; `None` for none."""
    if form is Form.NONE or request.reply_type is None:
        return None
    schema = _schema(request.reply_type)
    if form is Form.SCHEMA:
        return {
            "type": "json_schema",
            "json_schema": {"name": request.reply_type.__name__, "strict": True, "schema": schema},
        }
    return {"type": "json_object", **({"schema": schema} if form is Form.BESIDE else {})}


def is_refused(status: int | None, message: str) -> bool:
    """Whether a provider's error says that it is the shape that it refuses; llama-cpp-python does with status 500."""
    named = re.search(r"response_?format|json_schema|json_object|output_(?:config|format)|guided_json", message, re.I)
    return status in (400, 404, 422, 500) and named is not None


def _ladder(litellm: ModuleType, request: Request) -> tuple[Form, ...]:
    """The forms to try, the strictest first."""
    if request.structured != "auto":
        return _LADDERS[request.structured]
    knows_schemas, knows_json = _abilities(litellm, request.model)
    if knows_schemas:
        return (Form.SCHEMA, Form.JSON, Form.NONE) if knows_json else (Form.SCHEMA, Form.NONE)
    if not knows_json:
        return (Form.NONE,)
    return _OWN_SERVER if request.api_base is not None else (Form.JSON, Form.NONE)


def _speaks_of_json(request: Request) -> bool:
    return any("json" in message["content"].lower() for message in request.messages)


def _place(request: Request) -> str:
    return f"{request.model} {request.api_base or ''}".strip()


@functools.cache
def _abilities(litellm: ModuleType, model: str) -> tuple[bool, bool]:
    """Whether a model knows JSON schemas, and JSON mode. LiteLLM takes a while to look that up."""
    knows_json = "response_format" in (litellm.get_supported_openai_params(model) or ())
    return bool(litellm.supports_response_schema(model)), knows_json


@functools.cache
def _schema(type_: type[BaseModel]) -> dict[str, Any]:
    """The type's JSON schema, in the strict form: no defaults, nothing optional, nothing else."""
    strict: dict[str, Any] = _strict(type_.model_json_schema())
    return strict


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    strict = {key: _strict(value) for key, value in node.items() if key not in ("default", "title")}
    match strict:
        case {"type": "integer", "minimum": int(low), "maximum": int(high), **rest} if high - low < _MOST_NAMED:
            return {**rest, "type": "integer", "enum": list(range(low, high + 1))}
    if isinstance(properties := node.get("properties"), dict):
        strict["properties"] = {name: _strict(value) for name, value in properties.items()}
        strict |= {"required": list(properties), "additionalProperties": False}
    return strict
