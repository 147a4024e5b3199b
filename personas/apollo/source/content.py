"""The words that scripted sources are made of, from data files, and how a text with choices is filled in."""

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
    """A data file."""
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


class Filling(dict[str, Any]):
    """Values for the braces of a text: `{name}` as it is, `{Name}` with a capital."""

    def __missing__(self, key: str) -> str:
        small = key[0].lower() + key[1:]
        if small == key or small not in self:
            raise KeyError(key)
        return capital(str(self[small]))


def filled(text: str, values: Mapping[str, Any], draw: random.Random) -> str:
    """A text with one of each `[choice|of|words]`, and values for its braces; of cents there are two digits or none."""
    text = _CHOICE.sub(lambda found: draw.choice(found[1].split("|")), text)
    return _CENTS.sub(r"\g<1>0", text.format_map(Filling(values)))


def as_said(value: Any) -> Any:
    """As one writes it: without underscores, whole numbers without a decimal, and thousands set apart."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{int(value) if value == int(value) else value:,}"
    return value.replace("_", " ") if isinstance(value, str) else value


def capital(text: str) -> str:
    """With a capital at the beginning."""
    return text[:1].upper() + text[1:]


def listed(items: list[str], word: str = "or") -> str:
    """Items as one says them: `a, b or c`; with commas alone if they hold the word themselves."""
    if any(f" {word} " in item for item in items):
        return ", ".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}" if len(items) > 1 else items[0]
