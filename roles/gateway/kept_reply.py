"""A reply as one text, for where replies are kept: its words; where it calls tools, an object of words and calls.

A reply whose words themselves look like such an object is wrapped in one, so that what is read is what was kept.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from dialoom.prompts import FunctionCall

from .calls import Completion

_BEGINNING = '{"content":'


class _Kept(TypedDict):
    content: str
    tool_calls: tuple[FunctionCall, ...]
    outputs: NotRequired[tuple[str, ...]]
    carried: NotRequired[dict[str, Any]]


_KEPT = TypeAdapter(_Kept)


def kept_text(completion: Completion) -> str:
    """The text that keeps a reply."""
    rest = {"outputs": completion.outputs, "carried": completion.carried}
    return _text({"content": completion.text, "tool_calls": completion.tool_calls, **_known(rest)})


def read_reply(completion: Completion) -> Completion:
    """The reply of which a kept text was taken for the words.

    Args:
        completion: All that is kept of a reply, with the text that keeps it in the place of its words.
    """
    if (kept := _read(completion.text)) is None:
        return completion
    return replace(
        completion,
        text=kept["content"],
        tool_calls=kept["tool_calls"],
        outputs=kept.get("outputs", ()),
        carried=kept.get("carried"),
    )


def _read(text: str) -> _Kept | None:
    """What a text keeps besides words; `None` if it is words. What differs from what would be written is words, too."""
    if not text.startswith(_BEGINNING):
        return None
    try:
        kept = _KEPT.validate_json(text)
    except (ValidationError, ValueError, RecursionError):
        return None
    return kept if _text(dict(kept)) == text else None


def _text(kept: dict[str, Any]) -> str:
    content: str = kept["content"]
    if not kept["tool_calls"] and _read(content) is None:
        return content
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def _known(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value}
