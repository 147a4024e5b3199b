"""Preferences and the questions that put them to the test: the readers of PrefEval's files, and samples of our own."""

from .chats import DEFAULT_POOL, read_chats
from .pair import FORMS, Form, PreferencePair, ChatLine
from .pairs import PreferencePairs, sample_pairs

__all__ = [
    "DEFAULT_POOL",
    "FORMS",
    "Form",
    "PreferencePair",
    "PreferencePairs",
    "ChatLine",
    "read_chats",
    "sample_pairs",
]
