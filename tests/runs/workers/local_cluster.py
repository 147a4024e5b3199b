"""A cluster within this process: real workers without Ray, which tests can make die."""

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
from dialoom.runs.workers.messages import Leftovers, WorkerConfig, WorkerLocation, WorkerReport, read_leftovers
from dialoom.runs.workers.shared_state import SharedState
from dialoom.runs.workers.worker import Worker

Deadly = Callable[[WorkerReport | None, set[int]], bool]
"""Whether a worker dies instead of handing over a delivery, or (None) after a lease, given the positions it holds."""


class LocalHandle:
    """A replacement of `WorkerHandle` for a worker in this process."""

    def __init__(self, config: WorkerConfig, name: str, shared_state: SharedState, local: LocalCluster) -> None:
        self._shared_state = shared_state
        self._config = config
        self._name = name
        self._local = local
        self._worker = Worker(name)
        self._has: set[int] = set()

    async def begin(self) -> WorkerLocation:
        """Start a new worker, as Ray would."""
        self._worker, self._has = Worker(self._name), set()
        return WorkerLocation("here", await self._worker.begin(self._config, self._shared_state))

    async def lease(self, location: WorkerLocation, transfers: list[Transfer]) -> None:
        """Lease scenarios to the worker."""
        self._local.leased.append([each.position or 0 for each in transfers])
        self._has |= {*self._local.leased[-1]}
        for _ in range(2):  # a repeated message has no further effect
            assert await self._worker.lease(location.path, transfers)
        await self._die_if_deadly(None)

    async def report(self, location: WorkerLocation, received: int) -> WorkerReport:
        """Return the worker's delivery, requested twice, unless it dies first."""
        await self._worker.report(location.path, received)
        self._worker._has_news.set()
        self._worker._is_report_due.set()
        delivery = await self._worker.report(location.path, received)
        assert delivery is not None
        await self._die_if_deadly(delivery)
        self._has -= {each.position or 0 for each in delivery.transfers}
        return delivery

    async def end(self) -> None:
        """End the worker."""
        await self._worker.end()

    def drain(self) -> None:
        """Tell the worker to drain."""
        self._local.messages.append(asyncio.ensure_future(self._worker.drain()))

    def stop(self) -> None:
        """Tell the worker to stop."""
        self._local.messages.append(asyncio.ensure_future(self._worker.stop()))

    def kill(self) -> None:
        """Do nothing, as the worker has ended."""

    async def _die_if_deadly(self, delivery: WorkerReport | None) -> None:
        if self._local.is_deadly(delivery, self._has):
            self._local.deaths += 1
            await self._die()
            raise WorkerDiedError("it was killed")

    async def _die(self) -> None:
        """Imitate the death of a process: the worker does nothing more, and its file is closed."""
        assert self._worker._engine_task is not None
        self._worker._listener_task.cancel()
        self._worker._engine_task.cancel()
        await asyncio.gather(self._worker._engine_task, return_exceptions=True)
        self._worker._opened.close()


class LocalCluster:
    """A cluster that records leases and counts deaths."""

    size = 2

    def __init__(self, is_deadly: Deadly) -> None:
        self.is_deadly = is_deadly
        self.deaths = 0
        self.leased: list[list[int]] = []
        self.handles: list[LocalHandle] = []
        self.messages: list[asyncio.Future[None]] = []
        self.at_end: Callable[[], object] = lambda: None  # called while Ray would shut down

    def wake(self, worker: str) -> set[int]:
        """Make a worker report at once, even without results, and return the positions it holds."""
        (handle,) = [each for each in self.handles if each._worker._path and each._worker._path.stem == worker]
        handle._worker._has_news.set()
        handle._worker._is_report_due.set()
        return handle._has

    def close_files(self) -> None:
        """Close all workers' files, as the death of their processes would."""
        for handle in self.handles:
            handle._worker._opened.close()

    def start_shared_state(
        self, path: Path, budget: Budget, spent: Spend, gateways: int, cache: Path | None
    ) -> SharedState:
        """Create the state that the workers share."""
        return SharedState(path, budget, spent, gateways, cache)

    def start_worker(self, config: WorkerConfig, name: str, shared_state: SharedState) -> LocalHandle:
        """Start a worker and return its handle."""
        self.handles.append(LocalHandle(config, name, shared_state, self))
        return self.handles[-1]

    async def read_leftovers(self, location: WorkerLocation, leases: Mapping[int, int], prices: Prices) -> Leftovers:
        """Return what a dead worker has left."""
        return read_leftovers(location.path, leases, prices, timeout=0)


def local_cluster(monkeypatch: pytest.MonkeyPatch, is_deadly: Deadly = lambda _delivery, _has: False) -> LocalCluster:
    """Make pools start their workers in this process, without Ray."""
    found = LocalCluster(is_deadly)

    @asynccontextmanager
    async def machines(_policy: CallPolicy) -> AsyncIterator[LocalCluster]:
        yield found
        found.at_end()
        await asyncio.sleep(0)

    monkeypatch.setattr(pool, "open_cluster", machines)
    monkeypatch.setattr(cluster, "check_ray", lambda: None)
    return found
