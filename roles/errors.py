"""Errors of the calls that roles make to their models, by cause."""

from enum import IntEnum
from typing import Any

from dialoom.errors import DialoomError


class RoleError(DialoomError):
    """Base of this package's errors."""


class BindingError(RoleError):
    """A configuration error, such as a role, model or callable that does not exist."""


class ProviderError(RoleError):
    """An error of a provider: the model could not be reached, or it refused the request.

    Attributes:
        changes: The differences between the configured and the sent parameters, with reasons; `None` for none.
        is_overload: Whether the provider is overloaded or its rate limit is exceeded, so that the request rate should
            fall.
        retry_after: Seconds that the provider asks to wait; `None` if it does not specify a time.
        billed: A `Completion` with the tokens and cost of unusable replies, if the provider reported them.
    """

    changes: str | None = None
    billed: Any = None
    is_overload: bool = False
    retry_after: float | None = None


class TransientProviderError(ProviderError):
    """A transient error (rate limit, overload, time-out, lost connection); calls are retried before it is raised."""

    def __init__(self, message: str, is_overload: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.is_overload = is_overload
        self.retry_after = retry_after


class OutageEvidence(IntEnum):
    """The strength of the evidence that a provider is unavailable, given an unanswered request."""

    NONE = 0
    """No evidence: the request timed out."""
    WEAK = 1
    """Weak evidence: the connection was lost, or a gateway reported that it has no server behind it (502, 503, 504)."""
    STRONG = 2
    """Strong evidence: no connection could be established."""


class UnansweredError(TransientProviderError):
    """The provider's server did not answer, or no connection to it could be established.

    Attributes:
        evidence: The strength of the evidence that the provider is unavailable.
        reason: The cause, in a few words.
        raw_message: The message of the client library.
    """

    def __init__(
        self,
        message: str,
        is_overload: bool = False,
        retry_after: float | None = None,
        *,
        evidence: OutageEvidence,
        reason: str,
        raw_message: str,
    ) -> None:
        super().__init__(message, is_overload, retry_after)
        self.evidence = evidence
        self.reason = reason
        self.raw_message = raw_message


class PermanentProviderError(ProviderError):
    """A provider error that a retry cannot fix: authentication, unknown model, bad request."""


class StateLostError(PermanentProviderError):
    """A stateful player is no longer in the state that the call requires, so its conversation must start again."""


class PolicyError(PermanentProviderError):
    """The provider's content policy rejects this request; other requests may pass."""


class ContextError(PermanentProviderError):
    """The request exceeds the model's context window, so no retry can succeed."""


class BudgetError(RoleError):
    """The run's budget is used up. The run stops, and can be resumed with a higher budget."""


class DrainedError(RoleError):
    """A call was not sent or retried, because it would have had to wait while the run was stopping.

    If the run is resumed, the call is sent.
    """


class NotRecordedError(RoleError):
    """A replay-only run needs a reply that is neither in the ledger nor in the cache."""


class CacheError(RoleError):
    """The shared reply cache cannot be used."""


class UnparsedReplyError(RoleError):
    """A reply that could not be parsed as its type, even when the model was asked again and shown the error.

    Attributes:
        reply: The last reply's text.
    """

    def __init__(self, prompt_id: str, reply: str, reason: str, player: str = "the model") -> None:
        shown = f": {reply!r:.200}" if reply else ""
        super().__init__(f"{player} gave no usable reply to {prompt_id!r} in two attempts ({reason}){shown}")
        self.reply = reply
