"""What somebody said, made fit to be shown: on a terminal, in Markdown, in a spreadsheet, as JSON.

A reply, a name or an error may hold what its reader's program would obey instead of showing it. Everything that shows
such texts takes them through here. What is kept is not changed. This module is below every floor.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

_DIRECTIONS = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SEPARATORS = (0x2028, 0x2029)
_CONTROLS = (*(code for code in range(32) if chr(code) not in "\t\n"), *range(127, 160))
_OBEYED = re.compile("[" + "".join(map(chr, (*_CONTROLS, *_DIRECTIONS, *_SEPARATORS))) + "\ud800-\udfff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

Cell = TypeVar("Cell")


def harmless(text: str) -> str:
    """A text of which a terminal obeys nothing; line ends and tabs stay.

    A sign stands in the place of each control character, mark of direction and half of a character.
    """
    return _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def json_line(value: Any) -> str:
    """A value as a line of JSON that says all of it, with escapes for what a terminal would obey."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def duration(seconds: float) -> str:
    """A length of time as people and options say it: `8s`, `10m`, `1m31s`, `2h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{figure}{unit}" for figure, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if figure]
    return "".join(parts) or "0s"


def counted(count: int, things: str, thing: str | None = None) -> str:
    """So many of something: `1 dialogue`, `1,200 dialogues`.

    Args:
        count: How many.
        things: What they are called.
        thing: What one is called; by default without the last letter.
    """
    return f"{count:,} {(thing or things[:-1]) if count == 1 else things}"


def markdown_text(text: str) -> str:
    """A text within a line of Markdown: it starts no HTML, link, picture or cell."""
    line = " ".join(harmless(text).split())
    return line.replace("<", "&lt;").replace("](", "]\\(").replace("|", "\\|")


def markdown_code(text: str) -> str:
    """A text as code in a line of Markdown."""
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
    }
)
"""Brackets are in braces, as a row that begins with one would be taken for an argument of the row before."""


def latex_text(text: str) -> str:
    """A text within a line of LaTeX: it starts no command, comment, formula or cell."""
    return " ".join(harmless(text).split()).translate(_LATEX)


def csv_cell(cell: Cell) -> Cell | str:
    """A cell that no spreadsheet takes for a formula: an apostrophe stands before a text that looks like one."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def cell_text(cell: str) -> str:
    """What `csv_cell` was given, when its cell comes back."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
