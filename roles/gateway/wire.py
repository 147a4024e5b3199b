"""Tools, tool calls and reply types in the chat-completions format, which LiteLLM translates for every provider."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from dialoom.prompts import ChatMessage, FunctionCall, ToolDefinition
from dialoom.roles.errors import PermanentProviderError
from dialoom.settings import Structured

from .calls import Request
from .families import Change, Changes, find_family, strip_prefixes

_CONSUMES_REASONING = frozenset({"deepseek", "hosted_vllm", "moonshot", "together_ai"})
"""Providers that get `reasoning_content` back, through LiteLLM, for models that belong to no family."""

_REJECTS_REASONING = frozenset({"cerebras", "groq"})
"""Providers that reject a message with `reasoning_content` (status 400), although their own replies contain it."""

_SKIP_MCP_GATEWAY = {"_skip_mcp_handler": True}
"""Option that stops LiteLLM from looking up tools in its MCP gateway, which imports rarely installed packages."""

RESPONSES_ROUTE = "responses/"
"""The part of a model's name that makes LiteLLM call the model through OpenAI's Responses API."""

_THINKING_FIELDS = ("type", "thinking", "signature", "data")

_REASONING_ITEMS, _REASONING_DETAILS, _REASONING_CONTENT = "reasoning_items", "reasoning_details", "reasoning_content"
"""Fields with reasoning besides Anthropic's and Google's: of the Responses API, OpenRouter, and DeepSeek and others."""


@functools.cache
def get_reasoning_field(model: str) -> str | None:
    """Return the field in which reasoning is sent back to a model with its tool calls; `None` if there is none.

    A model that belongs to no family gets signed reasoning back in any case, if the reasoning is its own.
    """
    provider = model.partition("/")[0]
    if RESPONSES_ROUTE in model:
        return _REASONING_ITEMS
    if provider == "openrouter":
        return _REASONING_DETAILS
    family = find_family(model)
    field = family.returns if family is not None else _REASONING_CONTENT if provider in _CONSUMES_REASONING else None
    return None if field == _REASONING_CONTENT and provider in _REJECTS_REASONING else field


def build_tool_options(litellm: ModuleType, model: str, tools: Sequence[ToolDefinition]) -> dict[str, Any]:
    """Return a request's options for tools: calls are optional, and made one at a time if the provider supports it."""
    if not tools:
        return {}
    options: dict[str, Any] = {"tools": [dict(tool) for tool in tools], "tool_choice": "auto", **_SKIP_MCP_GATEWAY}
    is_known = "parallel_tool_calls" in _get_supported_parameters(litellm, model)
    return options | ({"parallel_tool_calls": False} if is_known else {})


@functools.cache
def _get_supported_parameters(litellm: ModuleType, model: str) -> frozenset[str]:
    return frozenset(litellm.get_supported_openai_params(model) or ())


def convert_messages(
    messages: Iterable[ChatMessage], model: str = "", ends: Collection[int] | None = None
) -> list[dict[str, Any]]:
    """Return the messages with adjacent messages of the same role joined, as some providers require.

    Tool calls and tool outputs are not joined. A message of an agent that has neither text nor tool calls is omitted,
    because some providers reject it.

    Args:
        messages: The messages.
        model: The model that is called. Reasoning is sent back only to models of the provider that it came from.
        ends: The indices of the messages that get a cache marker. If they are given, contents are lists of parts.
    """
    joined: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        if is_tool_message(message):
            joined.append(_convert_tool_message(message, model))
        elif not is_empty(message):
            is_joined = joined and joined[-1]["role"] == message["role"] and "tool_calls" not in joined[-1]
            content: Any = "\n\n" + message["content"] if is_joined else message["content"]
            if ends is not None:
                is_end = index in ends and message["content"].strip()  # providers reject a marker on an empty part
                marker = {"cache_control": {"type": "ephemeral"}} if is_end else {}
                content = [{"type": "text", "text": content, **marker}]
            if is_joined:
                joined[-1]["content"] += content
            else:
                joined.append({"role": message["role"], "content": content})
    return joined


