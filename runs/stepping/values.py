"""Values in a graph's state: their plain form, their paths, and their replacement."""

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

_MESSAGE_KEYS = {"role", "content"}
_OPTIONAL_MESSAGE_KEYS = {"id", "tool_calls", "tool_call_id"}
_CALL_LIST = TypeAdapter(list[FunctionCall])
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (BaseMessage, "a message"),
    (bool, "true or false"),
    ((int, float), "a number"),
    (str, "a string"),
    ((list, tuple), "a list"),
    (Mapping, "a mapping"),
    (type(None), "null"),
)


class PathError(DialoomError):
    """A path that does not exist, or a value that cannot be set at its path."""


def to_plain(value: Any) -> Any:
    """Return a value of the state in JSON form. A message gets `role` (its name or type), `content` and `id`.

    A message with tool calls also gets `tool_calls`, and the output of a tool the `tool_call_id` of its call.
    """
    if isinstance(value, BaseMessage):
        shown = {"role": value.name or value.type, "content": to_plain(value.content), "id": value.id}
        if isinstance(value, ToolMessage):
            return {**shown, "role": value.type, "tool_call_id": value.tool_call_id}
        return {**shown, "tool_calls": [{**call} for call in calls]} if (calls := calls_of(value)) else shown
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def describe_kind(value: Any) -> str:
    """Return the kind of a value, for error messages."""
    return next((name for types, name in _KINDS if isinstance(value, types)), f"of type {type(value).__name__}")


