"""JSON values line by line, from files as they are: what can be mended is mended and counted, the rest refused."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dialoom.inputs import DataError, decode_json, read_bytes, read_lines
from dialoom.personas.mending import HALVES, Mendings
from dialoom.text import well_formed_value

BLANK = "blank lines left out"
TRAILING = "lines with spaces at their end"
SEVERAL = "lines with several values split"
MARKED = "byte order marks left out"
SIXTEEN = "files in UTF-16 read as such"
FOREIGN = "lines beyond UTF-8 read as Windows-1252"

_GAP = re.compile(r"[\s,]*")


def values_of(path: Path, mendings: Mendings) -> Iterator[tuple[int, Any]]:
    """Yield every JSON value of a file with the number of its line (from 1).

    Raises:
        DataError: If the file cannot be read, or a line holds something else than JSON.
    """
    for number, line in _lines(path, mendings):
        text = _decoded(line, path, number, mendings)
        if not text.strip():
            mendings[BLANK] += 1
            continue
        mendings[TRAILING] += text != text.rstrip()
        values = list(_values(text.strip(), path, number, mendings))
        mendings[SEVERAL] += len(values) > 1
        yield from ((number, value) for value in values)


def _lines(path: Path, mendings: Mendings) -> Iterator[tuple[int, bytes]]:
    """Yield the lines in UTF-8 or Windows-1252 without a byte order mark."""
    for number, line in read_lines(path):
        if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            mendings[SIXTEEN] += 1
            yield from _lines_of_sixteen(path)
            return
        if number == 1 and line.startswith(codecs.BOM_UTF8):
            mendings[MARKED] += 1
            line = line.removeprefix(codecs.BOM_UTF8)
        yield number, line


def _lines_of_sixteen(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        text = read_bytes(path).decode("utf-16")
    except UnicodeError as error:
        raise DataError(path, f"begins as UTF-16 and goes on as something else: {error}") from error
    lines = text.removesuffix("\n").split("\n")
    yield from enumerate((line.removesuffix("\r").encode() for line in lines), start=1)


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
        value, place = decode_json(text, path, number, place)
        whole = well_formed_value(value)
        mendings[HALVES] += whole != value
        yield whole
        gap = _GAP.match(text, place)
        place = gap.end() if gap else place
