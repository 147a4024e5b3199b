"""Attribution of errors to the party at fault, in this one place."""

from __future__ import annotations

import re
from enum import StrEnum

from dialoom.errors import DialoomError, SettingError
from dialoom.graphs import RecipeError
from dialoom.graphs.environment import ToolError
from dialoom.graphs.judge import JudgeError
from dialoom.inputs import DataError
from dialoom.outputs import OutputError
from dialoom.prompts import PromptError
from dialoom.roles import (
    BindingError,
    BudgetError,
    CacheError,
    ContextError,
    NotRecordedError,
    PermanentProviderError,
    PolicyError,
    TransientProviderError,
    UnparsedReplyError,
)


class RunError(DialoomError):
    """A request that cannot be fulfilled as configured."""


class StoreError(DialoomError):
    """A run file that cannot be read or written; the message names the file, the cause and a remedy."""


class TrustError(DialoomError):
    """Code, an address or a file that only a file's author has named, so that it is not used."""


class StoppedError(DialoomError):
    """Work that was stopped before anything was saved to resume from."""


class Fault(StrEnum):
    """The party at fault for an error."""

    CONFIGURATION = "configuration"
    DATA = "data"
    STORE = "store"
    PROVIDER_TRANSIENT = "provider, transient"
    PROVIDER_PERMANENT = "provider, permanent"
    CONTEXT = "context"
    REPLY = "reply"
    PROVIDER_AWAY = "provider, away"
    BUDGET = "budget"
    NOT_RECORDED = "not recorded"
    PREDECESSOR = "predecessor"
    BUG = "bug"


_FAULTS: tuple[tuple[tuple[type[BaseException], ...], Fault], ...] = (
    (
        (
            SettingError,
            RunError,
            TrustError,
            OutputError,
            RecipeError,
            JudgeError,
            ToolError,
            BindingError,
            PromptError,
        ),
        Fault.CONFIGURATION,
    ),
    ((DataError,), Fault.DATA),
    ((StoreError, CacheError), Fault.STORE),
    ((TransientProviderError,), Fault.PROVIDER_TRANSIENT),
    ((ContextError,), Fault.CONTEXT),
    ((PermanentProviderError,), Fault.PROVIDER_PERMANENT),
    ((UnparsedReplyError,), Fault.REPLY),
    ((BudgetError,), Fault.BUDGET),
    ((NotRecordedError,), Fault.NOT_RECORDED),
)

FATAL = frozenset({Fault.CONFIGURATION, Fault.DATA, Fault.STORE, Fault.NOT_RECORDED})
"""Faults that every other scenario would meet as well: the run stops instead of failing one scenario after another."""


_VARYING = re.compile(r"[\w.-]*\d[\w.-]*")
"""The parts in which equal errors differ: ids of requests, times, counts."""


def lasting_cause(error: BaseException) -> str | None:
    """Return a text that is equal for permanent errors of a provider that other scenarios would meet too.

    Returns:
        The type of the error and its message without ids and numbers. `None` for any other error, and for one that
        concerns this scenario's content: its length, or a content policy.
    """
    if not isinstance(error, PermanentProviderError) or isinstance(error, ContextError | PolicyError):
        return None
    return f"{type(error).__name__}: {_VARYING.sub('#', error.message)}"


def fault_of(error: BaseException) -> Fault:
    """Return the party at fault for an error; an unforeseen error is a bug."""
    return next((fault for types, fault in _FAULTS if isinstance(error, types)), Fault.BUG)
