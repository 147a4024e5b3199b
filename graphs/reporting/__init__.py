"""Building blocks of reports: tables, charts, outlines, and means with intervals, independent of their rendering."""

from .chart import Chart, FittedLine, Series
from .facet import Facet
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
from .table import Cell, Counted, FacetColumn, Outline, Runs, Span, Table, side_by_side

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
