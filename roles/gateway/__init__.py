"""The gateway for all model calls: ledger replay, then limits, then the backend with retries, then the ledger."""

from .calls import ASKS, Attempt, Caller, CallPlace, CallRecord, Completion, Ledger, Request
from .gateway import Gateway

__all__ = ["ASKS", "Attempt", "CallPlace", "CallRecord", "Caller", "Completion", "Gateway", "Ledger", "Request"]
