"""Prompt templates, one file each, and the library that finds, overrides and renders them."""

from .errors import PromptError
from .library import PromptLibrary
from .messages import ChatMessage, FunctionCall, ToolDefinition, Utterance
from .prompt import Prompt

__all__ = [
    "ChatMessage",
    "FunctionCall",
    "Prompt",
    "PromptError",
    "PromptLibrary",
    "ToolDefinition",
    "Utterance",
]
