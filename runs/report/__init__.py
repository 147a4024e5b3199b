"""Reports over one run or several: the recipe's tables and charts, and their output as Markdown, CSV, PNG and SVG."""

from .building import FAULTS, build, charts, compare
from .drawing import HOW_TO_INSTALL, can_draw, draw
from .report import NO_ROWS, Report, markdown, text_of, texts_of, write

__all__ = [
    "FAULTS",
    "HOW_TO_INSTALL",
    "NO_ROWS",
    "Report",
    "build",
    "can_draw",
    "charts",
    "compare",
    "draw",
    "markdown",
    "text_of",
    "texts_of",
    "write",
]
