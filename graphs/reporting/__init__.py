"""What recipes report with: tables, charts, outlines, and means with their intervals; free of how they are shown."""

from .chart import Chart, FittedLine, Series
from .comparison import side_by_side
from .facet import Facet
from .outline import Outline, Span
from .pivot import Column, Pivot, count, difference, mean, ratio, score, score_by_turn, share, tabulate
from .statistics import (
    FEWEST,
    LEVEL,
    RESAMPLES,
    Estimate,
    PairedDifference,
    Tally,
    holm,
    intervals,
    mean_of_shares,
    paired_difference,
    share_of,
    wilson,
)
from .table import Cell, Counted, FacetColumn, Runs, Table

__all__ = [
    "FEWEST",
    "LEVEL",
    "RESAMPLES",
    "Cell",
    "Chart",
    "Column",
    "Counted",
    "Estimate",
    "Facet",
    "FacetColumn",
    "FittedLine",
    "Outline",
    "PairedDifference",
    "Pivot",
    "Runs",
    "Series",
    "Span",
    "Table",
    "Tally",
    "count",
    "difference",
    "holm",
    "intervals",
    "mean",
    "mean_of_shares",
    "paired_difference",
    "ratio",
    "score",
    "score_by_turn",
    "share",
    "share_of",
    "side_by_side",
    "tabulate",
    "wilson",
]
