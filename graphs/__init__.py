"""The state machines, which decide which role speaks when. One folder per system; each provides a `Recipe`."""

from .capabilities import (
    Exporter,
    ExportOptions,
    WithExports,
    WithFacets,
    WithGate,
    WithJudging,
    WithLabels,
    WithOutline,
    WithProgress,
    WithPrompts,
    WithReport,
    WithRoles,
)
from .check import Check, Conversation
from .dialogue import DialogueRecipe, DialogueState, Turns
from .judge import Case, Judge, add_judges
from .outcome import DialogueFault, Episode, Judgement, Line, Outcome
from .recipe import Recipe, RecipeError, RecipeOptions
from .reporting import Chart, Estimate, FittedLine, Outline, Series, Span, Table, Tally, intervals, side_by_side
from .scenario import Scenario, Shared
from .stage import Scene, Stage, node, stream

__all__ = [
    "Case",
    "Chart",
    "Check",
    "Conversation",
    "DialogueFault",
    "DialogueRecipe",
    "DialogueState",
    "Episode",
    "Estimate",
    "ExportOptions",
    "Exporter",
    "FittedLine",
    "Judge",
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
    "Turns",
    "WithExports",
    "WithFacets",
    "WithGate",
    "WithJudging",
    "WithLabels",
    "WithOutline",
    "WithProgress",
    "WithPrompts",
    "WithReport",
    "WithRoles",
    "add_judges",
    "intervals",
    "node",
    "side_by_side",
    "stream",
]
