"""A cluster within this process: workers as they are, without Ray, which may be made to die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dialoom import Budget
from dialoom.roles.gateway.budget import Spend
from dialoom.roles.gateway.model_facts import Prices
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.store.transfer import Transfer
from dialoom.runs.workers import cluster, pool
from dialoom.runs.workers.cluster import WorkerDiedError
from dialoom.runs.workers.messages import Begun, Delivery, Left, Order, left_by
from dialoom.runs.workers.shared_state import SharedState
from dialoom.runs.workers.worker import Worker

Deadly = Callable[[Delivery | None, set[int]], bool]
"""Whether a worker dies instead of handing this over, or of going on with what it has."""


class NearHandle:
    """As `WorkerHandle`, of a worker in this process."""

    def __init__(self, order: Order, name: str, line: SharedState, near: NearCluster) -> None:
        self._line = line
        self._order = order
        self._name = name
        self._near = near
        self._worker = Worker(name)
        self._has: set[int] = set()

    async def begin(self) -> Begun:
        """A new one, as Ray would start it."""
        self._worker, self._has = Worker(self._name), set()
        return Begun("here", await self._worker.begin(self._order, self._line))

    async def lease(self, begun: Begun, transfers: list[Transfer]) -> None:
        """WorkerHandle scenarios over."""
        self._near.leased.append([each.position or 0 for each in transfers])
        self._has |= {*self._near.leased[-1]}
        for _ in range(2):  # what is said twice counts once
            assert await self._worker.lease(begun.path, transfers)
        await self._live_on(None)

    async def report(self, begun: Begun, heard: int) -> Delivery:
        """What it says, unless it dies first; what is said twice must count once."""
        await self._worker.report(begun.path, heard)
        self._worker._changed.set()
        self._worker._enough.set()
        delivery = await self._worker.report(begun.path, heard)
        assert delivery is not None
        await self._live_on(delivery)
        self._has -= {each.position or 0 for each in delivery.transfers}
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
        self._worker._listening.cancel()
        self._worker._working.cancel()
        await asyncio.gather(self._worker._working, return_exceptions=True)
        self._worker._opened.close()


class NearCluster:
    """Keeps count of what was leased and who died."""

    size = 2

    def __init__(self, is_deadly: Deadly) -> None:
        self.is_deadly = is_deadly
        self.deaths = 0
        self.leased: list[list[int]] = []
        self.handles: list[NearHandle] = []
        self.told: list[asyncio.Future[None]] = []
        self.at_end: Callable[[], object] = lambda: None  # while Ray would shut down

    def wake(self, worker: str) -> set[int]:
        """Have a worker report at once, though it has nothing to say; returns what it has."""
        (handle,) = [each for each in self.handles if each._worker._path and each._worker._path.stem == worker]
        handle._worker._changed.set()
        handle._worker._enough.set()
        return handle._has

    def let_go(self) -> None:
        """Of all files, as the death of the workers' processes would."""
        for handle in self.handles:
            handle._worker._opened.close()

    def shared_state(self, path: Path, budget: Budget, spent: Spend, gateways: int, cache: Path | None) -> SharedState:
        """What they have in common."""
        return SharedState(path, budget, spent, gateways, cache)

    def start_worker(self, order: Order, name: str, line: SharedState) -> NearHandle:
        """A worker."""
        self.handles.append(NearHandle(order, name, line, self))
        return self.handles[-1]

    async def left(self, begun: Begun, wanted: Mapping[int, int], prices: Prices) -> Left:
        """What a dead one has left."""
        return left_by(begun.path, wanted, prices, patience=0)


def near_cluster(monkeypatch: pytest.MonkeyPatch, is_deadly: Deadly = lambda _delivery, _has: False) -> NearCluster:
    """Let pools find their workers in this process, without Ray."""
    found = NearCluster(is_deadly)

    @asynccontextmanager
    async def machines(_policy: CallPolicy) -> AsyncIterator[NearCluster]:
        yield found
        found.at_end()
        await asyncio.sleep(0)

    monkeypatch.setattr(pool, "cluster", machines)
    monkeypatch.setattr(cluster, "check_ray", lambda: None)
    return found
