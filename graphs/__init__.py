"""The state machines: who speaks when. One folder per system; each gives a `Recipe`."""

from .outcome import Episode, Judgement, Line, Outcome
from .recipe import Exporter, Recipe, RecipeError, RecipeOptions
from .scenario import Scenario
from .stage import Scene, Stage, node, stream
from .statistics import Estimate, Tally
from .table import Table

__all__ = [
    "Episode",
    "Estimate",
    "Exporter",
    "Judgement",
    "Line",
    "Outcome",
    "Recipe",
    "RecipeError",
    "RecipeOptions",
    "Scenario",
    "Scene",
    "Stage",
    "Table",
    "Tally",
    "node",
    "stream",
]
