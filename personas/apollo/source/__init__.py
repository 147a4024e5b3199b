"""Sources for agents with tools: users, past sessions, queries, and the histories that are made of them."""

from .history import ApolloHistory, HistoryError, first_message, history, quarter_of_characters
from .pair import FORMS, ApolloPair, ApolloUser, PreferenceForm, QueryKind
from .reading import read_source
from .session import ApolloSession, PastCall, Speech
from .source import ApolloMeta, ApolloSource, write_source

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
    "write_source",
]
