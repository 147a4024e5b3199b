"""The state machines that decide which role speaks when.

Each system has a folder or module that provides a `Recipe`.
"""

from .built_in_environments import JsonEnvironment, SqliteEnvironment
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
from .conversation import DialogueState
from .dialogue import DialogueRecipe, Turns
from .environment import Environment
from .judge import Case, Judge, add_judges
from .outcome import DialogueFault, Episode, Judgement, Line, Outcome
from .recipe import Recipe, RecipeError, RecipeOptions
from .scenario import Scenario, Shared
from .stage import Scene, Stage, node, stream
from .tables import Chart, Estimate, FittedLine, Outline, Series, Span, Table, Tally, intervals, side_by_side

__all__ = [
    "Case",
    "Chart",
    "Check",
    "Conversation",
    "DialogueFault",
    "DialogueRecipe",
    "DialogueState",
    "Environment",
    "Episode",
    "Estimate",
    "ExportOptions",
    "Exporter",
    "FittedLine",
    "JsonEnvironment",
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
    "SqliteEnvironment",
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
