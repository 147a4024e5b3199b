"""A worker's side of what all workers have in common, for its gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from dialoom.roles import CallPlace, Completion
from dialoom.roles.errors import DrainedError
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.budget import Account, Budget
from dialoom.roles.gateway.cache import cache_key, is_kept
from dialoom.roles.gateway.limits import Rate
from dialoom.roles.gateway.pauses import Pauses
from dialoom.roles.gateway.sharing import HearOverload, Place
from dialoom.runs.store import RunStore
from dialoom.runs.store.parcels import Parcel

from .commons import Commons
from .purse import LeasedAccount


class CommonGateway:
    """What a worker's gateway has in common with others; see `Sharing`.

    Args:
        line: The way to the others.
        worker: What this one is called among them.
        store: Its file.
    """

    def __init__(self, line: Commons, worker: str, store: RunStore) -> None:
        self._line = line
        self._worker = worker
        self._store = store
        self._account: LeasedAccount | None = None
        self._hear: HearOverload = lambda _place, _age, _pause: None
        self._telling: set[asyncio.Task[None]] = set()

    async def listen_on(self) -> None:
        """Hear what others meet, until this is cancelled."""
        seen, is_short = 0, False
        while True:
            news = await self._line.news(self._worker, seen, is_short)
            seen = news.number
            for each in news.overloads:
                self._hear(each.place, each.age, each.retry_after)
            if news.is_short and not is_short and self._account is not None:
                self._account.give_back()
            is_short = news.is_short

    def account(self, budget: Budget) -> Account:
        """The part of the budget that this gateway may spend."""
        if not budget.is_bounded:
            return Account(budget)
        self._account = LeasedAccount(
            budget,
            lambda wanted, standing: self._line.lend(self._worker, wanted, standing),
            lambda standing: self.tell(self._line.stands(self._worker, standing)),
        )
        return self._account

    def rate(self, place: Place, kind: str, units: int, pauses: Pauses) -> Rate:
        """A model's rate a minute, of requests or of tokens."""
        return _CommonRate(self, self._line, place, kind, units, pauses)

    def overloaded(self, place: Place, age: float, retry_after: float | None) -> None:
        """Tell the others of a call that was turned away."""
        self.tell(self._line.overloaded(self._worker, place, age, retry_after))

    def listen(self, hear: HearOverload) -> None:
        """Have it told of those of others."""
        self._hear = hear

    async def is_made(self, key: str) -> bool:
        """Whether a common call is in this file; if not, it is to be made here."""
        found = await self._line.common(self._worker, key)
        if found is None:
            return False
        if isinstance(found, Parcel):
            await self._store.deals.keep_common([found])
            return True
        raise found[1]

    async def made(self, key: str) -> None:
        """A common call is in this file."""
        await self._line.made(self._worker, key, self._store.deals.common(key))

    async def failed(self, key: str, error: Exception | None) -> None:
        """A common call came to nothing."""
        await self._line.failed(self._worker, key, error)

    def tell(self, saying: Coroutine[Any, Any, None]) -> None:
        """Say something without waiting for an answer."""
        task = asyncio.ensure_future(saying)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)


class CommonReplies:
    """The file of other runs' replies, which only one process has open.

    Args:
        line: The way to it.
    """

    def __init__(self, line: Commons) -> None:
        self._line = line

    async def find(self, request: Request, place: CallPlace) -> Completion | None:
        """The reply that this request once got at this place."""
        return await self._line.reply(cache_key(request, place)) if is_kept(request) else None

    async def keep(self, request: Request, place: CallPlace, completion: Completion) -> None:
        """Keep a reply."""
        if is_kept(request):
            await self._line.keep_reply(cache_key(request, place), request.model, completion)


class _CommonRate:
    """A rate that all workers take from, in the order in which they ask."""

    def __init__(
        self, gateway: CommonGateway, line: Commons, place: Place, kind: str, per_minute: int, pauses: Pauses
    ) -> None:
        self._gateway = gateway
        self._line = line
        self._of = (place, kind, per_minute)
        self._pauses = pauses
        self._drained = asyncio.Event()
        pauses.when_drained(self._drained.set)

    async def take(self, units: int) -> None:
        """Wait until the units are there.

        Raises:
            DrainedError: If the work is to stop meanwhile.
        """
        self._pauses.ensure_open()
        asking = asyncio.ensure_future(self._line.take(*self._of, units))
        drained = asyncio.ensure_future(self._drained.wait())
        try:
            await asyncio.wait([asking, drained], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise DrainedError("given up while it had to wait, as the work is to stop")
        except BaseException:
            asking.add_done_callback(lambda task: self._take_back(task, units))
            raise
        finally:
            drained.cancel()
        await asking

    def give(self, units: int) -> None:
        """Units that were taken were not spent; or, below 0, more of them were."""
        if units:
            self._gateway.tell(self._line.give(*self._of, units))

    def _take_back(self, asked: asyncio.Future[None], units: int) -> None:
        if not asked.cancelled() and asked.exception() is None:
            self.give(units)
