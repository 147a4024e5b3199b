"""Tables and coloured texts on a terminal, which obeys nothing of them but the colours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from dialoom.shown import harmless

_WIDTH = 160
"""Columns where there is no terminal to fit."""


class HarmlessConsole(Console):
    """A console for what somebody said: texts are neither markup nor commands to the terminal, styles stand apart."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **how})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Its pieces; those that rich makes to move the cursor are left as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(harmless(segment.text), segment.style)

    def render_str(self, text: str, **how: Any) -> Text:
        """A text as rich draws it, harmless before it is measured."""
        return super().render_str(harmless(text), **how)


def make_console(width: int = _WIDTH) -> HarmlessConsole:
    """Standard output; as wide as the terminal, or of a width that is enough for texts where there is none."""
    console = HarmlessConsole()
    return console if console.is_terminal else HarmlessConsole(width=width)
