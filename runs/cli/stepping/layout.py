"""Parts of answers that fit the terminal they are printed on, and leave no blanks at the ends of lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Fitted:
    """One line that is written for the room there is.

    Attributes:
        write: The line, of at most so many columns.
        style: Its colour.
    """

    write: Callable[[int], str]
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The line; what is too long in spite of all is cut."""
        yield Text(self.write(options.max_width), style=self.style, no_wrap=True, overflow="ellipsis")


@dataclass(frozen=True, slots=True)
class Inset:
    """Something set in, with all of its lines.

    Attributes:
        shown: What is.
        columns: By so many.
    """

    shown: RenderableType
    columns: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its lines."""
        room = options.update(width=max(1, options.max_width - self.columns))
        for line in console.render_lines(self.shown, room, pad=False):
            if line:
                yield Segment(" " * self.columns)
            yield from line
            yield Segment.line()


def cut(text: str, width: int) -> str:
    """As much of a line as so many columns take."""
    return text if cell_len(text) <= width else f"{set_cell_size(text, max(0, width - 3))}..."
