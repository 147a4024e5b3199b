"""The interface of state shared between the gateways of several processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from dialoom.settings import Budget

from .budget import Account
from .limits import Rate
from .pauses import Pauses

Place: TypeAlias = tuple[str, str | None]
"""A model, and the address at which it is served."""

HearOverload: TypeAlias = Callable[[Place, float, float | None], None]
"""Called for a call that another process made and the provider rejected: its model, how many seconds ago it was sent,
and the pause that the provider asks for.
"""


class Sharing(Protocol):
    """State shared between gateways: one budget, one rate, one of each common call."""

    def account(self, budget: Budget) -> Account:
        """Return this gateway's share of the budget."""
        ...

    def rate(self, place: Place, kind: str, units: int, pauses: Pauses) -> Rate:
        """Return a model's rate per minute, of requests or of tokens."""
        ...

    def overloaded(self, place: Place, age: float, retry_after: float | None) -> None:
        """Notify the other processes of a rejected call."""
        ...

    def listen(self, hear: HearOverload) -> None:
        """Register a function that is called for rejected calls of other processes."""
        ...

    async def is_made(self, key: str) -> bool:
        """Return whether a common call's reply is in this gateway's ledger; if not, this gateway must make the call.

        Waits while another process makes the call.

        Raises:
            ProviderError: If that process has failed: a failure is shared by all.
        """
        ...

    async def made(self, key: str) -> None:
        """Announce that a common call's reply is in this gateway's ledger."""
        ...

    async def failed(self, key: str, error: Exception | None) -> None:
        """Announce that a common call has failed; without an error, another process may try."""
        ...
