"""The gateway for all model calls: ledger replay, then limits, then the backend with retries, then the ledger."""

from .calls import MAX_ASKS, Attempt, Caller, CallPlace, CallRecord, Completion, Ledger, Request
from .gateway import Gateway

__all__ = ["MAX_ASKS", "Attempt", "CallPlace", "CallRecord", "Caller", "Completion", "Gateway", "Ledger", "Request"]
