"""Data sources for agents with tools: users, past sessions, queries, and the histories made of them."""

from .checks import read_source
from .history import ApolloHistory, HistoryError, first_message, history, quarter_of_characters
from .source import (
    FORMS,
    ApolloMeta,
    ApolloPair,
    ApolloSession,
    ApolloSource,
    ApolloUser,
    PastCall,
    PreferenceForm,
    QueryKind,
    Speech,
)

__all__ = [
    "FORMS",
    "ApolloHistory",
    "ApolloMeta",
    "ApolloPair",
    "ApolloSession",
    "ApolloSource",
    "ApolloUser",
    "HistoryError",
    "PastCall",
    "PreferenceForm",
    "QueryKind",
    "Speech",
    "first_message",
    "history",
    "quarter_of_characters",
    "read_source",
]
