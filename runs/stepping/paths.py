"""Places in a graph's state: how they are written, what stands there, and how what stands there is exchanged."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from langchain_core.messages import BaseMessage

from .values import PathError, fitting, kind_of, plain, shortened

__all__ = ["PathError", "Piece", "extended", "look", "parsed", "plain", "replaced"]

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
