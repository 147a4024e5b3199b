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
_UNSAFE_CHARACTER = re.compile("[" + "".join(map(chr, (*_CONTROLS, *_DIRECTIONS, *_SEPARATORS))) + "\ud800-\udfff]")
_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

CHARACTER = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
"""A letter of a script that writes Chinese or Japanese, without spaces between words."""

_MARKS = r"[\u0300-\u036f\u064b-\u065f\u0670\u0900-\u0963\u0966-\u109f\u1780-\u17d3]+"
"""Vowel signs and other marks within words, for example in Hindi, which `\\w` does not match."""

WORD = re.compile(rf"[^\W_]+(?:['’][^\W_]+|{_MARKS}[^\W_]*)*")
_OTHER_LETTER = rf"(?:(?!{CHARACTER})[^\W_])"
UNIT = re.compile(rf"{CHARACTER}|{_OTHER_LETTER}+(?:['’]{_OTHER_LETTER}+|{_MARKS}{_OTHER_LETTER}*)*")
"""A word, but each character of Chinese or Japanese is a word."""

TOKEN = re.compile(rf"{CHARACTER}|{_OTHER_LETTER}+")
"""A unit without apostrophes."""

_CJK_CHARACTER = re.compile(rf"[^\w\s]*{CHARACTER}[^\w\s]*")

Cell = TypeVar("Cell")


def sanitize(text: str) -> str:
    """Return a text without terminal control sequences; line ends and tabs are kept.

    Each control character, direction mark and lone surrogate is replaced by a visible sign.
    """
    return _UNSAFE_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def format_safe_json(value: Any) -> str:
    """Return a value as a line of JSON in which terminal control characters are escaped."""
    return _UNSAFE_CHARACTER.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def count_words(text: str) -> int:
    """Return the number of words between white space; each character of Chinese or Japanese counts as a word."""
    return len(_CJK_CHARACTER.sub(" x ", text).split())


def format_duration(seconds: float) -> str:
    """Return a duration as a short text: `8s`, `10m`, `1m31s`, `2h`."""
    minutes, remaining = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (remaining, "s")) if number]
    return "".join(parts) or "0s"


def format_number(value: float) -> str:
    """Return a mean or a score as a short text with at least three digits, without an exponent if it is large."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def pluralize(count: int, plural: str, singular: str | None = None) -> str:
    """Return a count with its noun: `1 dialogue`, `1,200 dialogues`.

    Args:
        count: The number.
        plural: The plural of the noun.
        singular: The singular; by default the plural without its last letter.
    """
    return f"{count:,} {(singular or plural[:-1]) if count == 1 else plural}"


def escape_markdown(text: str) -> str:
    """Escape a text within a line of Markdown, so that it starts no HTML, link, picture or cell."""
    return " ".join(sanitize(text).split()).replace("<", "&lt;").replace("](", "]\\(").replace("|", "\\|")


def quote_code(text: str) -> str:
    """Return a text as code in a line of Markdown."""
    line = " ".join(sanitize(text).split()).replace("`", "'").replace("|", "\\|")
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


def escape_latex(text: str) -> str:
    """Escape a text within a line of LaTeX, so that it starts no command, comment, formula or cell."""
    return " ".join(sanitize(text).split()).translate(_LATEX)


def escape_csv_cell(cell: Cell) -> Cell | str:
    """Return a cell that no spreadsheet reads as a formula: text that looks like one is prefixed by an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_PREFIXES) else cell


def unescape_csv_cell(cell: str) -> str:
    """Return the original text of a cell made by `escape_csv_cell`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA_PREFIXES) else cell


def to_well_formed(text: str) -> str:
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


def to_well_formed_value(value: Any) -> Any:
    """Return a JSON value with all texts, keys included, made well-formed."""
    if isinstance(value, str):
        return to_well_formed(value)
    if isinstance(value, list):
        return [to_well_formed_value(part) for part in value]
    if isinstance(value, dict):
        return {to_well_formed(key): to_well_formed_value(part) for key, part in value.items()}
    return value


def is_well_formed(value: Any) -> bool:
    """Return whether all texts of a JSON value are well-formed; this is much faster than a check of each text.

    The result may also be false for a value with integers of more than 64 bits.
    """
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True
