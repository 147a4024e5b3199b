"""Attribution of errors to the responsible party, and explanation of SQLite errors. No other module does this."""

from __future__ import annotations

import re
import sqlite3
from enum import StrEnum
from pathlib import Path

from dialoom.errors import Advice, DialoomError, SettingError
from dialoom.errors import RunError as RunError
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


class StoreError(DialoomError):
    """A run file that cannot be read or written; the message names the file, the cause and a remedy."""


class TrustError(DialoomError):
    """A refusal to use code, an address or a file that is specified only by the author of a received file."""


class StoppedError(DialoomError):
    """The error for work that was stopped before anything was saved from which it could be resumed."""


class Fault(StrEnum):
    """The party responsible for an error."""

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
"""Faults that would occur in every scenario, so that the run stops instead of failing all scenarios."""


_VARIABLE_PARTS = re.compile(r"[\w.-]*\d[\w.-]*")
"""Matches the parts of a message that differ between equal errors: ids of requests, times, counts."""


def identify_permanent_error(error: BaseException) -> str | None:
    """Return a string that identifies a provider's permanent error, to recognize the same error in other scenarios.

    Returns:
        The type of the error and its message without ids and numbers. `None` for errors of other kinds, and for errors
            that depend on this scenario's content, such as its length or a violation of a content policy.
    """
    if not isinstance(error, PermanentProviderError) or isinstance(error, ContextError | PolicyError):
        return None
    return f"{type(error).__name__}: {_VARIABLE_PARTS.sub('#', error.message)}"


def fault_of(error: BaseException) -> Fault:
    """Return the party responsible for an error; an unforeseen error is a bug."""
    return next((fault for types, fault in _FAULTS if isinstance(error, types)), Fault.BUG)


def is_file_error(error: sqlite3.Error) -> bool:
    """Return whether an SQLite error concerns the whole file, and not only the values of one job."""
    return not isinstance(
        error,
        sqlite3.IntegrityError
        | sqlite3.DataError
        | sqlite3.InterfaceError
        | sqlite3.ProgrammingError
        | sqlite3.NotSupportedError,
    )


FILE_MOVED = "removed or replaced while it was being written"
"""The message of an error about a file that is no longer at its path."""


def store_error(path: Path, error: BaseException, is_new: bool = False) -> StoreError:
    """Convert an SQLite error to an error whose message users understand.

    Args:
        path: The run's file.
        error: The error raised.
        is_new: Whether the file was being created. If so, the message says that no file is left.
    """
    text = str((isinstance(error, OSError) and error.strerror) or error)
    is_full = "disk is full" in text or "disk I/O error" in text or "No space left" in text
    if is_new and (is_full or isinstance(error, OSError)):
        return StoreError(
            f"{path} cannot be created ({text}); no file was left. Free disk space, or check the folder's permissions"
        )
    if text == FILE_MOVED:
        return StoreError(
            f"{path} was {FILE_MOVED}; if it still exists under another name, resume the run there, otherwise its "
            "results are lost"
        )
    if isinstance(error, sqlite3.DatabaseError) and "not a database" in text:
        return StoreError(f"{path} is not a run of dialoom: it is not an SQLite file")
    if "readonly" in text:
        return StoreError(
            f"{path} cannot be written ({text}); copy it to a writable folder, and continue with the copy"
        )
    if is_full:
        return StoreError(
            f"{path} cannot be written ({text}); committed results are kept. Free disk space",
            advice=Advice("resume", "then resume the run", {"path": path}),
        )
    return StoreError(f"{path}: {text}")
