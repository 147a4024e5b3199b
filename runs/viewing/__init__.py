"""A finished conversation with all that belongs to its messages: for whoever shows it, page by page."""

from .conversation import Conversation, SpokenMessage, conversation
from .requests import MarkedMessage, RequestShown, request_shown

__all__ = [
    "Conversation",
    "MarkedMessage",
    "RequestShown",
    "SpokenMessage",
    "conversation",
    "request_shown",
]
