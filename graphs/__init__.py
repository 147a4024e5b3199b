"""The state machines that decide which role speaks when.

Each system has a folder or module that provides a `Recipe`.
"""

from .built_in_environments import JsonEnvironment, SqliteEnvironment
from .capabilities import (
    Exporter,
    ExportOptions,
    FileItem,
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
from .conversation import DialogueState, joined
from .dialogue import DialogueRecipe, Turns
from .environment import Environment
from .gate.talk import Facts, GateLine, Talk
from .judge import Case, Graph, Judge, add_judges
from .outcome import DialogueFault, Episode, Judgement, Line, Outcome
from .recipe import (
    AbsolutePath,
    EmbedderName,
    FilledAxis,
    FromZero,
    Recipe,
    RecipeError,
    RecipeOptions,
    chosen,
)
from .scenario import Scenario, Shared
from .stage import Scene, Stage, Update, ask_each, node, stream
from .tables import (
    Chart,
    Estimate,
    Facet,
    FittedLine,
    Outline,
    Runs,
    Series,
    Span,
    Table,
    Tally,
    intervals,
    side_by_side,
)

__all__ = [
    "AbsolutePath",
    "Case",
    "Chart",
    "Check",
    "Conversation",
    "DialogueFault",
    "DialogueRecipe",
    "DialogueState",
    "EmbedderName",
    "Environment",
    "Episode",
    "Estimate",
    "ExportOptions",
    "Exporter",
    "Facet",
    "Facts",
    "FileItem",
    "FilledAxis",
    "FittedLine",
    "FromZero",
    "GateLine",
    "Graph",
    "JsonEnvironment",
    "Judge",
    "Judgement",
    "Line",
    "Outcome",
    "Outline",
    "Recipe",
    "RecipeError",
    "RecipeOptions",
    "Runs",
    "Scenario",
    "Scene",
    "Series",
    "Shared",
    "Span",
    "SqliteEnvironment",
    "Stage",
    "Table",
    "Talk",
    "Tally",
    "Turns",
    "Update",
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
    "ask_each",
    "chosen",
    "intervals",
    "joined",
    "node",
    "side_by_side",
    "stream",
]
