"""State shared by a run's workers: budget, rate limits, notices and replies."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Coroutine
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dialoom.roles import CallPlace, Completion, DrainedError, PermanentProviderError
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.budget import Account, HearOverload, Place, Spend
from dialoom.roles.gateway.cache import ResponseCache, cache_key, is_kept
from dialoom.roles.gateway.limits import Pauses, PerMinute, Rate
from dialoom.runs.store import RunStore
from dialoom.runs.store.connections import open_for_reading
from dialoom.runs.store.transfer import LENT, Transfer, pack_common
from dialoom.settings import Budget

from .shared_budget import LeasedAccount, SharedBudget

_REMEMBERED = 5000
"""The number of cached common calls (calls made once for all scenarios); others are looked up in the run's file."""

_MOST_NOTICES = 1000

Failed = tuple[str, Exception]
"""The name of the worker whose common call failed, with the error."""


Overload = tuple[Place, float, float | None]
"""The notice that another worker's call was rejected by a rate limit or because of overload.

It consists of the model and the address that serves it, the seconds since the call was sent, and the wait in seconds
that the provider asks for.
"""


@dataclass(frozen=True, slots=True)
class Notices:
    """The notices for a worker.

    Attributes:
        number: The number of the last notice.
        overloads: Other workers' rejected calls.
        is_short: Whether unused shares of the budget should be returned.
    """

    number: int
    overloads: list[Overload] = field(default_factory=list)
    is_short: bool = False


@dataclass(slots=True)
class _PendingCall:
    """A common call that a worker is making."""

    maker: str
    over: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None


class SharedState(SharedBudget):
    """The state that a run's workers share.

    Args:
        path: The run's file.
        budget: The limits.
        spent: The run's spend so far.
        gateways: The number of workers.
        cache: The cache file with other runs' replies, if there is one.
    """

    def __init__(self, path: Path, budget: Budget, spent: Spend, gateways: int, cache: Path | None) -> None:
        super().__init__(budget, spent, gateways)
        self._path = path
        self._rates: dict[tuple[Place, str], PerMinute] = {}
        self._pauses = Pauses()
        self._cache = None if cache is None else ResponseCache(cache)
        self._made: OrderedDict[str, tuple[str, Transfer]] = OrderedDict()
        self._pending: dict[str, _PendingCall] = {}
        self._refused_calls: dict[str, Failed] = {}
        self._overloads: deque[tuple[int, str, Place, float, float | None]] = deque(maxlen=_MOST_NOTICES)
        self._number = 0

    async def take(self, place: Place, kind: str, per_minute: int, units: int) -> None:
        """Wait until a model's rate limit allows this many units."""
        await self._rate(place, kind, per_minute).take(units)

    async def give(self, place: Place, kind: str, per_minute: int, units: int) -> None:
        """Give back units that were taken but not spent; a negative number takes more."""
        self._rate(place, kind, per_minute).give(units)

    async def overloaded(self, worker: str, place: Place, age: float, retry_after: float | None) -> None:
        """Notify all other workers of a rejected call."""
        now = time.monotonic()
        until = None if retry_after is None else now + retry_after
        self._number += 1
        self._overloads.append((self._number, worker, place, now - age, until))
        self._wake()

    async def notices(self, worker: str, seen: int, is_short: bool) -> Notices:
        """Wait until there are notices that a worker has not seen, and return them.

        Args:
            worker: The worker's name.
            seen: The number of the last notice that the worker has seen.
            is_short: Whether the worker knows that the budget is short.
        """
        while True:
            now = time.monotonic()
            found = [
                (place, now - sent_at, None if until is None else max(0.0, until - now))
                for number, by, place, sent_at, until in self._overloads
                if number > seen and by != worker
            ]
            if found or self._is_short != is_short:
                return Notices(self._number, found, self._is_short)
            await self._changed.wait()

    async def common(self, worker: str, key: str) -> Transfer | Failed | None:
        """Return a common call with its reply, marked as `LENT`, or the error if another worker's call failed.

        The result is `None` if the worker should make the call itself.

        Args:
            worker: The worker's name.
            key: The call's key.
        """
        while True:
            if (transfer := self._known(key)) is not None:
                return transfer
            if (refused := self._refused_calls.get(key)) is not None:
                return refused
            if (pending := self._pending.get(key)) is None:
                self._pending[key] = _PendingCall(worker)
                return None
            await pending.over.wait()
            if pending.error is not None:
                return pending.maker, pending.error

    async def made(self, worker: str, key: str, transfer: Transfer | None) -> None:
        """Record that a common call was made."""
        if transfer is not None:
            self._made[key] = (worker, transfer)
            if len(self._made) > _REMEMBERED:
                self._made.popitem(last=False)
        self._over(key, None)

    async def failed(self, worker: str, key: str, error: Exception | None) -> None:
        """Record that a common call failed. Others may try it again, unless a permanent error is given."""
        if isinstance(error, PermanentProviderError):
            self._refused_calls[key] = worker, error
        self._over(key, error)

    async def reply(self, key: bytes) -> Completion | None:
        """Return the reply with a key from the cache file; `None` if there is none."""
        return None if self._cache is None else await self._cache.find_by(key)

    async def keep_reply(self, key: bytes, model: str, completion: Completion) -> None:
        """Add a reply to the cache file."""
        if self._cache is not None:
            await self._cache.keep_by(key, model, completion)

    async def ended(self, worker: str, spent: Spend | None) -> list[Transfer]:
        """Remove a worker that has ended, and return the common calls that it made.

        Args:
            worker: The worker's name.
            spent: The spend of its calls; `None` if it is unknown.
        """
        self.remove(worker, spent)
        for key in [key for key, pending in self._pending.items() if pending.maker == worker]:
            self._over(key, None)
        return [transfer for by, transfer in self._made.values() if by == worker]

    def _known(self, key: str) -> Transfer | None:
        if (found := self._made.get(key)) is not None:
            return _lent(found[1])
        with closing(open_for_reading(self._path)) as reader:
            transfer = pack_common(reader, bytes.fromhex(key[:32]))
        return None if transfer is None else _lent(transfer)

    def _over(self, key: str, error: Exception | None) -> None:
        if (pending := self._pending.pop(key, None)) is not None:
            pending.error = error
            pending.over.set()

    def _rate(self, place: Place, kind: str, per_minute: int) -> PerMinute:
        if (place, kind) not in self._rates:
            self._rates[place, kind] = PerMinute(per_minute, time.monotonic, self._pauses)
        return self._rates[place, kind]


