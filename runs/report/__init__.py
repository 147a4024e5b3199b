"""Reports over one run or several: the tables and charts of the recipe, as Markdown, CSV, LaTeX, PNG, SVG and PDF.

The tables of scores come from the recipe: `WithReport.report_tables`, by default `WithReport.tables` of each run, which
makes the tables of the recipe's `pivots` or, without pivots, those of `graphs/tables/default_tables.py`. The other
tables (health, judges, users, trials, faults, differences, lengths) are made here, for all recipes.
"""

from .building import FAULTS
from .drawing import INSTALL_COMMAND, can_draw, draw
from .report import EMPTY_TABLE, Report, format_cell, format_rows, render_markdown

__all__ = [
    "EMPTY_TABLE",
    "FAULTS",
    "INSTALL_COMMAND",
    "Report",
    "can_draw",
    "draw",
    "format_cell",
    "format_rows",
    "render_markdown",
]
