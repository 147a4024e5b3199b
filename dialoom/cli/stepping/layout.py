"""Parts of answers that fit the terminal's width, without trailing blanks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Fitted:
    """One line that is written for the available width.

    Attributes:
        write: The line, of at most so many columns.
        style: Its colour.
    """

    write: Callable[[int], str]
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line, truncated if it is still too long."""
        yield Text(self.write(options.max_width), style=self.style, no_wrap=True, overflow="ellipsis")


@dataclass(frozen=True, slots=True)
class Inset:
    """Indented content, with all of its lines.

    Attributes:
        shown: What is.
        columns: By so many.
    """

    shown: RenderableType
    columns: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the indented lines."""
        room = options.update(width=max(1, options.max_width - self.columns))
        for line in console.render_lines(self.shown, room, pad=False):
            if line:
                yield Segment(" " * self.columns)
            yield from line
            yield Segment.line()


@dataclass(frozen=True, slots=True)
class Clipped:
    """The beginning of long content.

    Attributes:
        shown: What is.
        lines: So many of its lines are shown.
        whole: How all of it is to be seen.
    """

    shown: RenderableType
    lines: int
    whole: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the first lines, and the number of further lines."""
        rendered = console.render_lines(self.shown, options, pad=False)
        left = len(rendered) - self.lines
        if left < 2:  # a line that says so would take as much room
            yield self.shown
            return
        for line in rendered[: self.lines]:
            yield from line
            yield Segment.line()
        yield Text(f"... {left} more lines: {self.whole}", style="dim")


def cut(text: str, width: int) -> str:
    """Truncate a line to a number of columns."""
    return text if cell_len(text) <= width else f"{set_cell_size(text, max(0, width - 3))}..."
