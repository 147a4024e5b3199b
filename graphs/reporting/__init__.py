"""What recipes report with: tables, charts, outlines, and means with their intervals; free of how they are shown."""

from .chart import Chart, FittedLine, Series
from .comparison import side_by_side
from .outline import Outline, Span
from .statistics import (
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
from .table import Cell, FacetColumn, Table

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "Cell",
    "Chart",
    "Estimate",
    "FacetColumn",
    "FittedLine",
    "Outline",
    "PairedDifference",
    "Series",
    "Span",
    "Table",
    "Tally",
    "holm",
    "intervals",
    "mean_of_shares",
    "paired_difference",
    "share_of",
    "side_by_side",
    "wilson",
]
