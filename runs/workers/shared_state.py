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
from dialoom.roles.gateway.budget import Account, Endpoint, OverloadListener, Spend
from dialoom.roles.gateway.cache import ResponseCache, cache_key, is_cacheable
from dialoom.roles.gateway.limits import Pauses, Rate, TokenBucket
from dialoom.runs.store import RunStore
from dialoom.runs.store.connections import open_for_reading
from dialoom.runs.store.transfer import LENT, Transfer, pack_common
from dialoom.settings import Budget

from .shared_budget import LeasedAccount, SharedBudget

_MAX_CACHED_CALLS = 5000
"""The number of cached common calls (calls made once for all scenarios); others are looked up in the run's file."""

_MAX_NOTICES = 1000

FailedCall = tuple[str, Exception]
"""The name of the worker whose common call failed, with the error."""


Overload = tuple[Endpoint, float, float | None]
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

    worker: str
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
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
        self._rates: dict[tuple[Endpoint, str], TokenBucket] = {}
        self._pauses = Pauses()
        self._cache = None if cache is None else ResponseCache(cache)
        self._common_calls: OrderedDict[str, tuple[str, Transfer]] = OrderedDict()
        self._pending: dict[str, _PendingCall] = {}
        self._refused_calls: dict[str, FailedCall] = {}
        self._overloads: deque[tuple[int, str, Endpoint, float, float | None]] = deque(maxlen=_MAX_NOTICES)
        self._number = 0

    async def take_units(self, place: Endpoint, kind: str, per_minute: int, units: int) -> None:
        """Wait until a model's rate limit allows this many units."""
        await self._get_rate(place, kind, per_minute).take(units)

    async def return_units(self, place: Endpoint, kind: str, per_minute: int, units: int) -> None:
        """Give back units that were taken but not spent; a negative number takes more."""
        self._get_rate(place, kind, per_minute).refund(units)

    async def report_overload(self, worker: str, place: Endpoint, age: float, retry_after: float | None) -> None:
        """Notify all other workers of a rejected call."""
        now = time.monotonic()
        until = None if retry_after is None else now + retry_after
        self._number += 1
        self._overloads.append((self._number, worker, place, now - age, until))
        self._wake()

    async def wait_for_notices(self, worker: str, seen: int, is_short: bool) -> Notices:
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

    async def find_common_call(self, worker: str, key: str) -> Transfer | FailedCall | None:
        """Return a common call with its reply, marked as `LENT`, or the error if another worker's call failed.

        The result is `None` if the worker should make the call itself.

        Args:
            worker: The worker's name.
            key: The call's key.
        """
        while True:
            if (transfer := self._find_stored(key)) is not None:
                return transfer
            if (refused := self._refused_calls.get(key)) is not None:
                return refused
            if (pending := self._pending.get(key)) is None:
                self._pending[key] = _PendingCall(worker)
                return None
            await pending.is_over.wait()
            if pending.error is not None:
                return pending.worker, pending.error

    async def add_common_call(self, worker: str, key: str, transfer: Transfer | None) -> None:
        """Record that a common call was made."""
        if transfer is not None:
            self._common_calls[key] = (worker, transfer)
            if len(self._common_calls) > _MAX_CACHED_CALLS:
                self._common_calls.popitem(last=False)
        self._finish_call(key, None)

    async def fail_common_call(self, worker: str, key: str, error: Exception | None) -> None:
        """Record that a common call failed. Others may try it again, unless a permanent error is given."""
        if isinstance(error, PermanentProviderError):
            self._refused_calls[key] = worker, error
        self._finish_call(key, error)

    async def find_reply(self, key: bytes) -> Completion | None:
        """Return the reply with a key from the cache file; `None` if there is none."""
        return None if self._cache is None else await self._cache.find_by_key(key)

    async def save_reply(self, key: bytes, model: str, completion: Completion) -> None:
        """Add a reply to the cache file."""
        if self._cache is not None:
            await self._cache.store_by_key(key, model, completion)

    async def end_worker(self, worker: str, spent: Spend | None) -> list[Transfer]:
        """Remove a worker that has ended, and return the common calls that it made.

        Args:
            worker: The worker's name.
            spent: The spend of its calls; `None` if it is unknown.
        """
        self.remove(worker, spent)
        for key in [key for key, pending in self._pending.items() if pending.worker == worker]:
            self._finish_call(key, None)
        return [transfer for by, transfer in self._common_calls.values() if by == worker]

    def _find_stored(self, key: str) -> Transfer | None:
        if (found := self._common_calls.get(key)) is not None:
            return _mark_as_lent(found[1])
        with closing(open_for_reading(self._path)) as reader:
            transfer = pack_common(reader, bytes.fromhex(key[:32]))
        return None if transfer is None else _mark_as_lent(transfer)

    def _finish_call(self, key: str, error: Exception | None) -> None:
        if (pending := self._pending.pop(key, None)) is not None:
            pending.error = error
            pending.is_over.set()

    def _get_rate(self, place: Endpoint, kind: str, per_minute: int) -> TokenBucket:
        if (place, kind) not in self._rates:
            self._rates[place, kind] = TokenBucket(per_minute, time.monotonic, self._pauses)
        return self._rates[place, kind]


