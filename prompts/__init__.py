"""Prompt templates, each in its own file, and the library that finds, overrides and renders them."""

from .messages import ChatMessage, FunctionCall, ToolDefinition, Utterance, pair_results
from .prompt import Prompt, PromptError, PromptLibrary, shared_text

__all__ = [
    "ChatMessage",
    "FunctionCall",
    "Prompt",
    "PromptError",
    "PromptLibrary",
    "ToolDefinition",
    "Utterance",
    "pair_results",
    "shared_text",
]