def format_short(value: Any) -> str:
    """Format a value for an error message."""
    text = json.dumps(to_plain(value), ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def convert(old: Any, new: Any, where: str) -> Any:
    """Return a new value converted to the type of the old value: the plain form of a message becomes a message.

    Args:
        old: The old value; if it is `None`, any new value is accepted.
        new: The new value.
        where: The path of the value, for error messages.

    Raises:
        PathError: If the values are of different kinds.
    """
    if isinstance(old, BaseMessage):
        return _convert_message(old, new, 0, where)
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return _convert_items(old, new, where)
    if old is not None and describe_kind(old) != describe_kind(new):
        hint = ""
        if isinstance(old, str) and isinstance(new, int | float):
            hint = f"; to give it as a string, put it in quotes: {json.dumps(json.dumps(new))}"
        raise PathError(
            f"{where} is {describe_kind(old)}: {format_short(old)}; {format_short(new)} is {describe_kind(new)}{hint}"
        )
    return new


def _convert_items(old: Sequence[Any], new: Sequence[Any], where: str) -> list[Any]:
    """Return a list's new items: as messages in a list of messages, else unchanged after a check of their kinds."""
    # The new items of an empty top-level list may begin a conversation.
    is_empty = not old and "." not in where and "[" not in where
    begins = is_empty and all(isinstance(each, Mapping) and set(each) >= _MESSAGE_KEYS for each in new)
    if begins or any(isinstance(each, BaseMessage) for each in old):
        return [
            _convert_message(old[index] if index < len(old) else None, each, index, f"{where}[{index}]")
            for index, each in enumerate(new)
        ]
    kinds = {describe_kind(each) for each in old if each is not None}
    for index, each in enumerate(new):
        if kinds and each is not None and describe_kind(each) not in kinds:
            raise PathError(
                f"{where} is a list with items of this kind: {format_short(old[0])}; for {where}[{index}], "
                f"{format_short(each)} is {describe_kind(each)}"
            )
    return list(new)


def _convert_message(old: Any, new: Any, position: int, where: str) -> BaseMessage:
    """Convert a plain value to a message. If the speaker is unchanged, only the content of the old message changes.

    A message without an id gets the id that belongs to its position in the conversation.
    """
    if isinstance(new, BaseMessage):
        return new
    known = old if isinstance(old, BaseMessage) else None
    if not _is_message(new, known):
        raise PathError(
            f"{where} is a message, so {format_short(new)} cannot replace it; give "
            '{"role": "user", "content": "..."}' + (f" or replace {where}.content" if known else "")
        )
    role, content = new["role"], new["content"]
    given = {key: value for key, value in new.items() if key != "content" and value is not None}
    if known is not None and {**to_plain(known), **given} == to_plain(known):  # omitted keys count as unchanged
        return known.model_copy(update={"content": content})
    id_ = given.get("id", f"{position}-{role}")
    if (answered := new.get("tool_call_id")) is not None:
        return ToolMessage(content=content, tool_call_id=answered, id=id_)
    message = said(role, content, position, tool_calls=_CALL_LIST.validate_python(new.get("tool_calls", [])))
    return message.model_copy(update={"id": id_})


def _is_message(new: Any, old: BaseMessage | None) -> bool:
    if not isinstance(new, Mapping) or not _MESSAGE_KEYS <= set(new) <= _MESSAGE_KEYS | _OPTIONAL_MESSAGE_KEYS:
        return False
    try:
        _CALL_LIST.validate_python(new.get("tool_calls", []))
    except ValidationError:
        return False
    content, role = new["content"], new["role"]
    is_content = isinstance(content, str) or (old is not None and describe_kind(content) == describe_kind(old.content))
    has_ids = all(isinstance(new.get(key), str | None) for key in ("id", "tool_call_id"))
    return is_content and has_ids and isinstance(role, str) and bool(role)


PathPiece = str | int
"""One piece of a path: a name, or an index of a list."""

_QUOTED = r'"(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"' + r"|'[^']*'"
_PATH_PIECE = re.compile(rf"""\[\s*(?:(?P<index>-?\d+)|(?P<quoted>{_QUOTED}))\s*\]|(?P<dot>\.?)(?P<name>[^.\[\]"']+)""")
_PATH = re.compile(rf"(?:\[\s*(?:{_QUOTED})\s*\]|\S)*")
_NAME = re.compile(r"\w[\w-]*")
_PATH_EXAMPLES = """messages[-1].content, said.p or induced["p r"]"""


def parse_value(text: str) -> Any:
    """Parse a value typed by a person: as JSON if it is valid JSON, else as text."""
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return text


def split_path(text: str) -> tuple[str, str]:
    """Split a text after the path with which it begins; quoted names in the path may contain spaces."""
    end = found.end() if (found := _PATH.match(text)) else 0
    return text[:end], text[end:].strip()


def extend_path(path: str, piece: PathPiece) -> str:
    """Return a path extended by one piece, in the syntax of `get_value`."""
    if isinstance(piece, str) and _NAME.fullmatch(piece):
        return f"{path}.{piece}" if path else piece
    return f"{path}[{json.dumps(piece, ensure_ascii=False)}]"


def get_value(state: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path in plain form; the empty path is the whole state.

    Raises:
        PathError: If the path does not exist; the message has the path, the missing piece and the available ones.
    """
    value: Any = state
    done = ""
    for piece in _parse_path(path):
        key = _find_key(value, piece, path, done)
        value = to_plain(value)[key] if isinstance(value, BaseMessage) else value[key]
        done = extend_path(done, piece)
    return to_plain(value)


def replace_value(state: Mapping[str, Any], path: str, value: Any) -> tuple[str, Any]:
    """Return a channel in which the value at a path is replaced; the state itself is not changed.

    An index equal to a list's length appends an item. Parts of a message that can be replaced are `content` and `name`.
    A whole message is given as `role` and `content`, and gets the id that belongs to its position.

    Returns:
        The channel's name, which is the first piece of the path, and its whole new value, which shares no objects with
        the old value.

    Raises:
        PathError: If the path does not exist, or the new value is of another kind than the old one.
    """
    pieces = _parse_path(path)
    if not pieces:
        raise PathError(
            f"an empty path means the whole state; give the path of a channel to replace: {', '.join(state)}"
        )
    channel: str = _find_key(state, pieces[0], path, "")
    return channel, copy.deepcopy(_replace_at(state[channel], pieces[1:], value, path, extend_path("", channel)))


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _parse_path(path: str) -> list[PathPiece]:
    path = path.strip()
    pieces: list[PathPiece] = []
    position = 0
    while position < len(path):
        found = _PATH_PIECE.match(path, position)
        if found is None or (found["name"] and bool(found["dot"]) != bool(position)):
            raise PathError(f"the path {path!r} is invalid from {path[position:]!r} on; write it like {_PATH_EXAMPLES}")
        if found["index"]:
            pieces.append(int(found["index"]))
        elif (quoted := found["quoted"]) is not None:
            pieces.append(json.loads(quoted, strict=False) if quoted[0] == '"' else quoted[1:-1])
        else:
            pieces.append(found["name"])
        position = found.end()
    return pieces


def _find_key(value: Any, piece: PathPiece, path: str, done: str) -> Any:
    """Return the key or index that a piece of a path selects in a value; for a message, in its plain form."""
    if isinstance(value, list | tuple):
        if isinstance(piece, int) and -len(value) <= piece < len(value):
            return piece % len(value)
        there = f"it is a list of length {len(value)}" + (f", [0] to [{len(value) - 1}]" if value else "")
    elif isinstance(value, BaseMessage | Mapping):
        names = list(to_plain(value) if isinstance(value, BaseMessage) else value)
        if isinstance(value, BaseMessage) and piece == "name":
            return "role"
        for name in names:
            if str(name) == str(piece):
                return name
        there = f"there is {', '.join(extend_path('', str(name)) for name in names) or 'nothing'}"
    else:
        there = f"it is {describe_kind(value)}: {format_short(value)}"
    shown = f"[{piece}]" if isinstance(piece, int) else repr(piece)
    raise PathError(f"{path}: {done or 'the state'} has no {shown}; {there}")


def _replace_at(old: Any, pieces: Sequence[PathPiece], value: Any, path: str, done: str) -> Any:
    """Return the old value with the value at the remaining pieces replaced."""
    if not pieces:
        return convert(old, value, done)
    piece, rest = pieces[0], pieces[1:]
    if isinstance(old, list | tuple) and piece == len(old) and not rest:
        return convert(old, [*old, value], done)
    key = _find_key(old, piece, path, done)
    here = extend_path(done, key)
    if isinstance(old, BaseMessage):
        return _replace_in_message(old, key, rest, value, path, here)
    if isinstance(old, list | tuple):
        inner = _replace_at(old[key], rest, value, path, here) if rest else value
        return convert(old, [*old[:key], inner, *old[key + 1 :]], done)
    if value is None and not rest and isinstance(old[key], str | int | float):
        return {**old, key: None}  # an unknown old value, text or number: null is often valid as a mapping's value
    return {**old, key: _replace_at(old[key], rest, value, path, here)}


def _replace_in_message(
    old: BaseMessage, key: str, rest: Sequence[PathPiece], value: Any, path: str, here: str
) -> BaseMessage:
    """Return the message with its content or its speaker replaced and its id unchanged."""
    if key == "content":
        return old.model_copy(update={"content": _replace_at(old.content, rest, value, path, here)})
    if key != "role" or rest or not isinstance(value, str) or not value:
        raise PathError(f"{path}: only a message's content and name can be replaced, the name only by a non-empty text")
    return old.model_copy(update={"name": value})
