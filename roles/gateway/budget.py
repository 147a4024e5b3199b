"""What a run may take in all: calls, tokens, money. Calls in flight count by what they are expected to take."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from dialoom.roles.errors import BudgetError

from .calls import Completion

_ROUNDING = 1e-9
"""Sums of money are binary fractions: three calls for $0.1 are to fit into $0.3."""


class Budget(BaseModel):
    """The most that a run may take; `None` for no bound.

    Attributes:
        max_calls: Answered calls.
        max_tokens: Input and output tokens together.
        max_cost: US dollars.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    max_calls: int | None = Field(None, ge=0)
    max_tokens: int | None = Field(None, ge=0)
    max_cost: float | None = Field(None, ge=0)

    def changed(self, given: Budget | None) -> Budget:
        """This budget with those bounds that were named in another one; a bound named as `None` is taken away."""
        if given is None:
            return self
        return self.model_copy(update=given.model_dump(include=given.model_fields_set))

    @property
    def is_bounded(self) -> bool:
        """Whether anything is bounded at all."""
        return any(bound is not None for bound in (self.max_calls, self.max_tokens, self.max_cost))


@dataclass(slots=True)
class Taken:
    """What calls have taken, or are expected to."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def __iadd__(self, other: Taken) -> Taken:
        self.calls += other.calls
        self.tokens += other.tokens
        self.cost += other.cost
        return self

    def __isub__(self, other: Taken) -> Taken:
        self.calls -= other.calls
        self.tokens -= other.tokens
        self.cost -= other.cost
        return self


@dataclass(slots=True)
class Account:
    """A budget and what is left of it.

    Attributes:
        budget: The bounds.
        spent: What answered calls have taken, those of earlier sittings included.
        reserved: What the calls in flight are expected to take.
    """

    budget: Budget
    spent: Taken = field(default_factory=Taken)
    reserved: Taken = field(default_factory=Taken)
    _refused: BudgetError | None = None
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    async def claim(self, expected: Taken) -> None:
        """Set aside what a call is expected to take, when calls in flight have left room for it if need be.

        Raises:
            BudgetError: If there is no room although nothing is in flight any more, so nothing is cut off by it. From
                then on every claim is refused: the run is to stop.
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

    def reserve(self, expected: Taken) -> None:
        """Set aside what a call is expected to take.

        Raises:
            BudgetError: If that is more than is left. Nothing is set aside then.
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

    def settle(self, expected: Taken, taken: Taken) -> None:
        """Replace what was set aside for a call by what it took."""
        self.reserved -= expected
        if not self.reserved.calls:
            self.reserved = Taken()  # nothing is in flight, whatever rounding has left over
        self.spent += taken
        self._settled.set()  # whoever waits is woken, and waits anew if that was not enough
        self._settled = asyncio.Event()


def tokens_taken(completion: Completion) -> int | None:
    """Tokens of the request and the reply together; `None` if the provider does not say both."""
    if completion.input_tokens is None or completion.output_tokens is None:
        return None
    return completion.input_tokens + completion.output_tokens


def _figure(value: float) -> str:
    """Whole numbers whole, dollars to the hundredth of a cent."""
    return str(value) if isinstance(value, int) else f"{value:.4f}".rstrip("0").rstrip(".")
