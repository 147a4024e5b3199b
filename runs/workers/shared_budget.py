"""One budget for many gateways. Each gateway holds a share of it, and shares become smaller near the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from dialoom.roles.errors import BudgetError
from dialoom.roles.gateway.budget import Account, Spend
from dialoom.settings import Budget

_CALLS_PER_GRANT = 64
"""The number of calls that a worker's share of the budget is to cover, if the number of calls is not limited."""

_TOLERANCE = 1e-9


@dataclass(slots=True)
class LeaseState:
    """The amounts of a gateway's share of the budget that the gateway has spent and returned.

    Attributes:
        spent: The spend of its calls.
        returned: The amount that it has returned.
    """

    spent: Spend = field(default_factory=Spend)
    returned: Spend = field(default_factory=Spend)

    def merge(self, other: LeaseState) -> LeaseState:
        """Return the later of two states. Messages may arrive out of order, but values only grow."""
        return LeaseState(_maximum(self.spent, other.spent), _maximum(self.returned, other.returned))


@dataclass(slots=True)
class _Lease:
    granted: Spend = field(default_factory=Spend)
    state: LeaseState = field(default_factory=LeaseState)

    @property
    def committed(self) -> Spend:
        """The maximum amount that the gateway may have spent so far, with its calls in flight."""
        return _maximum(self.granted - self.state.returned, self.state.spent)

    @property
    def has_unused(self) -> bool:
        """Whether the gateway has a part of its share that it has neither spent nor returned."""
        rest = self.committed - self.state.spent
        return rest.calls > 0 or rest.tokens > 0 or rest.cost > _TOLERANCE


class SharedBudget:
    """A budget, and the shares of it that gateways hold.

    Args:
        budget: The limits.
        spent: The run's spend so far.
        gateways: The approximate number of gateways.
    """

    def __init__(self, budget: Budget, spent: Spend, gateways: int) -> None:
        self._budget = budget
        self._spent = spent
        self._gateways = gateways
        self._leases: dict[str, _Lease] = {}
        self._refused: BudgetError | None = None
        self._changed = asyncio.Event()
        self._is_short = False  # whether gateways should return what they do not need

    async def lend(self, gateway: str, amount: Spend, state: LeaseState) -> Spend:
        """Grant a share of the budget for a call, and for further calls while much of the budget is left.

        Args:
            gateway: The gateway's name.
            amount: The expected spend of the call.
            state: The amounts that the gateway has spent and returned from its share.

        Raises:
            BudgetError: If the budget does not suffice although no gateway holds a share. From then on nothing is
                granted.
        """
        lease = self._leases.setdefault(gateway, _Lease())
        lease.state = lease.state.merge(state)
        while self._refused is None:
            try:
                Account(self._budget, self._committed).reserve(amount)
            except BudgetError as error:
                if not self._is_short:
                    self._is_short = True
                    self._wake()
                if not any(each.has_unused for each in self._leases.values()):
                    self._refused = error
                    self._wake()
                    break
                await self._changed.wait()
            else:
                grant = amount if self._is_short else self._enlarge(amount)
                lease.granted += grant
                return grant
        raise self._refused

    async def update_lease(self, gateway: str, state: LeaseState) -> None:
        """Record how much of its share a gateway has used."""
        if (lease := self._leases.get(gateway)) is not None:
            lease.state = lease.state.merge(state)
            self._wake()

    def remove(self, gateway: str, spent: Spend | None) -> None:
        """Remove a gateway that has ended.

        Args:
            gateway: The gateway's name.
            spent: The spend of its calls; `None` if unknown, in which case its whole share counts as spent.
        """
        if (lease := self._leases.pop(gateway, None)) is not None:
            self._spent += lease.committed if spent is None else spent
            self._wake()

    @property
    def _committed(self) -> Spend:
        """The amount of the budget that is spent or lent."""
        return sum((lease.committed for lease in self._leases.values()), self._spent)

    def _enlarge(self, amount: Spend) -> Spend:
        """Return a share for one call, or for several calls that use at most a quarter of the rest per gateway."""
        calls, committed = _CALLS_PER_GRANT, self._committed
        for name in ("calls", "tokens", "cost"):
            bound, each = getattr(self._budget, f"max_{name}"), getattr(amount, name)
            if bound is not None and each:
                left = bound * (1 + _TOLERANCE) - getattr(committed, name)
                calls = min(calls, int(left / (4 * self._gateways) / each))
        calls = max(1, calls)
        return Spend(calls * amount.calls, calls * amount.tokens, calls * amount.cost)

    def _wake(self) -> None:
        """Wake all who wait for a change of the shared state."""
        self._changed.set()
        self._changed = asyncio.Event()


class LeasedAccount(Account):
    """A gateway's share of a budget, which grows on demand.

    Args:
        budget: The limits for all gateways together.
        lend: A function that grants more of the budget; see `SharedBudget.lend`.
        report: A function that reports the use of the share.
    """

    def __init__(
        self,
        budget: Budget,
        lend: Callable[[Spend, LeaseState], Awaitable[Spend]],
        report: Callable[[LeaseState], None],
    ) -> None:
        super().__init__(budget)
        self._bounded = ["calls", *(name for name in ("tokens", "cost") if getattr(budget, f"max_{name}") is not None)]
        self._lend = lend
        self._report = report
        self._granted = Spend()
        self._returned = Spend()
        self._lend_lock = asyncio.Lock()
        self._is_short = False

    async def claim(self, expected: Spend) -> None:
        """Reserve the expected spend of a call; enlarge the share first if necessary.

        Raises:
            BudgetError: If the budget does not suffice although no call is in flight in any gateway.
        """
        async with self._lend_lock:
            while True:
                try:
                    self.reserve(expected)
                except BudgetError:
                    if self._refusal is not None:
                        raise
                else:
                    return
                try:
                    self._granted += await self._lend(expected, self.state)
                except BudgetError as error:
                    self._refusal = error
                    raise

    def reserve(self, expected: Spend) -> None:
        """Reserve the expected spend of a call from the current share.

        Raises:
            BudgetError: If the spend exceeds the rest of the share; then `claim` must be used.
        """
        if self._refusal is not None:
            raise BudgetError(str(self._refusal), setting=self._refusal.setting)
        rest = self._rest
        if any(getattr(expected, name) > getattr(rest, name) + _TOLERANCE for name in self._bounded):
            raise BudgetError("this gateway's share of the budget is used up")
        self.reserved += expected

    def settle(self, expected: Spend, taken: Spend) -> None:
        """Replace the reservation of a call by its actual spend."""
        super().settle(expected, taken)
        if self._is_short:
            self.return_unused()

    def return_unused(self) -> None:
        """Return everything that no call in flight needs, now and whenever a call ends."""
        self._is_short = True
        self._returned += _maximum(self._rest, Spend())
        self._report(self.state)

    @property
    def state(self) -> LeaseState:
        """The state of the gateway's use of its share."""
        return LeaseState(self.spent, self._returned)

    @property
    def _rest(self) -> Spend:
        """The part of the share that is neither used nor needed for calls in flight."""
        return self._granted - self._returned - self.spent - self.reserved


def _maximum(one: Spend, other: Spend) -> Spend:
    return Spend(max(one.calls, other.calls), max(one.tokens, other.tokens), max(one.cost, other.cost))
