"""Preferences and the questions that put them to the test: the readers of PrefEval's files, and samples of our own."""

from .chats import DEFAULT_POOL, read_chats
from .draft import ChoiceTalk, Draft, FourTexts, PairRating, TalkTurn, Text, Validity, read_drafts
from .pair import FORMS, ChatLine, Form, PreferencePair
from .pairs import FOLDERS, OPTIONS_FOLDER, PreferencePairs, sample_pairs
from .rows import row_of, texts_of
from .topics import PairTopic, RatedPair, read_rated, read_tellers, read_topics

__all__ = [
    "DEFAULT_POOL",
    "FOLDERS",
    "FORMS",
    "OPTIONS_FOLDER",
    "ChatLine",
    "ChoiceTalk",
    "Draft",
    "Form",
    "FourTexts",
    "PairRating",
    "PairTopic",
    "PreferencePair",
    "PreferencePairs",
    "RatedPair",
    "TalkTurn",
    "Text",
    "Validity",
    "read_chats",
    "read_drafts",
    "read_rated",
    "read_tellers",
    "read_topics",
    "row_of",
    "sample_pairs",
    "texts_of",
]
