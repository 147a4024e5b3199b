"""Text as it comes from outside, made fit to be kept. This module is below every floor."""

from __future__ import annotations

from typing import Any


def well_formed(text: str) -> str:
    r"""The text with nothing in it that UTF-8 cannot hold.

    JSON can spell half of a character (`\ud83d`, a lone surrogate), and Python reads it without a word; but no file can
    hold it. Two halves that belong together are joined, any other becomes U+FFFD, the sign for a character that was
    lost.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def well_formed_value(value: Any) -> Any:
    """A JSON value whose texts, keys included, are all `well_formed`."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [well_formed_value(part) for part in value]
    if isinstance(value, dict):
        return {well_formed(key): well_formed_value(part) for key, part in value.items()}
    return value
