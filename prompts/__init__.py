"""The words: prompt templates, one file each, and the library that finds, overrides and renders them."""

from .errors import PromptError
from .library import PromptLibrary
from .prompt import ChatMessage, Prompt, Utterance

__all__ = ["ChatMessage", "Prompt", "PromptError", "PromptLibrary", "Utterance"]
