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
from .families import Change, Changes, family_of, own_name

_CONSUMES_REASONING = frozenset({"deepseek", "hosted_vllm", "moonshot", "together_ai"})
"""Providers that get `reasoning_content` back, through LiteLLM, for models that belong to no family."""

_REJECTS_REASONING = frozenset({"cerebras", "groq"})
"""Providers that reject a message with `reasoning_content` (status 400), although their own replies contain it."""

_NO_GATEWAY = {"_skip_mcp_handler": True}
"""Option that stops LiteLLM from looking up tools in its MCP gateway, which imports rarely installed packages."""

RESPONSES = "responses/"
"""The part of a model's name that makes LiteLLM call the model through OpenAI's Responses API."""

_OF_A_THOUGHT = ("type", "thinking", "signature", "data")

_ITEMS, _DETAILS, _CONTENT = "reasoning_items", "reasoning_details", "reasoning_content"
"""Fields with reasoning besides Anthropic's and Google's: of the Responses API, OpenRouter, and DeepSeek and others."""


@functools.cache
def returned_form(model: str) -> str | None:
    """Return the field in which reasoning is sent back to a model with its tool calls; `None` if there is none.

    A model that belongs to no family gets signed reasoning back in any case, if the reasoning is its own.
    """
    provider = model.partition("/")[0]
    if RESPONSES in model:
        return _ITEMS
    if provider == "openrouter":
        return _DETAILS
    family = family_of(model)
    form = family.returns if family is not None else _CONTENT if provider in _CONSUMES_REASONING else None
    return None if form == _CONTENT and provider in _REJECTS_REASONING else form


def tool_options(litellm: ModuleType, model: str, tools: Sequence[ToolDefinition]) -> dict[str, Any]:
    """Return a request's options for tools: calls are optional, and made one at a time if the provider supports it."""
    if not tools:
        return {}
    options: dict[str, Any] = {"tools": [dict(tool) for tool in tools], "tool_choice": "auto", **_NO_GATEWAY}
    is_known = "parallel_tool_calls" in _parameters(litellm, model)
    return options | ({"parallel_tool_calls": False} if is_known else {})


@functools.cache
def _parameters(litellm: ModuleType, model: str) -> frozenset[str]:
    return frozenset(litellm.get_supported_openai_params(model) or ())


