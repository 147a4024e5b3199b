"""Data sources for agents with tools: users, past sessions, queries, and the histories made of them."""

from .checks import read_source
from .history import ApolloHistory, HistoryError, build_first_message, build_history, estimate_tokens
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
    "build_first_message",
    "build_history",
    "estimate_tokens",
    "read_source",
]
