"""Ray: the one module that knows it."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from dialoom.roles.gateway.budget import Budget, Taken
from dialoom.roles.gateway.prices import Prices
from dialoom.runs.errors import RunError
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.store import StoreError
from dialoom.runs.store.transfer import Parcel

from .commons import Commons
from .messages import Begun, Delivery, Left, Order, end_with_parent
from .recovery import left_by
from .worker import Worker

_STORE = 200 * 2**20
"""Bytes of Ray's object store on this machine: parcels pass through it, and none stays."""

_STARTS = 3
"""So often Ray is started on this machine: one that is busy takes longer than Ray waits for itself."""

_MOST_WAITING = 100_000
"""Calls of workers that may wait at once for what they have in common."""

_PATIENCE, _A_MOMENT = 30.0, 0.5
"""Seconds for which a worker that cannot be reached is asked again, and between two times."""

_ANSWERING, _ENDING = 240.0, 20.0
"""Seconds for a worker to answer anything, and to end."""

_NO_PROCESS = 1800.0
"""Seconds after which Ray, which has not started a single process by then, is taken for broken."""

_NO_PLACE, _READING, _TIMES = 180.0, 60.0, 10.0
"""Seconds without a worker that has begun until one that has not is given up, and for reading the file of a dead one;
on a machine so slow that starting a process of Ray's takes long, so many times as long as that took."""

_RAY_SETTINGS = {
    # Ray is to report nothing to anybody, and to leave this process its own signals.
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",
    # Ray's default of 15 leaves its workers next to no processor time while another program uses all processors.
    "RAY_worker_niceness": "0",
    # By default Ray kills what needs longer than 60 s or 30 s to start, and starts it anew, which takes as long again.
    "RAY_worker_register_timeout_seconds": "1800",
    "RAY_agent_register_timeout_ms": "1800000",
    "RAY_gcs_server_port_wait_time_s": "600",
}
"""Environment variables that hold while Ray starts, unless the user has set them."""


class WorkerDiedError(Exception):
    """A worker's process is no more; Ray starts another one in its place."""


class WorkerAwayError(WorkerDiedError):
    """A worker cannot be reached; it may be there still."""


class WorkerLostError(WorkerDiedError):
    """A worker has found no place in time, or has not begun there: it is done without."""


class WorkerProcess(Worker):
    """A worker in a process of Ray's.

    It ends with the process that started it: Ray's on this machine, which ends with the run's own if that started it.
    By itself a worker would learn only after a while that Ray is gone, and hold its file until then.

    Args:
        name: What its files are called by.
    """

    def __init__(self, name: str) -> None:
        end_with_parent()
        super().__init__(name)


class StartingClock:
    """How long starting a process takes here, and when a worker began last.

    What bounds the starting of workers is measured by it: on a busy machine any fixed number of seconds is too short.

    Args:
        reference: Is over when a process of Ray's is there that needs no free place: only the machine delays it.
    """

    def __init__(self, reference: Awaitable[Any]) -> None:
        self._since = self._last = time.monotonic()
        self._seconds: float | None = None
        self._reference = asyncio.ensure_future(reference)
        self._reference.add_done_callback(self._note_start)

    def note_beginning(self) -> None:
        """A worker has begun."""
        self._last = time.monotonic()

    def stretched(self, seconds: float) -> float:
        """A bound in seconds, made longer if starting a process takes long here."""
        return max(seconds, _TIMES * (self._seconds or 0.0))

    async def run_out(self) -> str:
        """Wait until a worker that is asked to begin now has none of the others to wait for; returns the reason."""
        asked = time.monotonic()
        await asyncio.wait([self._reference], timeout=self._since + _NO_PROCESS - asked)
        if self._seconds is None:
            return f"Ray has started no process: {_NO_PROCESS:.0f} s"
        while True:
            bound = self.stretched(_NO_PLACE)
            left = max(asked, self._last) + bound - time.monotonic()
            if left <= 0:
                return f"no machine had a place for it, or it did not begin: {bound:.0f} s"
            await asyncio.sleep(left)

    def _note_start(self, reference: asyncio.Future[Any]) -> None:
        if not reference.cancelled() and reference.exception() is None:
            self._last = time.monotonic()
            self._seconds = self._last - self._since