def convert_message(message: ChatMessage) -> dict[str, Any]:
    """Return one message in the chat-completions format, without provider data."""
    if is_tool_message(message):
        return _convert_tool_message(message, "")
    return {"role": message["role"], "content": message["content"]}


def is_empty(message: ChatMessage) -> bool:
    """Return whether a model's message has neither text nor tool calls."""
    return message["role"] == "assistant" and not message["content"].strip() and not is_tool_message(message)


def is_tool_message(message: ChatMessage) -> bool:
    """Return whether a message has tool calls or is a tool's output."""
    return bool(message.get("tool_calls")) or "tool_call_id" in message


def _convert_tool_message(message: ChatMessage, model: str) -> dict[str, Any]:
    if "tool_call_id" in message:
        return {"role": "tool", "tool_call_id": message["tool_call_id"], "content": message["content"]}
    carried = message.get("carried") or {}
    calls = [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in message["tool_calls"]
    ]
    field = get_reasoning_field(model)
    is_own = carried.get("model") == model
    reasoning = {
        name: carried[name]
        for name in (_REASONING_ITEMS, _REASONING_DETAILS, _REASONING_CONTENT, "thinking_blocks")
        if name in carried
    }
    reasoning = {
        name: each for name, each in reasoning.items() if name == field or (is_own and name != _REASONING_CONTENT)
    }
    if field == "signatures" or is_own:
        for call, signature in zip(calls, carried.get("signatures", ()), strict=False):
            if signature is not None:
                call["provider_specific_fields"] = {"thought_signature": signature}
    return {"role": "assistant", "content": message["content"] or None, "tool_calls": calls, **reasoning}


def parse_calls(calls: object) -> tuple[FunctionCall, ...]:
    """Return the tool calls of a reply, without ids; missing parts of malformed calls are empty.

    Args:
        calls: A list of calls in the chat-completions format, or with plain `name` and `arguments`; each call is an
            object or a mapping.
    """
    return tuple(map(_parse_call, calls)) if isinstance(calls, list | tuple) else ()