def _mark_as_lent(transfer: Transfer) -> Transfer:
    """Return a common call as it is stored in another worker's file: marked as `LENT`."""
    calls = [call | {"attempts": LENT} for call in transfer.of("calls")]
    return replace(transfer, rows={**transfer.rows, "calls": calls, "attempts": []})


class SharedGateway:
    """A worker's access to the shared state; see `Coordinator`.

    Args:
        shared_state: The shared state.
        worker: The worker's name.
        store: The worker's file.
    """

    def __init__(self, shared_state: SharedState, worker: str, store: RunStore) -> None:
        self._shared_state = shared_state
        self._worker = worker
        self._store = store
        self._account: LeasedAccount | None = None
        self._on_overload: OverloadListener = lambda _place, _age, _pause: None
        self._tasks: set[asyncio.Task[None]] = set()

    async def process_notices(self) -> None:
        """Process notices from other workers until cancelled."""
        seen, is_short = 0, False
        while True:
            notices = await self._shared_state.wait_for_notices(self._worker, seen, is_short)
            seen = notices.number
            for each in notices.overloads:
                self._on_overload(*each)
            if notices.is_short and not is_short and self._account is not None:
                self._account.return_unused()
            is_short = notices.is_short

    def account(self, budget: Budget) -> Account:
        """Return the account of this gateway's share of the budget."""
        if not budget.is_bounded:
            return Account(budget)
        self._account = LeasedAccount(
            budget,
            lambda amount, state: self._shared_state.lend(self._worker, amount, state),
            lambda state: self.send(self._shared_state.update_lease(self._worker, state)),
        )
        return self._account

    def rate(self, place: Endpoint, kind: str, units: int, pauses: Pauses) -> Rate:
        """Return a model's rate limit per minute, of requests or of tokens."""
        return _SharedRate(self, self._shared_state, place, kind, units, pauses)

    def announce_overload(self, place: Endpoint, age: float, retry_after: float | None) -> None:
        """Notify all other workers of a rejected call."""
        self.send(self._shared_state.report_overload(self._worker, place, age, retry_after))

    def listen(self, hear: OverloadListener) -> None:
        """Set the function that is called for other workers' rejected calls."""
        self._on_overload = hear

    async def has_reply(self, key: str) -> bool:
        """Return whether this worker's file has a common call; if not, this worker should make the call."""
        found = await self._shared_state.find_common_call(self._worker, key)
        if found is None:
            return False
        if isinstance(found, Transfer):
            await self._store.leases.store_common_calls([found])
            return True
        raise found[1]

    async def announce_reply(self, key: str) -> None:
        """Report to the shared state that a common call is in this worker's file."""
        await self._shared_state.add_common_call(self._worker, key, self._store.leases.pack_common_call(key))

    async def announce_failure(self, key: str, error: Exception | None) -> None:
        """Report to the shared state that a common call has failed."""
        await self._shared_state.fail_common_call(self._worker, key, error)

    def send(self, sending: Coroutine[Any, Any, None]) -> None:
        """Send a message without waiting for an answer."""
        task = asyncio.ensure_future(sending)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class SharedReplies:
    """The cache of other runs' replies, whose file only one process has open.

    Args:
        shared_state: The shared state, through which the file is accessed.
    """

    def __init__(self, shared_state: SharedState) -> None:
        self._shared_state = shared_state

    async def find(self, request: Request, place: CallPlace) -> Completion | None:
        """Return the cached reply to this request at this place; `None` if there is none."""
        return await self._shared_state.find_reply(cache_key(request, place)) if is_cacheable(request) else None

    async def store(self, request: Request, place: CallPlace, completion: Completion) -> None:
        """Add a reply to the cache."""
        if is_cacheable(request):
            await self._shared_state.save_reply(cache_key(request, place), request.model, completion)


class _SharedRate:
    """A rate limit that all workers share; they are served in the order of their requests."""

    def __init__(
        self,
        gateway: SharedGateway,
        shared_state: SharedState,
        place: Endpoint,
        kind: str,
        per_minute: int,
        pauses: Pauses,
    ) -> None:
        self._gateway = gateway
        self._shared_state = shared_state
        self._rate_arguments = (place, kind, per_minute)
        self._pauses = pauses
        self._drained = asyncio.Event()
        pauses.add_drain_listener(self._drained.set)

    async def take(self, units: int) -> None:
        """Wait until the units are available.

        Raises:
            DrainedError: If the run begins to drain during the wait.
        """
        self._pauses.ensure_open()
        asking = asyncio.ensure_future(self._shared_state.take_units(*self._rate_arguments, units))
        drained = asyncio.ensure_future(self._drained.wait())
        try:
            await asyncio.wait([asking, drained], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise DrainedError("cancelled while waiting for the rate limit, because the work stops")
        except BaseException:
            asking.add_done_callback(lambda task: self._return_when_granted(task, units))
            raise
        finally:
            drained.cancel()
        await asking

    def refund(self, units: int) -> None:
        """Return units that were taken but not spent; a negative number takes more."""
        if units:
            self._gateway.send(self._shared_state.return_units(*self._rate_arguments, units))

    def _return_when_granted(self, request: asyncio.Future[None], units: int) -> None:
        if not request.cancelled() and request.exception() is None:
            self.refund(units)
