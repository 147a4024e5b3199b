"""A cluster within this process: workers as they are, without Ray, which may be made to die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from dialoom.runs.calling import CallPolicy
from dialoom.runs.store.parcels import Parcel
from dialoom.runs.workers import crew
from dialoom.runs.workers.cluster import WorkerDiedError
from dialoom.runs.workers.leftovers import read_left
from dialoom.runs.workers.order import Begun, Delivery, Order
from dialoom.runs.workers.worker import Worker

Deadly = Callable[[Delivery | None, set[int]], bool]
"""Whether a worker dies instead of handing this over, or of going on with what it has."""


class NearHand:
    """As `Hand`, of a worker in this process."""

    def __init__(self, order: Order, name: str, near: NearCluster) -> None:
        self._order = order
        self._name = name
        self._near = near
        self._worker = Worker(order, name)
        self._has: set[int] = set()

    async def begin(self) -> Begun:
        """A new one, as Ray would start it."""
        self._worker, self._has = Worker(self._order, self._name), set()
        return Begun("here", await self._worker.begin())

    async def deal(self, parcels: list[Parcel]) -> None:
        """Hand scenarios over."""
        self._near.dealt.append([each.position or 0 for each in parcels])
        self._has |= {*self._near.dealt[-1]}
        await self._worker.deal(parcels)
        await self._live_on(None)

    async def report(self, heard: int) -> Delivery:
        """What it says, unless it dies first; what is said twice must count once."""
        await self._worker.report(heard)
        self._worker._news.set()
        delivery = await self._worker.report(heard)
        await self._live_on(delivery)
        self._has -= {each.position or 0 for each in delivery.parcels}
        return delivery

    async def end(self) -> None:
        """All is done."""
        await self._worker.end()

    def drain(self) -> None:
        """Have it drain."""
        self._near.told.append(asyncio.ensure_future(self._worker.drain()))

    def stop(self) -> None:
        """Have it stop."""
        self._near.told.append(asyncio.ensure_future(self._worker.stop()))

    def kill(self) -> None:
        """It has ended."""

    async def _live_on(self, delivery: Delivery | None) -> None:
        if self._near.is_deadly(delivery, self._has):
            self._near.deaths += 1
            await self._die()
            raise WorkerDiedError("it was killed")

    async def _die(self) -> None:
        """As much as a process of one's own can: nothing more comes of it, and its file is let go of."""
        assert self._worker._working is not None
        self._worker._working.cancel()
        await asyncio.gather(self._worker._working, return_exceptions=True)
        self._worker._opened.close()


class NearCluster:
    """Keeps count of what was dealt and who died."""

    size = 2

    def __init__(self, is_deadly: Deadly) -> None:
        self.is_deadly = is_deadly
        self.deaths = 0
        self.dealt: list[list[int]] = []
        self.told: list[asyncio.Future[None]] = []

    def hire(self, order: Order, name: str) -> NearHand:
        """A worker."""
        return NearHand(order, name, self)

    async def left(self, begun: Begun, wanted: Mapping[int, int]) -> list[Parcel]:
        """What a dead one has left."""
        return list(read_left(begun.path, wanted, patience=0))


def near_cluster(monkeypatch: pytest.MonkeyPatch, is_deadly: Deadly = lambda _delivery, _has: False) -> NearCluster:
    """Have crews find their workers in this process."""
    found = NearCluster(is_deadly)

    @asynccontextmanager
    async def machines(_policy: CallPolicy) -> AsyncIterator[NearCluster]:
        yield found

    monkeypatch.setattr(crew, "cluster", machines)
    return found
