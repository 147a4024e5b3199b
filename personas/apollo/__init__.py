"""A simulated world for agents with tools: the tools, their results, and the scoring of calls."""

from .calls import PREFERENCE_DOMAINS, TOOLS, CallError, Parameter, Tool, ToolCall, canonicalize
from .executor import Output, execute
from .scores import CallScores, compare
from .world import CITIES, Place, World

__all__ = [
    "CITIES",
    "PREFERENCE_DOMAINS",
    "TOOLS",
    "CallError",
    "CallScores",
    "Output",
    "Parameter",
    "Place",
    "Tool",
    "ToolCall",
    "World",
    "canonicalize",
    "compare",
    "execute",
]
