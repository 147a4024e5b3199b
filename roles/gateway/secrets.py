"""Keys never leave the environment: whatever is kept or shown goes through here first."""

import json
import os
import re
from urllib.parse import quote

_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SHAPES = (
    (re.compile(r"\b(?:sk|pk|rk|key|xai)-[A-Za-z0-9_\-*]{8,}|\bBearer\s+[^\s\"',}]+", re.IGNORECASE), "[key]"),
    (re.compile(r"\b(?:AIza[\w-]{20,}|(?:gsk|hf)_\w{20,}|AKIA[A-Z0-9]{12,})"), "[key]"),
    (re.compile(r"([?&](?:api[-_]?key|key|token)=)[^&\s\"']+", re.IGNORECASE), r"\1[key]"),
    (re.compile(r"://[^/\s@]+@"), "://[login]@"),
)
_SHORTEST = 8
_guarded: dict[str, str] = {}


def guard(name: str, value: str) -> None:
    """Take a value for a secret from now on, whatever its name says."""
    _guarded[value] = name


def redacted(text: str) -> str:
    """The text without secrets: values of key-like environment variables, guarded ones, and what looks like a key."""
    named = {value: name for name, value in os.environ.items() if _NAMES.search(name)}
    secrets = {value: name for value, name in {**named, **_guarded}.items() if len(value) >= _SHORTEST}
    for value in sorted(secrets, key=len, reverse=True):  # a key may be a part of another one
        for form in {value, json.dumps(value)[1:-1], quote(value, safe="")}:
            text = text.replace(form, f"[{secrets[value]}]")
    for shape, instead in _SHAPES:
        text = shape.sub(instead, text)
    return text
