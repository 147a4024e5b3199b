"""A run's budget of calls, tokens and cost, with reservations for calls in flight; and state that processes share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from dialoom.roles.errors import BudgetError
from dialoom.settings import Budget

from .calls import Completion
from .limits import Pauses, Rate

_ROUNDING = 1e-9
"""Relative tolerance: costs are floating-point numbers, and three calls at $0.1 must fit into a budget of $0.3."""


@dataclass(frozen=True)
class Spend:
    """The consumption of calls, actual or estimated."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.calls + other.calls, self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: Spend) -> Spend:
        return Spend(self.calls - other.calls, self.tokens - other.tokens, self.cost - other.cost)


@dataclass
class Account:
    """A budget, and what has been spent and reserved of it.

    Attributes:
        budget: The bounds.
        spent: The consumption of answered calls, including earlier sessions of the run.
        reserved: The estimated consumption of calls in flight.
    """

    budget: Budget
    spent: Spend = Spend()
    reserved: Spend = Spend()
    _refusal: BudgetError | None = None
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    async def claim(self, expected: Spend) -> None:
        """Reserve a call's estimated consumption.

        If it does not fit into the budget, wait for calls in flight, which may consume less than is reserved for them.

        Raises:
            BudgetError: If it does not fit even when no call is in flight. Every later claim is refused too, so that
                the run stops.
        """
        while True:
            try:
                self.reserve(expected)
            except BudgetError as error:
                if not self.reserved.calls:
                    self._refusal = error
                    raise
                await self._settled.wait()
            else:
                return

    async def wait_until_idle(self) -> None:
        """Wait until no call is in flight."""
        while self.reserved.calls:
            await self._settled.wait()

    def reserve(self, expected: Spend) -> None:
        """Reserve a call's estimated consumption.

        Raises:
            BudgetError: If the estimate exceeds the rest of the budget. Nothing is reserved in this case.
        """
        if self._refusal is not None:
            raise BudgetError(str(self._refusal), setting=self._refusal.setting)
        for name, bound, unit in (
            ("max_calls", self.budget.max_calls, "calls"),
            ("max_tokens", self.budget.max_tokens, "tokens"),
            ("max_cost", self.budget.max_cost, "cost"),
        ):
            if bound is None:
                continue
            spent, reserved, amount = (getattr(spend, unit) for spend in (self.spent, self.reserved, expected))
            if spent + reserved + amount > bound * (1 + _ROUNDING):
                raise BudgetError(
                    f"{name} {_format_amount(bound)} is used up: {_format_amount(spent)} spent, "
                    f"{_format_amount(reserved)} reserved for calls in flight, {_format_amount(amount)} needed for the "
                    "next one",
                    setting=name,
                )
        self.reserved += expected

    def settle(self, expected: Spend, actual: Spend) -> None:
        """Replace a call's reservation by its actual consumption."""
        self.reserved -= expected
        if not self.reserved.calls:
            self.reserved = Spend()  # nothing is in flight: discard rounding residue
        self.spent += actual
        self._settled.set()  # waiting calls check again, and continue to wait if they still do not fit
        self._settled = asyncio.Event()


def sum_tokens(completion: Completion) -> int | None:
    """Return the tokens of the request and the reply together; `None` if the provider does not report both."""
    if completion.input_tokens is None or completion.output_tokens is None:
        return None
    return completion.input_tokens + completion.output_tokens


def _format_amount(value: float) -> str:
    """Format a number: integers unchanged, dollars with four decimals."""
    return str(value) if isinstance(value, int) else f"{value:.4f}".rstrip("0").rstrip(".")


Endpoint: TypeAlias = tuple[str, str | None]
"""A model, and the address at which it is served."""

OverloadListener: TypeAlias = Callable[[Endpoint, float, float | None], None]
"""A function called when the provider has rejected a call of another process. Its arguments are the call's model and
address, the seconds since the call was sent, and the seconds that the provider asks to wait.
"""


class Coordinator(Protocol):
    """State shared by the gateways of several processes: the budget, the rates, and the calls that scenarios share."""

    def account(self, budget: Budget) -> Account:
        """Return this gateway's share of the budget."""

    def rate(self, endpoint: Endpoint, kind: str, units: int, pauses: Pauses) -> Rate:
        """Return a model's rate per minute, of requests or of tokens."""

    def announce_overload(self, endpoint: Endpoint, age: float, retry_after: float | None) -> None:
        """Notify the other processes that the provider has rejected a call."""

    def listen(self, listener: OverloadListener) -> None:
        """Register a function that is called when the provider rejects a call of another process."""

    async def has_reply(self, key: str) -> bool:
        """Return whether a common call's reply is in this gateway's ledger; otherwise, this gateway must make the call.

        If another process is making the call, wait for its reply.

        Raises:
            ProviderError: If the other process's call has failed; all processes share that failure.
        """

    async def announce_reply(self, key: str) -> None:
        """Announce that a common call's reply is in this gateway's ledger."""

    async def announce_failure(self, key: str, error: Exception | None) -> None:
        """Announce that a common call has failed. If no error is given, another process may make it."""
