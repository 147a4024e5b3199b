"""The Ray cluster of workers. Only this module uses Ray."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from dialoom.roles.gateway.budget import Spend
from dialoom.roles.gateway.model_facts import Prices
from dialoom.runs.errors import RunError, StoreError
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.store.transfer import Transfer
from dialoom.settings import Budget

from .messages import Leftovers, WorkerConfig, WorkerLocation, WorkerReport, end_with_parent, read_leftovers
from .shared_state import SharedState
from .worker import Worker

_OBJECT_STORE_BYTES = 200 * 2**20
"""The size in bytes of Ray's object store on this machine, through which scenarios and results are transferred."""

_MAX_START_ATTEMPTS = 3
"""The number of attempts to start Ray on this machine, as Ray's own timeouts are too short for a busy machine."""

_MAX_WAITING_CALLS = 100_000
"""The maximum number of workers' calls that may wait in the shared state at the same time."""

_UNREACHABLE_TIMEOUT_SECONDS, _RETRY_DELAY_SECONDS = 30.0, 0.5
"""The seconds for which calls to an unreachable worker are retried, and the seconds between two attempts."""

_ANSWER_TIMEOUT_SECONDS, _END_TIMEOUT_SECONDS = 240.0, 20.0
"""The seconds that a worker may take to answer a call, and to end."""

_PROCESS_START_TIMEOUT_SECONDS = 1800.0
"""The seconds after which Ray is considered broken if it has not started a single process."""

_WORKER_START_TIMEOUT_SECONDS, _READ_TIMEOUT_SECONDS, _START_TIME_FACTOR = 180.0, 60.0, 10.0
"""Timeouts in seconds: for the start of a worker, counted from the last start of any worker, and for reading the file
of a dead worker.

On a slow machine, both are extended to `_START_TIME_FACTOR` times the time that the start of a Ray process took.
"""

_RAY_SETTINGS = {
    "RAY_ENABLE_AUTO_CONNECT": "0",  # read on import; else a late call would connect to any cluster, or start one
    # Ray must not report usage data, and must not replace the signal handlers of this process.
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",
    # Ray's default niceness of 15 leaves its workers almost no processor time while another program uses all
    # processors.
    "RAY_worker_niceness": "0",
    # By default, Ray kills and restarts a worker that does not start within 60 s, and an agent that does not within
    # 30 s. On a slow machine, each restart takes as long and is killed, too.
    "RAY_worker_register_timeout_seconds": "1800",
    "RAY_agent_register_timeout_ms": "1800000",
    "RAY_gcs_server_port_wait_time_s": "600",
}
"""The environment variables that are set while Ray is imported and started, unless the user has set them."""


class WorkerDiedError(Exception):
    """The error for a worker whose process has died; Ray restarts it."""


class WorkerUnreachableError(WorkerDiedError):
    """The error for a worker that cannot be reached; its process may still run."""


class WorkerLostError(WorkerDiedError):
    """The error for a worker that was not placed on a machine or started in time; the run continues without it."""


class WorkerProcess(Worker):
    """A worker in a Ray process.

    It ends together with the process that started it, which is Ray's process on this machine. Ray's process in turn
    ends with the run's own process, if the latter started Ray. Otherwise a worker would notice only after some time
    that Ray has ended, and would keep its file locked until then.

    Args:
        name: The prefix for the names of its files.
    """

    def __init__(self, name: str) -> None:
        end_with_parent()
        super().__init__(name)


class StartupClock:
    """A clock that measures how long a process takes to start on this machine, and records when the last worker began.

    The timeouts for starting workers are scaled by this, because on a busy machine any fixed number of seconds is too
    short.

    Args:
        reference: A Ray object that is ready when a certain Ray process has started. The process needs no free CPU, so
            only a slow machine can delay it.
    """

    def __init__(self, reference: Awaitable[Any]) -> None:
        self._created_at = self._last_start = time.monotonic()
        self._start_seconds: float | None = None
        self._reference = asyncio.ensure_future(reference)
        self._reference.add_done_callback(self._record_process_start)

    def record_worker_start(self) -> None:
        """Record that a worker has begun."""
        self._last_start = time.monotonic()

    def extend_timeout(self, seconds: float) -> float:
        """Return a timeout in seconds, which is extended if starting a process takes long on this machine."""
        return max(seconds, _START_TIME_FACTOR * (self._start_seconds or 0.0))

    async def wait_for_timeout(self) -> str:
        """Wait until the time for a worker's start is used up, and return the reason why it did not start."""
        started = time.monotonic()
        await asyncio.wait([self._reference], timeout=self._created_at + _PROCESS_START_TIMEOUT_SECONDS - started)
        if self._start_seconds is None:
            return f"Ray started no process within {_PROCESS_START_TIMEOUT_SECONDS:.0f} s"
        while True:
            bound = self.extend_timeout(_WORKER_START_TIMEOUT_SECONDS)
            left = max(started, self._last_start) + bound - time.monotonic()
            if left <= 0:
                return f"no machine had room for it, or it did not start within {bound:.0f} s"
            await asyncio.sleep(left)

    def _record_process_start(self, reference: asyncio.Future[Any]) -> None:
        if not reference.cancelled() and reference.exception() is None:
            self._last_start = time.monotonic()
            self._start_seconds = self._last_start - self._created_at


