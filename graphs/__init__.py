"""The state machines: who speaks when. One folder per system; each gives a `Recipe`."""

from .outcome import Episode, Judgement, Line, Outcome
from .recipe import Exporter, ExportOptions, Recipe, RecipeError, RecipeOptions
from .reporting import INTERVALS, Chart, Estimate, FittedLine, Outline, Series, Span, Table, Tally, side_by_side
from .scenario import Scenario
from .shared import Shared
from .stage import Scene, Stage, node, stream

__all__ = [
    "INTERVALS",
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
    "Shared",
    "Span",
    "Stage",
    "Table",
    "Tally",
    "node",
    "side_by_side",
    "stream",
]
