"""Keys never leave the environment: whatever is kept or shown goes through here first."""

import os
import re

_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_SHAPES = re.compile(r"\b(sk|pk|rk|key)-[A-Za-z0-9_\-*]{8,}|\bBearer\s+\S+", re.IGNORECASE)
_SHORTEST = 8


def redacted(text: str) -> str:
    """The text without the values of key-like environment variables and without what looks like a key."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST and _NAMES.search(name):
            text = text.replace(value, f"[{name}]")
    return _SHAPES.sub("[key]", text)
