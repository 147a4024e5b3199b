"""Redaction of keys, which is applied to everything before it is stored or shown.

A key is recognized by any eight of its consecutive characters, so that it is also found if it is truncated, escaped,
split into lines, or encoded in base64 or hexadecimal digits.
"""

import base64
import functools
import json
import os
import re
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

_SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SECRET_PATTERNS = (
    (re.compile(r"\b(?:sk|pk|rk|key|xai)-[A-Za-z0-9_\-*]{8,}|\bBearer\s+[^\s\"',}]+", re.IGNORECASE), "[key]"),
    (re.compile(r"\b(?:AIza[\w-]{20,}|(?:gsk|hf)_\w{20,}|AKIA[A-Z0-9]{12,})"), "[key]"),
    (re.compile(r"([?&](?:api[-_]?key|key|token)=)[^&\s\"']+", re.IGNORECASE), r"\1[key]"),
    (re.compile(r"://[^/\s@]+@"), "://[login]@"),
)
# Escapes and separators that may occur within a written key but are not part of the key.
_WRITTEN_CHARACTER = re.compile(r"\\u([0-9a-fA-F]{4})|[%]([0-9a-fA-F]{2})|\\[nrt]|\\|[\s\"'\u200b]+|(.)")
_KEY_CHARACTERS = f"{string.ascii_letters}{string.digits}_+=*-"
_RUN_LENGTH = 8
_MAX_CHARACTERS = 200_000
"""Maximum number of characters of an error message or a tool's result that are kept."""
_registered: dict[str, str] = {}


def register_secret(name: str, value: str) -> None:
    """Treat a value as a secret from now on, whatever its name."""
    _registered[value] = name


def redact(text: str) -> str:
    """Return a text without secrets: values of key-like environment variables, guarded values, and key-like strings.

    A text of more than 200,000 characters is cut, which its end states.
    """
    from_environment = {value: name for name, value in os.environ.items() if _SECRET_NAMES.search(name)}
    secrets = {value: name for value, name in {**from_environment, **_registered}.items() if len(value) >= _RUN_LENGTH}
    cut_note = f"\n[cut: {_MAX_CHARACTERS:,} of {len(text):,} characters]" if len(text) > _MAX_CHARACTERS else ""
    text = text[:_MAX_CHARACTERS]
    for value in sorted(
        filter(_is_address_or_path, secrets), key=len, reverse=True
    ):  # longest first, as one secret may be a part of another
        for form in {value, json.dumps(value)[1:-1], quote(value, safe="")}:
            text = text.replace(form, f"[{secrets[value]}]")
    text = _redact_runs(text, {value: name for value, name in secrets.items() if not _is_address_or_path(value)})
    for pattern, replacement in _SECRET_PATTERNS:
        text = pattern.sub(replacement, text)
    return text + cut_note


def _is_address_or_path(value: str) -> bool:
    """Return whether a value is an address or a file path, whose parts are not secret and occur in many messages."""
    try:
        return "://" in value or Path(value).exists()
    except (OSError, ValueError):
        return False


def _redact_runs(text: str, secrets: Mapping[str, str]) -> str:
    """Return the text with every part of a secret, of eight characters or more, replaced by the secret's name."""
    names_by_run = {run: name for value, name in secrets.items() for run in _find_runs(value)}
    if not names_by_run:
        return text
    characters, spans = _normalize(text)
    parts, copied, start = [], 0, 0
    while start <= len(characters) - _RUN_LENGTH:
        name = names_by_run.get(characters[start : start + _RUN_LENGTH])
        if name is None:
            start += 1
            continue
        end = start
        while end <= len(characters) - _RUN_LENGTH and characters[end : end + _RUN_LENGTH] in names_by_run:
            end += 1
        before = text[copied : spans[start][0]]
        start = end + _RUN_LENGTH - 1
        copied = spans[start - 1][1]
        while copied < len(text) and text[copied] in _KEY_CHARACTERS:
            copied += 1
        while start < len(spans) and spans[start][0] < copied:
            start += 1
        # Adjacent word characters are replaced as well, because they belong to a longer key or to its encoding.
        parts += [before.rstrip(_KEY_CHARACTERS), f"[{name}]"]
    return "".join([*parts, text[copied:]])


@functools.lru_cache(maxsize=256)
def _find_runs(value: str) -> frozenset[str]:
    """Return all sequences of eight consecutive characters of a secret, in every encoding."""
    forms = [_normalize(form)[0] for form in (value, *_iter_encodings(value.encode("utf-8", "surrogateescape")))]
    return frozenset(
        form[start : start + _RUN_LENGTH] for form in forms for start in range(len(form) - _RUN_LENGTH + 1)
    )


def _iter_encodings(value: bytes) -> Iterator[str]:
    """Yield a secret in hexadecimal digits, and in base64 with any number of bytes before and after it."""
    yield value.hex()
    for before, dropped in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(b"\0" * before + value).decode()
        encoding = text.rstrip("=")[dropped : None if text[-1] != "=" else -1]
        yield encoding
        yield encoding.translate({ord("+"): "-", ord("/"): "_"})


def _normalize(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text in lower case without escapes and separators, and the characters' positions in the original."""
    characters = [
        (match[3] or chr(int(match[1] or match[2], 16)), match.span())
        for match in _WRITTEN_CHARACTER.finditer(text)
        if match.lastindex
    ]
    return "".join(letter.lower()[:1] for letter, _ in characters), [place for _, place in characters]
