"""Holding a model to the shape of a reply, by JSON schema or JSON mode, where LiteLLM says that it can be."""

from __future__ import annotations

import functools
import re
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from .calls import Request


def response_format(litellm: ModuleType, request: Request) -> dict[str, Any] | None:
    """The `response_format` of a request; `None` if its reply has no shape, or its model cannot be held to one."""
    if request.reply_type is None:
        return None
    knows_schemas, knows_json = _abilities(litellm, request.model)
    if knows_schemas:
        return _schema(request.reply_type)
    # Providers refuse JSON mode in a request that does not speak of JSON.
    is_spoken_of = any("json" in message["content"].lower() for message in request.messages)
    return {"type": "json_object"} if is_spoken_of and knows_json else None


def is_refused(status: int | None, message: str) -> bool:
    """Whether a provider's error says that it is the shape that it refuses."""
    named = re.search(r"response_?format|json_schema|json_object|output_(?:config|format)|guided_json", message, re.I)
    return status in (400, 404, 422) and named is not None


@functools.cache
def _abilities(litellm: ModuleType, model: str) -> tuple[bool, bool]:
    """Whether a model knows JSON schemas, and JSON mode. LiteLLM takes a while to look that up."""
    knows_json = "response_format" in (litellm.get_supported_openai_params(model) or ())
    return bool(litellm.supports_response_schema(model)), knows_json


@functools.cache
def _schema(type_: type[BaseModel]) -> dict[str, Any]:
    """The type's JSON schema, in the strict form: no defaults, nothing optional, nothing else."""
    schema = _strict(type_.model_json_schema())
    return {"type": "json_schema", "json_schema": {"name": type_.__name__, "strict": True, "schema": schema}}


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    strict = {key: _strict(value) for key, value in node.items() if key not in ("default", "title")}
    if isinstance(properties := node.get("properties"), dict):
        strict["properties"] = {name: _strict(value) for name, value in properties.items()}
        strict |= {"required": list(properties), "additionalProperties": False}
    return strict
