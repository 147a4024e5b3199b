"""Roles (prompt, model and reply type), and the gateway through which every model call is made."""

from .binding import ModelBinding
from .errors import (
    BindingError,
    BudgetError,
    CacheError,
    ContextError,
    DrainedError,
    NotRecordedError,
    PermanentProviderError,
    PolicyError,
    ProviderError,
    RoleError,
    TransientProviderError,
    UnparsedReplyError,
)
from .gateway import MAX_ASKS, CallPlace, Completion, Gateway, Ledger
from .replies import Verdict, score_type
from .role import AgentReply, CallSite, Cast, Role

__all__ = [
    "MAX_ASKS",
    "AgentReply",
    "BindingError",
    "BudgetError",
    "CacheError",
    "CallPlace",
    "CallSite",
    "Cast",
    "Completion",
    "ContextError",
    "DrainedError",
    "Gateway",
    "Ledger",
    "ModelBinding",
    "NotRecordedError",
    "PermanentProviderError",
    "PolicyError",
    "ProviderError",
    "Role",
    "RoleError",
    "TransientProviderError",
    "UnparsedReplyError",
    "Verdict",
    "score_type",
]
