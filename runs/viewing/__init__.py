"""A finished conversation with all that belongs to its messages: for whoever shows it, page by page."""

from .conversation import Conversation, SpokenMessage, conversation
from .requests import MarkedMessage, RequestShown, request_shown
from .words import Piece, beside, snippet

__all__ = [
    "Conversation",
    "MarkedMessage",
    "Piece",
    "RequestShown",
    "SpokenMessage",
    "beside",
    "conversation",
    "request_shown",
    "snippet",
]
