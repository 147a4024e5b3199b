"""A small phrase grammar: `<a|b>` chooses, `{slot}` fills in, `[...]` vanishes when a slot inside it is empty.

`render` gives None when a slot outside brackets is empty, so a caller can offer several templates and take the
first one that its facts can fill.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .draws import Draws


@dataclass(frozen=True)
class _Slot:
    name: str


@dataclass(frozen=True)
class _Optional:
    body: tuple[_Part, ...]


@dataclass(frozen=True)
class _Choice:
    options: tuple[tuple[_Part, ...], ...]


_Part = str | _Slot | _Optional | _Choice


@lru_cache(maxsize=8192)
def _parse(template: str) -> tuple[_Part, ...]:
    parts, end = _sequence(template, 0, "")
    if end != len(template):
        raise ValueError(f"unbalanced brackets in the template {template!r}")
    return parts


def _sequence(text: str, at: int, stops: str) -> tuple[tuple[_Part, ...], int]:
    parts: list[_Part] = []
    while at < len(text) and text[at] not in stops:
        mark = text[at]
        if mark == "{":
            end = text.index("}", at)
            parts.append(_Slot(text[at + 1 : end]))
            at = end + 1
        elif mark == "[":
            body, at = _sequence(text, at + 1, "]")
            parts.append(_Optional(body))
            at += 1
        elif mark == "<":
            options: list[tuple[_Part, ...]] = []
            while True:
                option, at = _sequence(text, at + 1, "|>")
                options.append(option)
                if text[at : at + 1] != "|":
                    break
            parts.append(_Choice(tuple(options)))
            at += 1
        else:
            found = re.search(r"[\[\]<>|{}]", text[at:])
            end = at + found.start() if found and found.start() else (len(text) if not found else at + 1)
            parts.append(text[at:end])
            at = end
    return tuple(parts), at


def _filled(parts: Iterable[_Part], slots: Mapping[str, str], draws: Draws) -> str | None:
    done: list[str] = []
    for part in parts:
        piece: str | None
        if isinstance(part, str):
            piece = part
        elif isinstance(part, _Slot):
            piece = slots.get(part.name) or None
        elif isinstance(part, _Optional):
            piece = _filled(part.body, slots, draws) or ""
        else:
            fitting = (_filled(option, slots, draws) for option in draws.shuffled(part.options))
            piece = next((text for text in fitting if text is not None), None)
        if piece is None:
            return None
        done.append(piece)
    return "".join(done)


def render(template: str, slots: Mapping[str, str], draws: Draws) -> str | None:
    """Fill one template; None when a slot that it needs is empty. The text is not tidied."""
    return _filled(_parse(template), slots, draws)


def render_first(templates: Sequence[str], slots: Mapping[str, str], draws: Draws) -> str:
    """Fill the first template, in a drawn order, that its slots allow; an empty text when none fits."""
    for template in draws.shuffled(templates):
        text = render(template, slots, draws)
        if text:
            return text
    return ""
