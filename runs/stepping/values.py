"""Values of a graph's state: their plain form, and what may stand in one's place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage
from pydantic import TypeAdapter, ValidationError

from dialoom.errors import DialoomError
from dialoom.graphs.conversation import calls_of, said
from dialoom.prompts import FunctionCall

_MESSAGE = {"role", "content"}
_BESIDES = {"id", "tool_calls", "tool_call_id"}
_CALLS = TypeAdapter(list[FunctionCall])
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (BaseMessage, "a message"),
    (bool, "true or false"),
    ((int, float), "a number"),
    (str, "a text"),
    ((list, tuple), "a list"),
    (Mapping, "a mapping"),
    (type(None), "null"),
)


class PathError(DialoomError):
    """A path that leads nowhere, or a value that cannot stand where it leads to."""


def plain(value: Any) -> Any:
    """A value of a state as JSON has it; a message becomes its `role` (who speaks, or its type), `content` and `id`.

    One that calls tools has its `tool_calls`, too, and what a tool said the `tool_call_id` of the call.
    """
    if isinstance(value, BaseMessage):
        return {"role": _role(value), "content": plain(value.content), "id": value.id, **_of_tools(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _role(message: BaseMessage) -> str:
    return message.type if isinstance(message, ToolMessage) else message.name or message.type


def _of_tools(message: BaseMessage) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        return {"tool_call_id": message.tool_call_id}
    return {"tool_calls": [{**call} for call in calls]} if (calls := calls_of(message)) else {}


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    return next((name for types, name in _KINDS if isinstance(value, types)), f"of type {type(value).__name__}")


def shortened(value: Any) -> str:
    """A value as an error message shows it."""
    text = json.dumps(plain(value), ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def fitting(old: Any, new: Any, where: str) -> Any:
    """The new value, made to stand where the old one does: what stands in for a message becomes one.

    Args:
        old: What stands there; where that is `None`, nothing is known and anything may follow.
        new: What shall stand there.
        where: The place, for error messages.

    Raises:
        PathError: If the two are of different kinds.
    """
    if isinstance(old, BaseMessage):
        return _message(old, new, 0, where)
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return _items(old, new, where)
    if old is not None and kind_of(old) != kind_of(new):
        raise PathError(
            f"{where} is {kind_of(old)}: {shortened(old)}; {shortened(new)} is {kind_of(new)}{_hint(old, new)}"
        )
    return new


def _hint(old: Any, new: Any) -> str:
    if isinstance(old, str) and isinstance(new, int | float):
        return f", and in quotes a text: {json.dumps(json.dumps(new))}"
    return ""


def _items(old: Sequence[Any], new: Sequence[Any], where: str) -> list[Any]:
    """A list's items: messages among messages, and else of a kind that is there already."""
    if any(isinstance(each, BaseMessage) for each in old) or _begins_conversation(old, new, where):
        return [
            _message(old[index] if index < len(old) else None, each, index, f"{where}[{index}]")
            for index, each in enumerate(new)
        ]
    kinds = {kind_of(each) for each in old if each is not None}
    for index, each in enumerate(new):
        if kinds and each is not None and kind_of(each) not in kinds:
            raise PathError(
                f"{where} is a list with items of this kind: {shortened(old[0])}; for {where}[{index}], "
                f"{shortened(each)} is {kind_of(each)}"
            )
    return list(new)


def _begins_conversation(old: Sequence[Any], new: Sequence[Any], where: str) -> bool:
    """Whether these are messages though there are none yet: so by their form, and not within something plain."""
    nested = "." in where or "[" in where
    return not old and not nested and all(isinstance(each, Mapping) and set(each) >= _MESSAGE for each in new)


def _message(old: Any, new: Any, position: int, where: str) -> BaseMessage:
    """A message made of what was given for one; said by the same speaker, it keeps all of the old one but the content.

    Without an id of its own it gets that of its place in the conversation.
    """
    if isinstance(new, BaseMessage):
        return new
    known = old if isinstance(old, BaseMessage) else None
    if not _is_message(new, known):
        raise PathError(
            f"{where} is a message, so {shortened(new)} cannot stand there; give "
            '{"role": "user", "content": "..."}' + (f" or exchange {where}.content" if known else "")
        )
    if known is not None and _stays(new, plain(known)):
        return known.model_copy(update={"content": new["content"]})
    message, id_ = _made(new, position), new.get("id")
    return message if id_ is None else message.model_copy(update={"id": id_})


def _stays(new: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether nothing of a message is to change but what it says; what is left out stays."""
    return all(known.get(key) == value for key, value in new.items() if key != "content" and value is not None)


def _made(new: Mapping[str, Any], position: int) -> BaseMessage:
    """A message of the plain values given for one."""
    role, content = new["role"], new["content"]
    if (answered := new.get("tool_call_id")) is not None:
        return ToolMessage(content=content, tool_call_id=answered, id=f"{position}-{role}")
    return said(role, content, position, tool_calls=_CALLS.validate_python(new.get("tool_calls", [])))


def _is_message(new: Any, old: BaseMessage | None) -> bool:
    if not isinstance(new, Mapping) or not _MESSAGE <= set(new) <= _MESSAGE | _BESIDES:
        return False
    try:
        _CALLS.validate_python(new.get("tool_calls", []))
    except ValidationError:
        return False
    content = new["content"]
    same = old is not None and kind_of(content) == kind_of(old.content)
    named = isinstance(new["role"], str) and bool(new["role"]) and isinstance(new.get("id"), str | None)
    named = named and isinstance(new.get("tool_call_id"), str | None)
    return named and (isinstance(content, str) or same)
