"""Values in a graph's state: their plain form, their paths, and how they are replaced."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

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


Piece = str | int
"""One piece of a path: a name, or a place in a list."""

_QUOTED = r'"(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"' + r"|'[^']*'"
_PIECE = re.compile(rf"""\[\s*(?:(?P<index>-?\d+)|(?P<quoted>{_QUOTED}))\s*\]|(?P<dot>\.?)(?P<name>[^.\[\]"']+)""")
_NAME = re.compile(r"\w[\w-]*")
_EXAMPLES = """messages[-1].content, said.p or induced["p r"]"""


def parsed(text: str) -> Any:
    """A value as a person types it: JSON if it is JSON, else the text itself."""
    try:
        return json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return text


def extended(path: str, piece: Piece) -> str:
    """The path one piece further, as `look` reads it."""
    if isinstance(piece, str) and _NAME.fullmatch(piece):
        return f"{path}.{piece}" if path else piece
    return f"{path}[{json.dumps(piece, ensure_ascii=False)}]"


def look(state: Mapping[str, Any], path: str) -> Any:
    """What stands at a path, as plain values; the empty path is the whole state.

    Raises:
        PathError: Naming the path, the piece that is not there, and what there is instead.
    """
    value: Any = state
    done = ""
    for piece in _pieces(path):
        key = _key(value, piece, path, done)
        value = plain(value)[key] if isinstance(value, BaseMessage) else value[key]
        done = extended(done, piece)
    return plain(value)


def replaced(state: Mapping[str, Any], path: str, value: Any) -> tuple[str, Any]:
    """A channel with one place in it exchanged. The state itself stays as it is.

    An index that is a list's length appends to it. Of a message, `content` and `name` can be exchanged; a whole one is
    given as its `role` and `content`, and gets the id of its place.

    Returns:
        The channel's name (the path's first piece) and its new whole value, which shares nothing with the old one.

    Raises:
        PathError: If the path leads nowhere, or the value is of another kind than what stands there.
    """
    pieces = _pieces(path)
    if not pieces:
        raise PathError(f"an empty path is the whole state; name what is to be exchanged: {', '.join(state)}")
    channel: str = _key(state, pieces[0], path, "")
    return channel, copy.deepcopy(_exchanged(state[channel], pieces[1:], value, path, extended("", channel)))


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _pieces(path: str) -> list[Piece]:
    path = path.strip()
    pieces: list[Piece] = []
    position = 0
    while position < len(path):
        found = _PIECE.match(path, position)
        if found is None or (found["name"] and bool(found["dot"]) != bool(position)):
            raise PathError(f"the path {path!r} cannot be read from {path[position:]!r} on; write it like {_EXAMPLES}")
        if found["index"]:
            pieces.append(int(found["index"]))
        elif (quoted := found["quoted"]) is not None:
            pieces.append(json.loads(quoted, strict=False) if quoted[0] == '"' else quoted[1:-1])
        else:
            pieces.append(found["name"])
        position = found.end()
    return pieces


def _key(value: Any, piece: Piece, path: str, done: str) -> Any:
    """The piece as the value's own key or index, or for a message as its plain form's."""
    if isinstance(value, list | tuple):
        if isinstance(piece, int) and -len(value) <= piece < len(value):
            return piece % len(value)
        there = f"it is a list of {len(value)}" + (f", [0] to [{len(value) - 1}]" if value else "")
    elif isinstance(value, BaseMessage | Mapping):
        names = list(plain(value) if isinstance(value, BaseMessage) else value)
        if isinstance(value, BaseMessage) and piece == "name":
            return "role"
        for name in names:
            if str(name) == str(piece):
                return name
        there = f"there is {', '.join(extended('', str(name)) for name in names) or 'nothing'}"
    else:
        there = f"it is {kind_of(value)}: {shortened(value)}"
    shown = f"[{piece}]" if isinstance(piece, int) else repr(piece)
    raise PathError(f"{path}: {done or 'the state'} has no {shown}; {there}")


def _exchanged(old: Any, pieces: Sequence[Piece], value: Any, path: str, done: str) -> Any:
    """The old value with the place that the remaining pieces lead to exchanged."""
    if not pieces:
        return fitting(old, value, done)
    piece, rest = pieces[0], pieces[1:]
    if isinstance(old, list | tuple) and piece == len(old) and not rest:
        return fitting(old, [*old, value], done)
    key = _key(old, piece, path, done)
    here = extended(done, key)
    if isinstance(old, BaseMessage):
        return _message_with(old, key, rest, value, path, here)
    if isinstance(old, list | tuple):
        inner = _exchanged(old[key], rest, value, path, here) if rest else value
        return fitting(old, [*old[:key], inner, *old[key + 1 :]], done)
    if value is None and not rest and isinstance(old[key], str | int | float):
        return {**old, key: None}  # a text or a figure that is not known: what a mapping's value often may be
    return {**old, key: _exchanged(old[key], rest, value, path, here)}


def _message_with(old: BaseMessage, key: str, rest: Sequence[Piece], value: Any, path: str, here: str) -> BaseMessage:
    """The message with its content or its speaker exchanged; its id stays."""
    if key == "content":
        return old.model_copy(update={"content": _exchanged(old.content, rest, value, path, here)})
    if key != "role" or rest or not isinstance(value, str) or not value:
        raise PathError(f"{path}: of a message, its content can be exchanged and, for another text, its name")
    return old.model_copy(update={"name": value})
