"""Text templates of scripted sources, read from data files, and the filling of their choices and values."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "content"
_CENTS = re.compile(r"(\$[\d,]+\.\d|\d\.\d(?= [A-Z]{3}\b))(?!\d)")
_CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")


def content(name: str) -> Mapping[str, Any]:
    """Read a data file."""
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


class Filling(dict[str, Any]):
    """Values for the braces of a template: `{name}` as it is, `{Name}` capitalised."""

    def __missing__(self, key: str) -> str:
        small = key[0].lower() + key[1:]
        if small == key or small not in self:
            raise KeyError(key)
        return capital(str(self[small]))


def filled(text: str, values: Mapping[str, Any], draw: random.Random) -> str:
    """Fill a template: pick one of each `[choice|of|words]`, insert the values, and write amounts with two decimals."""
    text = _CHOICE.sub(lambda found: draw.choice(found[1].split("|")), text)
    return _CENTS.sub(r"\g<1>0", text.format_map(Filling(values)))


def as_said(value: Any) -> Any:
    """Return a value as people write it: no underscores, no decimals of whole numbers, thousands separators."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{int(value) if value == int(value) else value:,}"
    return value.replace("_", " ") if isinstance(value, str) else value


def capital(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def listed(items: list[str], word: str = "or") -> str:
    """Return items as an enumeration: `a, b or c`; with commas alone if an item contains the word itself."""
    if any(f" {word} " in item for item in items):
        return ", ".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}" if len(items) > 1 else items[0]