class WorkerHandle:
    """A handle for a remote worker. Its methods raise `WorkerDiedError` if the worker dies during the call."""

    def __init__(self, actor: Any, config: WorkerConfig, shared_state: SharedState, clock: StartupClock) -> None:
        self._actor = actor
        self._begin_arguments = (config, shared_state)
        self._clock = clock

    async def begin(self) -> WorkerLocation:
        """Make the worker create its file, and return the file's location.

        Raises:
            WorkerLostError: If this takes too long. The method must not be called again, because the worker might begin
                twice.
            WorkerDiedError: If the worker died during the call, or has not started yet.
        """
        beginning = asyncio.ensure_future(self._begin())
        timing_out = asyncio.ensure_future(self._clock.wait_for_timeout())
        try:
            await asyncio.wait([beginning, timing_out], return_when=asyncio.FIRST_COMPLETED)
            if not beginning.done():
                self.kill()
                raise WorkerLostError(timing_out.result())
            location = beginning.result()
        finally:
            beginning.cancel()
            timing_out.cancel()
        self._clock.record_worker_start()
        return location

    async def _begin(self) -> WorkerLocation:
        path = await _await_answer(self._actor.begin.remote(*self._begin_arguments))
        return WorkerLocation(await _await_answer(self._actor.__ray_call__.remote(_get_node_id)), path)

    async def lease(self, location: WorkerLocation, transfers: list[Transfer]) -> None:
        """Lease scenarios to the worker; see `Worker.lease`."""
        await self._call_with_retries(location, lambda: self._actor.lease.remote(location.path, transfers))

    async def report(self, location: WorkerLocation, received: int) -> WorkerReport:
        """Return the worker's next report; see `Worker.report`."""
        return cast(
            WorkerReport,
            await self._call_with_retries(location, lambda: self._actor.report.remote(location.path, received)),
        )

    async def _call_with_retries(self, location: WorkerLocation, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Make a call, and repeat it while the network is down. Lost reports are sent again, but counted only once.

        The call is not repeated if the machine is gone: its workers are unavailable until Ray places them again, if
        ever. A false answer comes from a worker that was restarted.
        """
        deadline = time.monotonic() + _UNREACHABLE_TIMEOUT_SECONDS
        while True:
            try:
                if not (answer := await asyncio.wait_for(_await_answer(ask()), _ANSWER_TIMEOUT_SECONDS)):
                    raise WorkerDiedError("it was restarted")
                return answer
            except TimeoutError as error:
                self.kill(is_restarted=True)
                raise WorkerDiedError(f"it did not answer for {_ANSWER_TIMEOUT_SECONDS:.0f} s") from error
            except WorkerUnreachableError:
                if time.monotonic() > deadline or not await asyncio.to_thread(_is_alive, location.node):
                    raise
                await asyncio.sleep(_RETRY_DELAY_SECONDS)

    async def end(self) -> None:
        """End the worker; see `Worker.end`. If this takes too long, return without waiting further."""
        await asyncio.wait_for(_await_answer(self._actor.end.remote()), _END_TIMEOUT_SECONDS)

    def drain(self) -> None:
        """Ask the worker to drain, without waiting for it."""
        self._send(self._actor.drain)

    def stop(self) -> None:
        """Ask the worker to stop, without waiting for it."""
        self._send(self._actor.stop)

    def kill(self, is_restarted: bool = False) -> None:
        """Kill the worker's process."""
        import ray

        with suppress(ray.exceptions.RayError):  # for example because Ray has ended with all of its processes
            ray.kill(self._actor, no_restart=not is_restarted)

    def _send(self, method: Any) -> None:
        try:
            method.remote()
        except Exception as error:  # Ray raises a plain exception if it no longer knows the actor
            raise WorkerDiedError(str(error)) from error


class Cluster:
    """The machines of a Ray cluster."""

    @property
    def size(self) -> int:
        """The number of workers that the machines have room for."""
        import ray

        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def start_shared_state(
        self, path: Path, budget: Budget, spent: Spend, gateways: int, cache: Path | None
    ) -> SharedState:
        """Start the shared state of the workers on this machine, before the first worker; see `SharedState`."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor: Any = ray.remote(SharedState)
        placed = actor.options(num_cpus=0, max_concurrency=_MAX_WAITING_CALLS, scheduling_strategy=here)
        shared = placed.remote(path, budget, spent, gateways, cache)
        self._clock = StartupClock(shared.__ray_ready__.remote())
        return cast(SharedState, RemoteSharedState(shared))

    def start_worker(self, config: WorkerConfig, name: str, shared_state: SharedState) -> WorkerHandle:
        """Start a worker on any machine that has room. When it dies, Ray restarts it, possibly on another machine."""
        import ray

        actor: Any = ray.remote(WorkerProcess)
        placed = actor.options(num_cpus=1, max_restarts=-1, max_task_retries=0, scheduling_strategy="SPREAD")
        return WorkerHandle(placed.remote(name), config, shared_state, self._clock)

    async def read_leftovers(self, location: WorkerLocation, leases: Mapping[int, int], prices: Prices) -> Leftovers:
        """Return the results that a dead worker left in its file, which is read on the machine where it is.

        Raises:
            StoreError: If the file cannot be read.
            WorkerDiedError: If the machine is gone.
        """
        if location.path.exists():
            return await asyncio.to_thread(read_leftovers, location.path, leases, prices)
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(location.node, soft=False)
        reading: Any = ray.remote(read_leftovers)
        placed = reading.options(num_cpus=0, scheduling_strategy=there, max_retries=0)
        seconds = self._clock.extend_timeout(_READ_TIMEOUT_SECONDS)
        try:
            return cast(
                Leftovers, await asyncio.wait_for(_await_answer(placed.remote(location.path, leases, prices)), seconds)
            )
        except TimeoutError as error:
            raise WorkerUnreachableError(f"its machine did not answer for {seconds:.0f} s") from error


class RemoteSharedState:
    """A worker's proxy for a `SharedState` in another process.

    Args:
        actor: The Ray actor.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(_call_actor, self._actor, name)


async def _call_actor(actor: Any, name: str, *values: Any) -> Any:
    try:
        return await _await_answer(getattr(actor, name).remote(*values))
    except WorkerDiedError as error:
        raise StoreError(f"the process with the workers' shared state has ended: {error}") from error


def check_ray() -> None:
    """Check that Ray is installed, without importing it.

    Raises:
        RunError: If Ray is not installed.
    """
    if importlib.util.find_spec("ray") is None:
        raise RunError("workers: several processes need Ray: pip install 'dialoom[ray]'", setting="workers")


@asynccontextmanager
async def open_cluster(policy: CallPolicy) -> AsyncIterator[Cluster]:
    """Connect to the cluster that a policy specifies; without one, start a local cluster for the duration of the block.

    Raises:
        RunError: If Ray is not installed, or the cluster cannot be reached.
    """
    check_ray()
    with ray_settings():
        import ray

    owns_ray = not ray.is_initialized()
    if owns_ray:
        await asyncio.to_thread(_connect, policy)
    try:
        yield Cluster()
    finally:
        if owns_ray:
            await asyncio.to_thread(ray.shutdown)


def _connect(policy: CallPolicy) -> None:
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if policy.settings["ray"] is None:
        room = max(policy.settings["workers"] or 1, os.cpu_count() or 1)
        options |= {"num_cpus": room, "include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    for attempts_left in reversed(range(_MAX_START_ATTEMPTS)):
        try:
            with ray_settings():
                ray.init(address=policy.settings["ray"] or "local", **options)
            return
        except Exception as error:  # Ray raises exceptions of any type
            ray.shutdown()
            if policy.settings["ray"] is not None or not attempts_left:
                raise RunError(
                    f"ray {policy.settings['ray'] or 'local'!r}: Ray cannot be used: {error}", setting="ray"
                ) from error


@contextmanager
def ray_settings() -> Iterator[None]:
    """Apply settings for Ray's import and start, such as less log output, for the duration of the block."""
    added = {name: value for name, value in _RAY_SETTINGS.items() if name not in os.environ}
    logger = logging.getLogger("ray")
    level = logger.level
    os.environ.update(added)
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
        for name in added:
            del os.environ[name]


def _is_alive(node: str) -> bool:
    import ray

    return any(each["NodeID"] == node and each["Alive"] for each in ray.nodes())


def _get_node_id(_worker: Worker) -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


async def _await_answer(reference: Awaitable[Any]) -> Any:
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
        raise WorkerUnreachableError(str(error)) from error
    except (RayActorError, RaySystemError, TaskUnschedulableError, WorkerCrashedError) as error:
        raise WorkerDiedError(str(error)) from error