class Hand:
    """A worker, from afar. What is asked of it raises `WorkerDiedError` if it dies meanwhile."""

    def __init__(self, actor: Any, order: Order, line: Commons, clock: StartingClock) -> None:
        self._actor = actor
        self._told = (order, line)
        self._clock = clock

    async def begin(self) -> Begun:
        """Have it make its file; returns where that is.

        Raises:
            WorkerLostError: If that takes too long. It is not to be asked again: it might begin twice.
            WorkerDiedError: If it died meanwhile, or is not there yet.
        """
        beginning = asyncio.ensure_future(self._begin())
        running_out = asyncio.ensure_future(self._clock.run_out())
        try:
            await asyncio.wait([beginning, running_out], return_when=asyncio.FIRST_COMPLETED)
            if not beginning.done():
                self.kill()
                raise WorkerLostError(running_out.result())
            begun = beginning.result()
        finally:
            beginning.cancel()
            running_out.cancel()
        self._clock.note_beginning()
        return begun

    async def _begin(self) -> Begun:
        path = await _answer(self._actor.begin.remote(*self._told))
        return Begun(await _answer(self._actor.__ray_call__.remote(_node)), path)

    async def deal(self, begun: Begun, parcels: list[Parcel]) -> None:
        """See `Worker`."""
        if not await self._again(begun, lambda: self._actor.deal.remote(begun.path, parcels)):
            raise WorkerDiedError("it was started anew")

    async def report(self, begun: Begun, heard: int) -> Delivery:
        """See `Worker`."""
        delivery: Delivery | None = await self._again(begun, lambda: self._actor.report.remote(begun.path, heard))
        if delivery is None:
            raise WorkerDiedError("it was started anew")
        return delivery

    async def _again(self, begun: Begun, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Ask once more while the network is away: what was not heard is said again, and nothing counts twice.

        A machine that is gone is not waited for: its workers are away until they have a place, maybe never.
        """
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                async with asyncio.timeout(_ANSWERING):
                    return await _answer(ask())
            except TimeoutError as error:
                self._start_anew()
                raise WorkerDiedError(f"it did not answer for {_ANSWERING:.0f} s") from error
            except WorkerAwayError:
                if time.monotonic() > until or not await asyncio.to_thread(_is_there, begun.node):
                    raise
                await asyncio.sleep(_A_MOMENT)

    async def end(self) -> None:
        """See `Worker`; one that takes too long is not waited for."""
        async with asyncio.timeout(_ENDING):
            await _answer(self._actor.end.remote())

    def drain(self) -> None:
        """Have it drain, without waiting for that."""
        self._tell(self._actor.drain)

    def stop(self) -> None:
        """Have it stop, without waiting for that."""
        self._tell(self._actor.stop)

    def kill(self) -> None:
        """End its process for good."""
        import ray

        with suppress(ray.exceptions.RayError):  # such as that Ray itself is gone, and its processes with it
            ray.kill(self._actor, no_restart=True)

    def _tell(self, method: Any) -> None:
        try:
            method.remote()
        except Exception as error:  # Ray raises a bare one if it no longer knows the actor
            raise WorkerDiedError(str(error)) from error

    def _start_anew(self) -> None:
        import ray

        ray.kill(self._actor, no_restart=False)


class Cluster:
    """The machines that Ray has."""

    @property
    def size(self) -> int:
        """How many workers there is room for."""
        import ray

        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def commons(self, path: Path, budget: Budget, spent: Taken, gateways: int, cache: Path | None) -> Commons:
        """What workers have in common, on this machine; see `Commons`. It comes before the first worker."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor: Any = ray.remote(Commons)
        placed = actor.options(num_cpus=0, max_concurrency=_MOST_WAITING, scheduling_strategy=here)
        commons = placed.remote(path, budget, spent, gateways, cache)
        self._clock = StartingClock(commons.__ray_ready__.remote())
        return cast(Commons, RemoteLine(commons))

    def hire(self, order: Order, name: str, line: Commons) -> Hand:
        """A worker, wherever Ray finds a place for it; it is started anew, maybe elsewhere, when it dies."""
        import ray

        actor: Any = ray.remote(WorkerProcess)
        placed = actor.options(num_cpus=1, max_restarts=-1, max_task_retries=0, scheduling_strategy="SPREAD")
        return Hand(placed.remote(name), order, line, self._clock)

    async def left(self, begun: Begun, wanted: Mapping[int, int], prices: Prices) -> Left:
        """What a worker that died has in its file, read where that is.

        Raises:
            StoreError: If it cannot be read.
            WorkerDiedError: If that machine is gone.
        """
        if begun.path.exists():
            return await asyncio.to_thread(left_by, begun.path, wanted, prices)
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(begun.node, soft=False)
        reading: Any = ray.remote(left_by)
        placed = reading.options(num_cpus=0, scheduling_strategy=there, max_retries=0)
        seconds = self._clock.stretched(_READING)
        try:
            async with asyncio.timeout(seconds):
                return await _answer(placed.remote(begun.path, wanted, prices))  # type: ignore[no-any-return]
        except TimeoutError as error:
            raise WorkerAwayError(f"its machine did not answer for {seconds:.0f} s") from error


class RemoteLine:
    """The way to a `Commons`: its methods, from another process.

    Args:
        actor: It.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(_said, self._actor, name)


async def _said(actor: Any, name: str, *values: Any) -> Any:
    try:
        return await _answer(getattr(actor, name).remote(*values))
    except WorkerDiedError as error:
        raise StoreError(f"the process that counts for all workers is gone: {error}") from error


@asynccontextmanager
async def cluster(policy: CallPolicy) -> AsyncIterator[Cluster]:
    """The cluster that a policy names; one of this process's own if it names none, for as long as this lasts.

    Raises:
        RunError: If Ray is not installed, or the cluster cannot be reached.
    """
    try:
        import ray
    except ImportError as error:
        raise RunError(
            "workers: several processes need Ray; install dialoom[ray] (pip install 'dialoom[ray]')", setting="workers"
        ) from error
    is_ours = not ray.is_initialized()
    if is_ours:
        await asyncio.to_thread(_connect, policy)
    try:
        yield Cluster()
    finally:
        if is_ours:
            await asyncio.to_thread(ray.shutdown)


def _connect(policy: CallPolicy) -> None:
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if policy.ray is None:
        room = max(policy.workers or 1, os.cpu_count() or 1)
        options |= {"num_cpus": room, "include_dashboard": False, "object_store_memory": _STORE}
    for left in reversed(range(_STARTS)):
        try:
            with ray_settings():
                ray.init(address=policy.ray or "local", **options)
            return
        except Exception as error:  # Ray raises any
            ray.shutdown()
            if policy.ray is not None or not left:
                raise RunError(f"ray {policy.ray or 'local'!r}: Ray cannot be used: {error}", setting="ray") from error


@contextmanager
def ray_settings() -> Iterator[None]:
    """Have Ray start quietly, and with our settings."""
    added = {name: value for name, value in _RAY_SETTINGS.items() if name not in os.environ}
    talk = logging.getLogger("ray")
    level = talk.level
    os.environ.update(added)
    talk.setLevel(logging.ERROR)
    try:
        yield
    finally:
        talk.setLevel(level)
        for name in added:
            del os.environ[name]


def _is_there(node: str) -> bool:
    import ray

    return any(each["NodeID"] == node and each["Alive"] for each in ray.nodes())


def _node(_worker: Worker) -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


async def _answer(reference: Awaitable[Any]) -> Any:
    from ray.exceptions import (
        ActorUnavailableError,
        RayActorError,
        RaySystemError,
        RayTaskError,
        TaskUnschedulableError,
        WorkerCrashedError,
    )

    try:
        return await reference
    except RayTaskError as error:
        cause = getattr(error, "cause", None)
        raise (cause if isinstance(cause, Exception) else error) from None
    except ActorUnavailableError as error:
        raise WorkerAwayError(str(error)) from error
    except (RayActorError, RaySystemError, TaskUnschedulableError, WorkerCrashedError) as error:
        raise WorkerDiedError(str(error)) from error
