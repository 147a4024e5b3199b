"""JSON values line by line, from files as they are: what can be mended is mended and counted, the rest refused."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dialoom.personas.errors import DataError
from dialoom.personas.mending import HALVES, Mendings
from dialoom.text import well_formed_value

BLANK = "blank lines left out"
TRAILING = "lines with spaces at their end"
SEVERAL = "lines with several values split"
MARKED = "byte order marks left out"
SIXTEEN = "files in UTF-16 read as such"
FOREIGN = "lines beyond UTF-8 read as Windows-1252"

_GAP = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


def values_of(path: Path, mendings: Mendings) -> Iterator[tuple[int, Any]]:
    """Every JSON value of a file with the number of its line (from 1).

    Raises:
        DataError: If the file cannot be read, or a line holds something else than JSON.
    """
    for number, line in enumerate(_lines(path, mendings), start=1):
        text = _decoded(line, path, number, mendings)
        if not text.strip():
            mendings[BLANK] += 1
            continue
        mendings[TRAILING] += text != text.rstrip()
        values = list(_values(text.strip(), path, number, mendings))
        mendings[SEVERAL] += len(values) > 1
        yield from ((number, value) for value in values)


def _lines(path: Path, mendings: Mendings) -> list[bytes]:
    """The lines without their ends. Only the newline ends a line: JSON may hold the other separators."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(path, "there is no such file") from error
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from error
    if data.startswith(codecs.BOM_UTF8):
        mendings[MARKED] += 1
        data = data.removeprefix(codecs.BOM_UTF8)
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        mendings[SIXTEEN] += 1
        try:
            data = data.decode("utf-16").encode()
        except UnicodeError as error:
            raise DataError(path, f"begins as UTF-16 and goes on as something else: {error}") from error
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    return lines[:-1] if not lines[-1] else lines


def _decoded(line: bytes, path: Path, number: int, mendings: Mendings) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        text = line.decode("cp1252")
    except UnicodeDecodeError as error:
        raise DataError(path, f"byte {line[error.start]:#04x} is neither UTF-8 nor Windows-1252", number) from error
    mendings[FOREIGN] += 1
    return text


def _values(text: str, path: Path, number: int, mendings: Mendings) -> Iterator[Any]:
    place = 0
    while place < len(text):
        try:
            value, place = _DECODER.raw_decode(text, place)
        except json.JSONDecodeError as error:
            found = text[error.pos : error.pos + 30]
            said = error.msg.removesuffix(" at")  # as in "Unterminated string starting at"
            raise DataError(path, f"not JSON: {said} at column {error.pos + 1} ({found!r})", number) from error
        except (RecursionError, ValueError) as error:
            raise DataError(path, f"not JSON that can be read: {error}", number) from error
        whole = well_formed_value(value)
        mendings[HALVES] += whole != value
        yield whole
        gap = _GAP.match(text, place)
        place = gap.end() if gap else place
