"""JSON as a model writes it. Like `calls` and `scores`, this needs nothing but the standard library."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def value_of(text: str, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """The value of a JSON text; half of a character that it spells, which no file can hold, becomes U+FFFD.

    Args:
        text: The JSON.
        parse_constant: As for `json.loads`.

    Raises:
        ValueError: If it is no JSON.
        RecursionError: If it is nested too deeply.
    """
    value = json.loads(text, parse_constant=parse_constant)
    if "\\ud" not in text.casefold():
        return value
    return json.loads(whole(json.dumps(value, ensure_ascii=False)), parse_constant=parse_constant)


def whole(text: str) -> str:
    """The text with U+FFFD for every half of a character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
