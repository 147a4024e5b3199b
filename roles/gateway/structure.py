"""Structured output: the form in which a model is asked for a reply type, and which forms models reject.

LiteLLM's table states what known models support. A self-hosted server (llama.cpp, vLLM, Ollama behind `openai/` and an
address) is in no table: one form after the other is tried until one is accepted, and the result is remembered.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from dialoom.roles.errors import PermanentProviderError
from dialoom.settings import Structured

from .calls import Request


class Form(StrEnum):
    """The form in which a reply type is requested."""

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
"""Up to this number of values, an integer range becomes an enum: not every server enforces bounds, but all enforce
enums.
"""
_OWN_SERVER = (Form.SCHEMA, Form.BESIDE, Form.JSON, Form.NONE)


class Shapes:
    """The forms that a run's models have rejected.

    Args:
        refused: The findings of earlier sessions: forms by `MODEL ADDRESS`.
    """

    def __init__(self, refused: Mapping[str, Iterable[str]] | None = None) -> None:
        self._refused = {
            place: {Form(form) for form in forms if form in _FORMS} for place, forms in (refused or {}).items()
        }

    @property
    def found(self) -> dict[str, list[str]]:
        """The findings to be stored, as plain values."""
        return {place: sorted(forms) for place, forms in sorted(self._refused.items())}

    def form(self, litellm: ModuleType, request: Request) -> Form:
        """Return the form in which a request asks for its reply type.

        Raises:
            PermanentProviderError: If the model has rejected every form allowed by `structured`.
        """
        if request.reply_type is None:
            return Form.NONE
        refused = self._refused.get(_place(request), set())
        for form in _ladder(litellm, request):
            # Providers reject JSON mode in a request that does not mention JSON.
            if form not in refused and (form is not Form.JSON or _speaks_of_json(request)):
                return form
        if request.structured == "json" and Form.JSON not in refused:
            return Form.NONE
        raise PermanentProviderError(
            f"{request.model}: structured {request.structured!r}: the server refuses every form of it - let structured "
            "be 'auto', which goes down to what it takes"
        )

    def refuse(self, request: Request, form: Form) -> None:
        """Remember that a model rejects a form."""
        self._refused.setdefault(_place(request), set()).add(form)


def response_format(request: Request, form: Form) -> dict[str, Any] | None:
    """Return the `response_format` of a request in a form; `None` for none."""
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
    """Return whether a provider's error rejects the response format; llama-cpp-python does so with status 500."""
    named = re.search(r"response_?format|json_schema|json_object|output_(?:config|format)|guided_json", message, re.I)
    return status in (400, 404, 422, 500) and named is not None


def _ladder(litellm: ModuleType, request: Request) -> tuple[Form, ...]:
    """Return the forms to try, the strictest first."""
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
    """Return whether a model supports JSON schemas, and JSON mode. Cached, as LiteLLM's lookup is slow."""
    knows_json = "response_format" in (litellm.get_supported_openai_params(model) or ())
    return bool(litellm.supports_response_schema(model)), knows_json


@functools.cache
def _schema(type_: type[BaseModel]) -> dict[str, Any]:
    """Return the type's JSON schema in the strict form: no defaults, no optional and no additional properties."""
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
