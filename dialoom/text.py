"""Text from outside, changed so that it can be stored. This module is below all layers."""

from __future__ import annotations

from typing import Any

import orjson


def well_formed(text: str) -> str:
    r"""Return a text without characters that UTF-8 cannot encode.

    JSON can hold half of a character (`\ud83d`, a lone surrogate). Python reads it without an error, but no UTF-8 file
    can store it. Two halves that belong together are joined; any other half is replaced by U+FFFD, the replacement
    character.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def well_formed_value(value: Any) -> Any:
    """Return a JSON value with all texts, keys included, made `well_formed`."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [well_formed_value(part) for part in value]
    if isinstance(value, dict):
        return {well_formed(key): well_formed_value(part) for key, part in value.items()}
    return value


def is_well_formed(value: Any) -> bool:
    """Return whether all texts of a JSON value are `well_formed`; this is much faster than a check of each text.

    The result may also be false for a value with integers of more than 64 bits.
    """
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True