def _parse_call(call: object) -> FunctionCall:
    function = get_field(call, "function") or call
    name, arguments = get_field(function, "name"), get_field(function, "arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    return FunctionCall(id="", name=name if isinstance(name, str) else "", arguments=arguments or "")


def extract_carried(message: object, model: str) -> dict[str, Any] | None:
    """Return the provider data that must be sent back with a reply's tool calls: reasoning, or its signature."""
    field, is_known = get_reasoning_field(model), find_family(model) is not None
    parts: dict[str, Any] = {}
    if isinstance(blocks := get_field(message, "thinking_blocks"), list):
        parts["thinking_blocks"] = [
            {name: text for name in _THINKING_FIELDS if isinstance(text := get_field(block, name), str)}
            for block in blocks
        ]
    # An item without encrypted content is dropped: the provider could only find it by its id, but stores nothing.
    if isinstance(items := get_field(message, _REASONING_ITEMS), list):
        parts[_REASONING_ITEMS] = [item for item in map(_parse_reasoning_item, items) if item is not None]
    if isinstance(details := get_field(get_field(message, "provider_specific_fields"), _REASONING_DETAILS), list):
        parts[_REASONING_DETAILS] = [dict(each) for each in details if isinstance(each, Mapping)]
    signatures = [
        get_field(get_field(call, "provider_specific_fields"), "thought_signature")
        for call in get_field(message, "tool_calls") or ()
    ]
    if any(isinstance(each, str) for each in signatures):  # only the first of several parallel calls is signed
        parts["signatures"] = signatures
    carried = {name: part for name, part in parts.items() if part and (name == field or not is_known)}
    if field == _REASONING_CONTENT and isinstance(reasoning := get_field(message, _REASONING_CONTENT), str):
        carried[_REASONING_CONTENT] = reasoning  # even if it is empty: DeepSeek requires the field
    if carried and not is_known and field is None:
        carried["model"] = model
    return carried or None


def _parse_reasoning_item(item: object) -> dict[str, Any] | None:
    """Return an encrypted reasoning item of OpenAI's; `None` if the item has no encrypted content."""
    encrypted, id_ = get_field(item, "encrypted_content"), get_field(item, "id")
    if not isinstance(encrypted, str) or not isinstance(id_, str):
        return None
    return {"id": id_, "type": "reasoning", "encrypted_content": encrypted, "summary": []}


def get_field(container: object, name: str) -> Any:
    """Return a part of an object or a mapping; `None` if it has none of this name."""
    return container.get(name) if isinstance(container, Mapping) else getattr(container, name, None)


class ReplyForm(StrEnum):
    """The form in which a reply type is requested."""

    SCHEMA = "JSON schema"
    JSON_WITH_SCHEMA = "JSON mode with a schema"
    JSON = "JSON mode"
    NONE = "prompt alone"


_FORMS_BY_SETTING: Mapping[Structured, tuple[ReplyForm, ...]] = {
    "schema": (ReplyForm.SCHEMA, ReplyForm.JSON_WITH_SCHEMA),
    "json": (ReplyForm.JSON,),
    "prompt": (ReplyForm.NONE,),
}
_FORMS = frozenset(ReplyForm)
_MAX_ENUM_VALUES = 10
"""Maximum number of values of an integer range that is sent as an enum: not every server enforces bounds, but all
enforce enums.
"""
_SELF_HOSTED_FORMS = (ReplyForm.SCHEMA, ReplyForm.JSON_WITH_SCHEMA, ReplyForm.JSON, ReplyForm.NONE)


class RejectedForms:
    """The forms that a run's models have rejected.

    Args:
        refused: The forms rejected in earlier sessions, by `MODEL ADDRESS`.
    """

    def __init__(self, refused: Mapping[str, Iterable[str]] | None = None) -> None:
        self._refused = {
            place: {ReplyForm(form) for form in forms if form in _FORMS} for place, forms in (refused or {}).items()
        }

    @property
    def by_model(self) -> dict[str, list[str]]:
        """The rejected forms by model and address, as plain values to be stored."""
        return {place: sorted(forms) for place, forms in sorted(self._refused.items())}

    def select_form(self, litellm: ModuleType, request: Request) -> ReplyForm:
        """Return the form in which a request should specify its reply type.

        Raises:
            PermanentProviderError: If the model has rejected every form allowed by `structured`.
        """
        if request.reply_type is None:
            return ReplyForm.NONE
        refused = self._refused.get(_get_endpoint(request), set())
        for form in _list_forms(litellm, request):
            # Providers reject JSON mode in a request that does not mention JSON.
            if form not in refused and (
                form is not ReplyForm.JSON or any("json" in each["content"].lower() for each in request.messages)
            ):
                return form
        if request.structured == "json" and ReplyForm.JSON not in refused:
            return ReplyForm.NONE
        raise PermanentProviderError(
            f"{request.model}: structured {request.structured!r}: the server rejects every form of it - set "
            "structured to 'auto', which falls back to a form that the server accepts"
        )

    def add(self, request: Request, form: ReplyForm) -> None:
        """Remember that a model rejects a form."""
        self._refused.setdefault(_get_endpoint(request), set()).add(form)


def build_response_format(request: Request, form: ReplyForm) -> dict[str, Any] | None:
    """Return the `build_response_format` that requests a form; `None` if the form needs none."""
    if form is ReplyForm.NONE or request.reply_type is None:
        return None
    schema = _order_by_prompt(_build_schema(request.reply_type), request.reply_type, request)
    if form is ReplyForm.SCHEMA:
        return {
            "type": "json_schema",
            "json_schema": {"name": request.reply_type.__name__, "strict": True, "schema": schema},
        }
    return {"type": "json_object", **({"schema": schema} if form is ReplyForm.JSON_WITH_SCHEMA else {})}


def find_form_changes(request: Request, form: ReplyForm) -> Changes:
    """Return the difference between the configured form of a reply and the form that is sent, if there is one."""
    preferred = _FORMS_BY_SETTING.get(request.structured, (form,))[0]
    if request.reply_type is None or form is preferred:
        return ()
    reason = "the prompt does not mention JSON" if form is ReplyForm.NONE else "the server refuses a JSON schema alone"
    return (Change("structured", request.structured, form.value, reason),)


def _order_by_prompt(schema: dict[str, Any], type_: type[BaseModel], request: Request) -> dict[str, Any]:
    """Return a reply type's schema with the keys that the prompt mentions first, in the prompt's order.

    Models write the keys in the schema's order. If a prompt asks for an explanation first, it must precede the score.
    If the prompt does not mention each key that the type requires, it describes the reply in another way, and the
    schema is returned as it is.
    """
    prompt = "\n".join(message["content"] for message in request.messages if message["role"] != "assistant")
    places = {name: place for name in schema.get("properties", ()) if (place := prompt.find(f'"{name}"')) >= 0}
    required = {field.alias or name for name, field in type_.model_fields.items() if field.is_required()}
    if not required.issubset(places):
        return schema
    names = sorted(schema["properties"], key=lambda name: places.get(name, len(prompt)))
    return {**schema, "properties": {name: schema["properties"][name] for name in names}}


def is_form_rejected(status: int | None, message: str) -> bool:
    """Return whether a provider's error rejects the response format; llama-cpp-python reports this with status 500."""
    pattern = r"response_?format|json_schema|json_object|output_(?:config|format)|guided_json"
    return status in (400, 404, 422, 500) and re.search(pattern, message, re.IGNORECASE) is not None


def _list_forms(litellm: ModuleType, request: Request) -> tuple[ReplyForm, ...]:
    """Return the forms to try, strictest first."""
    if request.structured != "auto":
        return _FORMS_BY_SETTING[request.structured]
    if (family := find_family(request.model)) is not None and family.schema_ is not None:
        return (
            (ReplyForm.SCHEMA, ReplyForm.JSON, ReplyForm.NONE) if family.schema_ else (ReplyForm.JSON, ReplyForm.NONE)
        )
    knows_json = "response_format" in _get_supported_parameters(litellm, request.model)
    if _supports_schemas(litellm, request.model):
        return (ReplyForm.SCHEMA, ReplyForm.JSON, ReplyForm.NONE) if knows_json else (ReplyForm.SCHEMA, ReplyForm.NONE)
    if not knows_json:
        return (ReplyForm.NONE,)
    return _SELF_HOSTED_FORMS if request.api_base is not None else (ReplyForm.JSON, ReplyForm.NONE)


def _get_endpoint(request: Request) -> str:
    return f"{request.model} {request.api_base or ''}".strip()


@functools.cache
def _supports_schemas(litellm: ModuleType, model: str) -> bool:
    """Return whether a model supports JSON schemas. The result is cached, because the lookup is slow."""
    names = (model, strip_prefixes(model)) if find_family(model) is not None else (model,)
    return any(litellm.supports_response_schema(name) for name in names)


@functools.cache
def _build_schema(type_: type[BaseModel]) -> dict[str, Any]:
    """Return the type's JSON schema in the strict form: no defaults, no optional and no additional properties."""
    strict: dict[str, Any] = _make_strict(type_.model_json_schema())
    return strict


def _make_strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_make_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    strict = {key: _make_strict(value) for key, value in node.items() if key not in ("default", "title")}
    match strict:
        case {"type": "integer", "minimum": int(low), "maximum": int(high), **rest} if high - low < _MAX_ENUM_VALUES:
            return {**rest, "type": "integer", "enum": list(range(low, high + 1))}
    if isinstance(properties := node.get("properties"), dict):
        strict["properties"] = {name: _make_strict(value) for name, value in properties.items()}
        strict |= {"required": list(properties), "additionalProperties": False}
    return strict