def wire_messages(
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
        if is_of_tools(message):
            joined.append(_of_tools(message, model))
        elif not is_nothing(message):
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


def as_sent(message: ChatMessage) -> dict[str, Any]:
    """Return one message in the chat-completions format, without provider data."""
    if is_of_tools(message):
        return _of_tools(message, "")
    return {"role": message["role"], "content": message["content"]}


def is_nothing(message: ChatMessage) -> bool:
    """Return whether a model's message has neither text nor tool calls."""
    return message["role"] == "assistant" and not message["content"].strip() and not is_of_tools(message)


def is_of_tools(message: ChatMessage) -> bool:
    """Return whether a message has tool calls or is a tool's output."""
    return bool(message.get("tool_calls")) or "tool_call_id" in message


def _of_tools(message: ChatMessage, model: str) -> dict[str, Any]:
    if "tool_call_id" in message:
        return {"role": "tool", "tool_call_id": message["tool_call_id"], "content": message["content"]}
    carried = message.get("carried") or {}
    calls = [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in message["tool_calls"]
    ]
    form = returned_form(model)
    is_own = carried.get("model") == model
    thoughts = {name: carried[name] for name in (_ITEMS, _DETAILS, _CONTENT, "thinking_blocks") if name in carried}
    thoughts = {name: each for name, each in thoughts.items() if name == form or (is_own and name != _CONTENT)}
    if form == "signatures" or is_own:
        for call, signature in zip(calls, carried.get("signatures", ()), strict=False):
            if signature is not None:
                call["provider_specific_fields"] = {"thought_signature": signature}
    return {"role": "assistant", "content": message["content"] or None, "tool_calls": calls, **thoughts}


def read_calls(given: object) -> tuple[FunctionCall, ...]:
    """Return the tool calls of a reply, without ids; missing parts of malformed calls are empty.

    Args:
        given: A list of calls in the chat-completions format, or with plain `name` and `arguments`; each call is an
            object or a mapping.
    """
    return tuple(map(_call, given)) if isinstance(given, list | tuple) else ()


def _call(given: object) -> FunctionCall:
    function = part_of(given, "function") or given
    name, arguments = part_of(function, "name"), part_of(function, "arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    return FunctionCall(id="", name=name if isinstance(name, str) else "", arguments=arguments or "")


def carried_of(message: object, model: str) -> dict[str, Any] | None:
    """Return the provider data that must be sent back with a reply's tool calls: reasoning, or its signature."""
    form, is_known = returned_form(model), family_of(model) is not None
    found: dict[str, Any] = {}
    if isinstance(blocks := part_of(message, "thinking_blocks"), list):
        found["thinking_blocks"] = [
            {name: text for name in _OF_A_THOUGHT if isinstance(text := part_of(block, name), str)} for block in blocks
        ]
    # An item without encrypted content is dropped: the provider could only find it by its id, but stores nothing.
    if isinstance(items := part_of(message, _ITEMS), list):
        found[_ITEMS] = [item for item in map(_item, items) if item is not None]
    if isinstance(details := part_of(part_of(message, "provider_specific_fields"), _DETAILS), list):
        found[_DETAILS] = [dict(each) for each in details if isinstance(each, Mapping)]
    signatures = [
        part_of(part_of(call, "provider_specific_fields"), "thought_signature")
        for call in part_of(message, "tool_calls") or ()
    ]
    if any(isinstance(each, str) for each in signatures):  # only the first of several parallel calls is signed
        found["signatures"] = signatures
    carried = {name: part for name, part in found.items() if part and (name == form or not is_known)}
    if form == _CONTENT and isinstance(reasoning := part_of(message, _CONTENT), str):
        carried[_CONTENT] = reasoning  # even if it is empty: DeepSeek requires the field
    if carried and not is_known and form is None:
        carried["model"] = model
    return carried or None


def _item(given: object) -> dict[str, Any] | None:
    """Return an encrypted reasoning item of OpenAI's; `None` if the item has no encrypted content."""
    encrypted, id_ = part_of(given, "encrypted_content"), part_of(given, "id")
    if not isinstance(encrypted, str) or not isinstance(id_, str):
        return None
    return {"id": id_, "type": "reasoning", "encrypted_content": encrypted, "summary": []}


def part_of(of: object, name: str) -> Any:
    """Return a part of an object or a mapping; `None` if it has none of this name."""
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


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
"""Maximum number of values of an integer range that is sent as an enum: not every server enforces bounds, but all
enforce enums.
"""
_OWN_SERVER = (Form.SCHEMA, Form.BESIDE, Form.JSON, Form.NONE)


class Shapes:
    """The forms that a run's models have rejected.

    Args:
        refused: The forms rejected in earlier sessions, by `MODEL ADDRESS`.
    """

    def __init__(self, refused: Mapping[str, Iterable[str]] | None = None) -> None:
        self._refused = {
            place: {Form(form) for form in forms if form in _FORMS} for place, forms in (refused or {}).items()
        }

    @property
    def found(self) -> dict[str, list[str]]:
        """The rejected forms by model and address, as plain values to be stored."""
        return {place: sorted(forms) for place, forms in sorted(self._refused.items())}

    def form(self, litellm: ModuleType, request: Request) -> Form:
        """Return the form in which a request should specify its reply type.

        Raises:
            PermanentProviderError: If the model has rejected every form allowed by `structured`.
        """
        if request.reply_type is None:
            return Form.NONE
        refused = self._refused.get(_place(request), set())
        for form in _ladder(litellm, request):
            # Providers reject JSON mode in a request that does not mention JSON.
            if form not in refused and (
                form is not Form.JSON or any("json" in each["content"].lower() for each in request.messages)
            ):
                return form
        if request.structured == "json" and Form.JSON not in refused:
            return Form.NONE
        raise PermanentProviderError(
            f"{request.model}: structured {request.structured!r}: the server rejects every form of it - set "
            "structured to 'auto', which falls back to a form that the server accepts"
        )

    def refuse(self, request: Request, form: Form) -> None:
        """Remember that a model rejects a form."""
        self._refused.setdefault(_place(request), set()).add(form)


def response_format(request: Request, form: Form) -> dict[str, Any] | None:
    """Return the `response_format` that requests a form; `None` if the form needs none."""
    if form is Form.NONE or request.reply_type is None:
        return None
    schema = _in_prompt_order(_schema(request.reply_type), request.reply_type, request)
    if form is Form.SCHEMA:
        return {
            "type": "json_schema",
            "json_schema": {"name": request.reply_type.__name__, "strict": True, "schema": schema},
        }
    return {"type": "json_object", **({"schema": schema} if form is Form.BESIDE else {})}


def form_changes(request: Request, form: Form) -> Changes:
    """Return the difference between the configured form of a reply and the form that is sent, if there is one."""
    preferred = _LADDERS.get(request.structured, (form,))[0]
    if request.reply_type is None or form is preferred:
        return ()
    why = "the prompt does not mention JSON" if form is Form.NONE else "the server refuses a JSON schema alone"
    return (Change("structured", request.structured, form.value, why),)


def _in_prompt_order(schema: dict[str, Any], type_: type[BaseModel], request: Request) -> dict[str, Any]:
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


def is_refused(status: int | None, message: str) -> bool:
    """Return whether a provider's error rejects the response format; llama-cpp-python reports this with status 500."""
    named = r"response_?format|json_schema|json_object|output_(?:config|format)|guided_json"
    return status in (400, 404, 422, 500) and re.search(named, message, re.IGNORECASE) is not None


def _ladder(litellm: ModuleType, request: Request) -> tuple[Form, ...]:
    """Return the forms to try, strictest first."""
    if request.structured != "auto":
        return _LADDERS[request.structured]
    if (family := family_of(request.model)) is not None and family.schema_ is not None:
        return (Form.SCHEMA, Form.JSON, Form.NONE) if family.schema_ else (Form.JSON, Form.NONE)
    knows_json = "response_format" in _parameters(litellm, request.model)
    if _knows_schemas(litellm, request.model):
        return (Form.SCHEMA, Form.JSON, Form.NONE) if knows_json else (Form.SCHEMA, Form.NONE)
    if not knows_json:
        return (Form.NONE,)
    return _OWN_SERVER if request.api_base is not None else (Form.JSON, Form.NONE)


def _place(request: Request) -> str:
    return f"{request.model} {request.api_base or ''}".strip()


@functools.cache
def _knows_schemas(litellm: ModuleType, model: str) -> bool:
    """Return whether a model supports JSON schemas. The result is cached, because the lookup is slow."""
    names = (model, own_name(model)) if family_of(model) is not None else (model,)
    return any(litellm.supports_response_schema(name) for name in names)


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
