"""Text from models, users and files, made safe to store and to display. This module is below all layers.

A reply, a name or an error message may contain control sequences or markup that the reader's program would execute.
Everything that displays such texts, on a terminal, in Markdown, in a spreadsheet or as JSON, passes them through here.
Stored texts are not changed for this purpose; only characters that UTF-8 cannot encode are replaced before they are
stored.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import orjson

_DIRECTIONS = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SEPARATORS = (0x2028, 0x2029)
_CONTROLS = (*(code for code in range(32) if chr(code) not in "\t\n"), *range(127, 160))
_OBEYED = re.compile("[" + "".join(map(chr, (*_CONTROLS, *_DIRECTIONS, *_SEPARATORS))) + "\ud800-\udfff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

CHARACTER = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
"""A letter of a script that writes Chinese or Japanese, without spaces between words."""

_MARKS = r"[\u0300-\u036f\u064b-\u065f\u0670\u0900-\u0963\u0966-\u109f\u1780-\u17d3]+"
"""Vowel signs and other marks within words, for example in Hindi, which `\\w` does not match."""

WORD = re.compile(rf"[^\W_]+(?:['’][^\W_]+|{_MARKS}[^\W_]*)*")
_OTHER = rf"(?:(?!{CHARACTER})[^\W_])"
UNIT = re.compile(rf"{CHARACTER}|{_OTHER}+(?:['’]{_OTHER}+|{_MARKS}{_OTHER}*)*")
"""A word, but each character of Chinese or Japanese is a word."""

TOKEN = re.compile(rf"{CHARACTER}|{_OTHER}+")
"""A unit without apostrophes."""

_SPACELESS = re.compile(rf"[^\w\s]*{CHARACTER}[^\w\s]*")

Cell = TypeVar("Cell")


def harmless(text: str) -> str:
    """Return a text without terminal control sequences; line ends and tabs are kept.

    Each control character, direction mark and lone surrogate is replaced by a visible sign.
    """
    return _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def json_line(value: Any) -> str:
    """Return a value as a line of JSON in which terminal control characters are escaped."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def word_count(text: str) -> int:
    """Return the number of words between white space; each character of Chinese or Japanese counts as a word."""
    return len(_SPACELESS.sub(" x ", text).split())


def duration(seconds: float) -> str:
    """Return a duration as a short text: `8s`, `10m`, `1m31s`, `2h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{figure}{unit}" for figure, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if figure]
    return "".join(parts) or "0s"


def rounded(value: float) -> str:
    """Return a mean or a score as a short text with at least three digits, without an exponent if it is large."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def counted(count: int, things: str, thing: str | None = None) -> str:
    """Return a count with its noun: `1 dialogue`, `1,200 dialogues`.

    Args:
        count: The number.
        things: The plural of the noun.
        thing: The singular; by default the plural without its last letter.
    """
    return f"{count:,} {(thing or things[:-1]) if count == 1 else things}"


def markdown_text(text: str) -> str:
    """Escape a text within a line of Markdown, so that it starts no HTML, link, picture or cell."""
    return " ".join(harmless(text).split()).replace("<", "&lt;").replace("](", "]\\(").replace("|", "\\|")


def markdown_code(text: str) -> str:
    """Return a text as code in a line of Markdown."""
    line = " ".join(harmless(text).split()).replace("`", "'").replace("|", "\\|")
    return f"`{line}`"


_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
        "|": "\\textbar{}",
        "[": "{[}",
        "]": "{]}",
        "\N{DAGGER}": "\\textdagger{}",
        "\N{DOUBLE DAGGER}": "\\textdaggerdbl{}",
    }
)
"""Brackets are put in braces, because LaTeX would read one at the start of a row as an argument of the row before."""


def latex_text(text: str) -> str:
    """Escape a text within a line of LaTeX, so that it starts no command, comment, formula or cell."""
    return " ".join(harmless(text).split()).translate(_LATEX)


def csv_cell(cell: Cell) -> Cell | str:
    """Return a cell that no spreadsheet reads as a formula: text that looks like one is prefixed by an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def cell_text(cell: str) -> str:
    """Return the original text of a cell made by `csv_cell`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


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
