"""The state machines: who speaks when. One folder per system; each gives a `Recipe`."""

from .chart import Chart, FittedLine, Series
from .comparison import side_by_side
from .outcome import BranchTaken, Episode, Judgement, Line, Outcome
from .outline import Outline, Span
from .recipe import Exporter, ExportOptions, Recipe, RecipeError, RecipeOptions
from .scenario import Scenario
from .stage import Scene, Stage, node, stream
from .statistics import Estimate, Tally
from .table import Table

__all__ = [
    "BranchTaken",
    "Chart",
    "Episode",
    "Estimate",
    "ExportOptions",
    "Exporter",
    "FittedLine",
    "Judgement",
    "Line",
    "Outcome",
    "Outline",
    "Recipe",
    "RecipeError",
    "RecipeOptions",
    "Scenario",
    "Scene",
    "Series",
    "Span",
    "Stage",
    "Table",
    "Tally",
    "node",
    "side_by_side",
    "stream",
]
