"""What the gateways of several processes have in common, as one of them sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from .budget import Account, Budget
from .limits import Rate
from .pauses import Pauses

Place: TypeAlias = tuple[str, str | None]
"""A model, and the address at which it is served."""

HearOverload: TypeAlias = Callable[[Place, float, float | None], None]
"""Told of a call that was turned away elsewhere: of which model, how many seconds ago it was sent, and what pause the
provider asks for."""


class Sharing(Protocol):
    """One budget, one rate, one of each common call, for all of them."""

    def account(self, budget: Budget) -> Account:
        """The part of the budget that this gateway may spend."""
        ...

    def rate(self, place: Place, kind: str, units: int, pauses: Pauses) -> Rate:
        """A model's rate a minute, of requests or of tokens."""
        ...

    def overloaded(self, place: Place, age: float, retry_after: float | None) -> None:
        """Tell the others of a call that was turned away."""
        ...

    def listen(self, hear: HearOverload) -> None:
        """Have it told of those of others."""
        ...

    async def is_made(self, key: str) -> bool:
        """Whether a common call is in this gateway's ledger, as somebody has made it; if not, it is to be made here.

        While somebody is at it, that is waited for.

        Raises:
            ProviderError: If who was at it has failed: a failure is everybody's.
        """
        ...

    async def made(self, key: str) -> None:
        """A common call is in this gateway's ledger."""
        ...

    async def failed(self, key: str, error: Exception | None) -> None:
        """A common call came to nothing; without an error, somebody else may try."""
        ...