def _lent(transfer: Transfer) -> Transfer:
    """Return a common call as it is stored in another worker's file: marked as `LENT`."""
    calls = [call | {"attempts": LENT} for call in transfer.of("calls")]
    return replace(transfer, rows={**transfer.rows, "calls": calls, "attempts": []})


class SharedGateway:
    """A worker's access to the shared state; see `Sharing`.

    Args:
        line: The shared state.
        worker: The worker's name.
        store: The worker's file.
    """

    def __init__(self, line: SharedState, worker: str, store: RunStore) -> None:
        self._line = line
        self._worker = worker
        self._store = store
        self._account: LeasedAccount | None = None
        self._hear: HearOverload = lambda _place, _age, _pause: None
        self._sending: set[asyncio.Task[None]] = set()

    async def listen_on(self) -> None:
        """Process notices from other workers until cancelled."""
        seen, is_short = 0, False
        while True:
            notices = await self._line.notices(self._worker, seen, is_short)
            seen = notices.number
            for each in notices.overloads:
                self._hear(*each)
            if notices.is_short and not is_short and self._account is not None:
                self._account.give_back()
            is_short = notices.is_short

    def account(self, budget: Budget) -> Account:
        """Return the account of this gateway's share of the budget."""
        if not budget.is_bounded:
            return Account(budget)
        self._account = LeasedAccount(
            budget,
            lambda amount, state: self._line.lend(self._worker, amount, state),
            lambda state: self.tell(self._line.stands(self._worker, state)),
        )
        return self._account

    def rate(self, place: Place, kind: str, units: int, pauses: Pauses) -> Rate:
        """Return a model's rate limit per minute, of requests or of tokens."""
        return _SharedRate(self, self._line, place, kind, units, pauses)

    def overloaded(self, place: Place, age: float, retry_after: float | None) -> None:
        """Notify all other workers of a rejected call."""
        self.tell(self._line.overloaded(self._worker, place, age, retry_after))

    def listen(self, hear: HearOverload) -> None:
        """Set the function that is called for other workers' rejected calls."""
        self._hear = hear

    async def is_made(self, key: str) -> bool:
        """Return whether this worker's file has a common call; if not, this worker should make the call."""
        found = await self._line.common(self._worker, key)
        if found is None:
            return False
        if isinstance(found, Transfer):
            await self._store.leases.keep_common([found])
            return True
        raise found[1]

    async def made(self, key: str) -> None:
        """Report to the shared state that a common call is in this worker's file."""
        await self._line.made(self._worker, key, self._store.leases.common(key))

    async def failed(self, key: str, error: Exception | None) -> None:
        """Report to the shared state that a common call has failed."""
        await self._line.failed(self._worker, key, error)

    def tell(self, sending: Coroutine[Any, Any, None]) -> None:
        """Send a message without waiting for an answer."""
        task = asyncio.ensure_future(sending)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


class SharedReplies:
    """The cache of other runs' replies, whose file only one process has open.

    Args:
        line: The shared state, through which the file is accessed.
    """

    def __init__(self, line: SharedState) -> None:
        self._line = line

    async def find(self, request: Request, place: CallPlace) -> Completion | None:
        """Return the cached reply to this request at this place; `None` if there is none."""
        return await self._line.reply(cache_key(request, place)) if is_kept(request) else None

    async def keep(self, request: Request, place: CallPlace, completion: Completion) -> None:
        """Add a reply to the cache."""
        if is_kept(request):
            await self._line.keep_reply(cache_key(request, place), request.model, completion)


class _SharedRate:
    """A rate limit that all workers share; they are served in the order of their requests."""

    def __init__(
        self, gateway: SharedGateway, line: SharedState, place: Place, kind: str, per_minute: int, pauses: Pauses
    ) -> None:
        self._gateway = gateway
        self._line = line
        self._of = (place, kind, per_minute)
        self._pauses = pauses
        self._drained = asyncio.Event()
        pauses.when_drained(self._drained.set)

    async def take(self, units: int) -> None:
        """Wait until the units are available.

        Raises:
            DrainedError: If the run begins to drain during the wait.
        """
        self._pauses.ensure_open()
        asking = asyncio.ensure_future(self._line.take(*self._of, units))
        drained = asyncio.ensure_future(self._drained.wait())
        try:
            await asyncio.wait([asking, drained], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise DrainedError("cancelled while waiting for the rate limit, because the work stops")
        except BaseException:
            asking.add_done_callback(lambda task: self._take_back(task, units))
            raise
        finally:
            drained.cancel()
        await asking

    def give(self, units: int) -> None:
        """Give back units that were taken but not spent; a negative number takes more."""
        if units:
            self._gateway.tell(self._line.give(*self._of, units))

    def _take_back(self, request: asyncio.Future[None], units: int) -> None:
        if not request.cancelled() and request.exception() is None:
            self.give(units)
