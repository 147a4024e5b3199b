"""Printing of tables and coloured text; all control sequences other than colours are removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from dialoom.text import sanitize

_DEFAULT_WIDTH = 160
"""Columns used when standard output is not a terminal."""


class SafeConsole(Console):
    """A console for texts from models and users, which may hold markup or control sequences: neither is interpreted."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments; control segments with which rich moves the cursor are not changed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(sanitize(segment.text), segment.style)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text rendered by rich, with control sequences removed before its width is measured."""
        return super().render_str(sanitize(text), **options)


def make_console(width: int = _DEFAULT_WIDTH) -> SafeConsole:
    """Return a console on standard output, as wide as the terminal; without a terminal, of a default width."""
    console = SafeConsole()
    return console if console.is_terminal else SafeConsole(width=width)


def build_table(columns: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int) -> Table:
    """Return a table to print; the first `text_columns` columns are aligned to the left, and all others to the right.

    In a narrow terminal, texts are broken, and figures only if they do not fit otherwise.
    """
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True)
    for number, column in enumerate(columns):
        if number < text_columns:
            table.add_column(column, overflow="fold")
        else:
            table.add_column(column.replace(" ", "\n"), justify="right", overflow="fold", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
