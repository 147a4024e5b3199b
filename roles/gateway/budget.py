"""A run's budget of calls, tokens and cost. Calls in flight count with their estimates."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from dialoom.roles.errors import BudgetError
from dialoom.settings import Budget

from .calls import Completion

_ROUNDING = 1e-9
"""Relative tolerance: costs are binary fractions, and three calls of $0.1 must fit into $0.3."""


@dataclass(slots=True)
class Spend:
    """The consumption of calls, actual or estimated."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def __iadd__(self, other: Spend) -> Spend:
        self.calls += other.calls
        self.tokens += other.tokens
        self.cost += other.cost
        return self

    def __isub__(self, other: Spend) -> Spend:
        self.calls -= other.calls
        self.tokens -= other.tokens
        self.cost -= other.cost
        return self


@dataclass(slots=True)
class Account:
    """A budget and its balance.

    Attributes:
        budget: The bounds.
        spent: The consumption of answered calls, including earlier sessions of the run.
        reserved: The estimated consumption of calls in flight.
    """

    budget: Budget
    spent: Spend = field(default_factory=Spend)
    reserved: Spend = field(default_factory=Spend)
    _refused: BudgetError | None = None
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    async def claim(self, expected: Spend) -> None:
        """Reserve a call's estimated consumption, waiting for calls in flight to leave room if necessary.

        Raises:
            BudgetError: If there is no room although no call is in flight, so raising it cuts off none. Every later
                claim is refused: the run is to stop.
        """
        while True:
            try:
                self.reserve(expected)
            except BudgetError as error:
                if not self.reserved.calls:
                    self._refused = error
                    raise
                await self._settled.wait()
            else:
                return

    async def idle(self) -> None:
        """Wait until no call is in flight."""
        while self.reserved.calls:
            await self._settled.wait()

    def reserve(self, expected: Spend) -> None:
        """Reserve a call's estimated consumption.

        Raises:
            BudgetError: If it exceeds the balance. Nothing is reserved then.
        """
        if self._refused is not None:
            raise BudgetError(str(self._refused), setting=self._refused.setting)
        for name, bound, each in (
            ("max_calls", self.budget.max_calls, "calls"),
            ("max_tokens", self.budget.max_tokens, "tokens"),
            ("max_cost", self.budget.max_cost, "cost"),
        ):
            if bound is None:
                continue
            spent, reserved, wanted = (getattr(taken, each) for taken in (self.spent, self.reserved, expected))
            if spent + reserved + wanted > bound * (1 + _ROUNDING):
                raise BudgetError(
                    f"{name} {_figure(bound)} is used up: {_figure(spent)} spent, {_figure(reserved)} set aside for "
                    f"calls in flight, {_figure(wanted)} wanted for the next one",
                    setting=name,
                )
        self.reserved += expected

    def settle(self, expected: Spend, taken: Spend) -> None:
        """Replace a call's reservation by its actual consumption."""
        self.reserved -= expected
        if not self.reserved.calls:
            self.reserved = Spend()  # nothing is in flight: discard rounding residue
        self.spent += taken
        self._settled.set()  # waiting calls check again, and wait on if there is still no room
        self._settled = asyncio.Event()


def tokens_spent(completion: Completion) -> int | None:
    """Return the tokens of the request and the reply together; `None` if the provider does not report both."""
    if completion.input_tokens is None or completion.output_tokens is None:
        return None
    return completion.input_tokens + completion.output_tokens


def _figure(value: float) -> str:
    """Format a number: integers as they are, dollars to the hundredth of a cent."""
    return str(value) if isinstance(value, int) else f"{value:.4f}".rstrip("0").rstrip(".")
