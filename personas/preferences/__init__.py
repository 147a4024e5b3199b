"""Preferences and the questions that put them to the test: the readers of PrefEval's files, and samples of our own."""

from .chats import DEFAULT_POOL, read_chats
from .pair import FORMS, ChatLine, Form, PreferencePair
from .pairs import PreferencePairs, sample_pairs

__all__ = [
    "DEFAULT_POOL",
    "FORMS",
    "ChatLine",
    "Form",
    "PreferencePair",
    "PreferencePairs",
    "read_chats",
    "sample_pairs",
]
