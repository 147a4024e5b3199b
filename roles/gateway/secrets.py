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

_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SHAPES = (
    (re.compile(r"\b(?:sk|pk|rk|key|xai)-[A-Za-z0-9_\-*]{8,}|\bBearer\s+[^\s\"',}]+", re.IGNORECASE), "[key]"),
    (re.compile(r"\b(?:AIza[\w-]{20,}|(?:gsk|hf)_\w{20,}|AKIA[A-Z0-9]{12,})"), "[key]"),
    (re.compile(r"([?&](?:api[-_]?key|key|token)=)[^&\s\"']+", re.IGNORECASE), r"\1[key]"),
    (re.compile(r"://[^/\s@]+@"), "://[login]@"),
)
# Escapes and separators that may occur within a written key but are not part of the key.
_WRITTEN = re.compile(r"\\u([0-9a-fA-F]{4})|[%]([0-9a-fA-F]{2})|\\[nrt]|\\|[\s\"'\u200b]+|(.)")
_OF_A_WORD = f"{string.ascii_letters}{string.digits}_+=*-"
_RUN = 8
_LONGEST = 200_000
"""Maximum number of characters of an error message or a tool's result that are kept."""
_guarded: dict[str, str] = {}


def guard(name: str, value: str) -> None:
    """Treat a value as a secret from now on, whatever its name."""
    _guarded[value] = name


def redacted(text: str) -> str:
    """Return a text without secrets: values of key-like environment variables, guarded values, and key-like strings.

    A text of more than 200,000 characters is cut, which its end states.
    """
    named = {value: name for name, value in os.environ.items() if _NAMES.search(name)}
    secrets = {value: name for value, name in {**named, **_guarded}.items() if len(value) >= _RUN}
    cut = f"\n[cut: {_LONGEST:,} of {len(text):,} characters]" if len(text) > _LONGEST else ""
    text = text[:_LONGEST]
    for value in sorted(
        filter(_is_plain, secrets), key=len, reverse=True
    ):  # longest first, as one secret may be a part of another
        for form in {value, json.dumps(value)[1:-1], quote(value, safe="")}:
            text = text.replace(form, f"[{secrets[value]}]")
    text = _without_runs(text, {value: name for value, name in secrets.items() if not _is_plain(value)})
    for shape, instead in _SHAPES:
        text = shape.sub(instead, text)
    return text + cut


def _is_plain(value: str) -> bool:
    """Return whether a value is an address or a file path, whose parts are not secret and occur in many messages."""
    try:
        return "://" in value or Path(value).exists()
    except (OSError, ValueError):
        return False


def _without_runs(text: str, secrets: Mapping[str, str]) -> str:
    """Return the text with every part of a secret, of eight characters or more, replaced by the secret's name."""
    known = {run: name for value, name in secrets.items() for run in _runs(value)}
    if not known:
        return text
    letters, places = _letters(text)
    parts, copied, start = [], 0, 0
    while start <= len(letters) - _RUN:
        name = known.get(letters[start : start + _RUN])
        if name is None:
            start += 1
            continue
        end = start
        while end <= len(letters) - _RUN and letters[end : end + _RUN] in known:
            end += 1
        before = text[copied : places[start][0]]
        start = end + _RUN - 1
        copied = places[start - 1][1]
        while copied < len(text) and text[copied] in _OF_A_WORD:
            copied += 1
        while start < len(places) and places[start][0] < copied:
            start += 1
        # Adjacent word characters are replaced as well, because they belong to a longer key or to its encoding.
        parts += [before.rstrip(_OF_A_WORD), f"[{name}]"]
    return "".join([*parts, text[copied:]])


@functools.lru_cache(maxsize=256)
def _runs(value: str) -> frozenset[str]:
    """Return all sequences of eight consecutive characters of a secret, in every encoding."""
    forms = [_letters(form)[0] for form in (value, *_encoded(value.encode("utf-8", "surrogateescape")))]
    return frozenset(form[start : start + _RUN] for form in forms for start in range(len(form) - _RUN + 1))


def _encoded(value: bytes) -> Iterator[str]:
    """Yield a secret in hexadecimal digits, and in base64 with any number of bytes before and after it."""
    yield value.hex()
    for before, lost in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(b"\0" * before + value).decode()
        whole = text.rstrip("=")[lost : None if text[-1] != "=" else -1]
        yield whole
        yield whole.translate({ord("+"): "-", ord("/"): "_"})


def _letters(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text in lower case without escapes and separators, and the characters' positions in the original."""
    found = [
        (each[3] or chr(int(each[1] or each[2], 16)), each.span()) for each in _WRITTEN.finditer(text) if each.lastindex
    ]
    return "".join(letter.lower()[:1] for letter, _ in found), [place for _, place in found]
