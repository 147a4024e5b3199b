"""What can go wrong between a role and its model, by whose fault it is."""

from enum import IntEnum

from dialoom.errors import DialoomError


class RoleError(DialoomError):
    """Base of this package's errors."""


class BindingError(RoleError):
    """A role, model or callable was named that there is not: the configuration's fault."""


class ProviderError(RoleError):
    """A model could not be reached or refused: the provider's fault."""


class TransientProviderError(ProviderError):
    """It may work later: rate limit, overload, time-out, lost connection. Retried before it is raised.

    Attributes:
        is_overload: The provider has more than it can bear, or than it grants: it should be asked less.
        retry_after: Seconds that it asks to wait; `None` if it does not say.
    """

    def __init__(self, message: str, is_overload: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.is_overload = is_overload
        self.retry_after = retry_after


class Absence(IntEnum):
    """What a request without an answer says of whether anybody is there."""

    UNKNOWN = 0
    """Nothing: it took too long."""
    POSSIBLE = 1
    """Something was there: a connection that was lost, a gateway with nobody behind it (502, 503, 504)."""
    CERTAIN = 2
    """No connection could be made."""


class UnansweredError(TransientProviderError):
    """The provider's server did not answer, or could not even be connected with.

    Attributes:
        absence: What that says of whether it is there at all.
        reason: What happened, in a few words.
        raw: What was said of it by those who sent the request.
    """

    def __init__(
        self,
        message: str,
        is_overload: bool = False,
        retry_after: float | None = None,
        *,
        absence: Absence,
        reason: str,
        raw: str,
    ) -> None:
        super().__init__(message, is_overload, retry_after)
        self.absence = absence
        self.reason = reason
        self.raw = raw


class PermanentProviderError(ProviderError):
    """It will not work like this: authentication, unknown model, bad request."""


class PolicyError(PermanentProviderError):
    """The provider's content policy stands against this request; others may pass."""


class ContextError(PermanentProviderError):
    """The request is longer than the model reads: no attempt at it can succeed."""


class BudgetError(RoleError):
    """The run may take no more: it stops, and can go on with a higher budget."""


class DrainedError(RoleError):
    """A call was not made, or not tried again, because it had to wait and the work is to stop; it is made later."""


class NotRecordedError(RoleError):
    """A call was made that neither the ledger nor the cache holds, in a run that may only replay."""


class CacheError(RoleError):
    """The file of shared replies cannot be used."""


class UnparsedReplyError(RoleError):
    """A reply was not of the role's type, nor was the second one, which was asked for with the error shown.

    Attributes:
        reply: The last reply's text.
    """

    def __init__(self, prompt_id: str, reply: str, reason: str, player: str = "the model") -> None:
        shown = f": {reply!r:.200}" if reply else ""
        super().__init__(f"{player} gave no usable reply to {prompt_id!r} in two attempts ({reason}){shown}")
        self.reply = reply
