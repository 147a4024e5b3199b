"""The parts in a conversation: prompt + model + type of the reply, and the gateway, the only way to a model."""

from .binding import ModelBinding
from .cast import Cast
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
from .gateway import ASKS, CallPlace, Completion, Gateway, Ledger
from .replies import Score4, Score5, Verdict
from .role import AgentReply, CallSite, Role

__all__ = [
    "ASKS",
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
    "Score4",
    "Score5",
    "TransientProviderError",
    "UnparsedReplyError",
    "Verdict",
]
