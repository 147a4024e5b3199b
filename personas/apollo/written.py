"""Parsing of JSON written by models. Like `calls` and `scores`, this module needs only the standard library."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def value_of(text: str, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Parse a JSON text; escaped lone surrogates, which no file can hold, become U+FFFD.

    Args:
        text: The JSON.
        parse_constant: As for `json.loads`.

    Raises:
        ValueError: If it is no valid JSON.
        RecursionError: If it is nested too deeply.
    """
    value = json.loads(text, parse_constant=parse_constant)
    if "\\ud" not in text.casefold():
        return value
    return json.loads(whole(json.dumps(value, ensure_ascii=False)), parse_constant=parse_constant)


def whole(text: str) -> str:
    """Return a text with U+FFFD in place of every lone surrogate."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
