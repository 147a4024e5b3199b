"""A world for agents with tools: what can be called, what it answers, and which calls are right."""

from .calls import CallError, ToolCall, canonical
from .executor import Output, execute
from .scores import CallScores, compare
from .tools import PREFERENCE_DOMAINS, TOOLS, Parameter, Tool
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
    "canonical",
    "compare",
    "execute",
]
