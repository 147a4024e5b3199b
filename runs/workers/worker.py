"""A worker: an engine with its own run file in its own process. It is used as a Ray actor."""

from __future__ import annotations

import asyncio
import os
import pickle
import secrets
import tempfile
import time
from collections import deque
from contextlib import ExitStack, suppress
from pathlib import Path

from dialoom.graphs import Recipe, WithJudging
from dialoom.graphs.judge import Graph
from dialoom.graphs.recipe import Review
from dialoom.roles.gateway.litellm_backend import tune_process
from dialoom.roles.gateway.wire import RejectedForms
from dialoom.runs.configuration.recipe_checks import build_graph
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.control import Event, ScenarioDone, ScenarioFailed
from dialoom.runs.engine import Engine
from dialoom.runs.errors import RunError
from dialoom.runs.gateway_setup import build_cast, open_gateway
from dialoom.runs.store import RunStore, Work
from dialoom.runs.store.connections import create_atomically
from dialoom.runs.store.store import remove
from dialoom.runs.store.transfer import Transfer

from .messages import WorkerConfig, WorkerReport
from .shared_state import SharedGateway, SharedReplies, SharedState

_MIN_REPORT_INTERVAL_SECONDS, _GATHER_SECONDS = 0.02, 0.5
"""The minimum seconds between two reports, and the maximum wait for further results while the worker has work.

Scenarios that finish at almost the same time are therefore reported together.
"""

_HEARTBEAT_SECONDS = 30.0
"""The seconds after which an empty report is sent, to show that the worker is alive."""


class Worker:
    """A worker that carries out leased scenarios, and returns each of them when it has finished.

    Args:
        name: The prefix for the names of its files.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue = _LeasedWork()
        self._path: Path | None = None
        self._lease_ids: set[int] = set()
        self._threads: dict[int, str] = {}
        self._outbox: deque[tuple[int, Transfer | Event]] = deque()
        self._last_number = 0
        self._has_news = asyncio.Event()
        self._is_report_due = asyncio.Event()
        self._is_over = False
        self._error: Exception | None = None
        self._past_busy_seconds = 0.0
        self._busy_since: float | None = None
        self._opened = ExitStack()
        self._engine_task: asyncio.Task[None] | None = None
        self._engine: Engine | None = None

    async def begin(self, config: WorkerConfig, shared_state: SharedState) -> Path:
        """Create the worker's file, and prepare for scenarios.

        Args:
            config: The worker's configuration.
            shared_state: The state shared with the other workers.

        Returns:
            The file's path.
        """
        self._config = config
        if config.cwd.is_dir():
            os.chdir(config.cwd)
        tune_process()
        path = _ensure_folder(config.folder) / f"{self._name}-{secrets.token_hex(4)}.db"
        create_atomically(path, config.file)
        store = RunStore(path, recipe=config.recipe, trust=Trust(everything=True))
        self._store = self._opened.enter_context(store)
        recipe: Recipe = Review(store.recipe) if config.is_review else store.recipe
        shared_gateway = SharedGateway(shared_state, path.stem, store)
        replies = SharedReplies(shared_state) if config.has_cache else None
        self._shapes = RejectedForms(store.shapes)
        opening = open_gateway(
            store, config.policy, config.policy.settings["patience"], shared_gateway, replies, self._shapes
        )
        gateway = self._opened.enter_context(opening)
        models, users = config.models, store.config.users if config.judging is None else ()
        await asyncio.to_thread(gateway.prepare, [*models.values(), *users])
        self._engine = Engine(
            store,
            recipe,
            self._build_graph(recipe),
            build_cast(store, recipe, models, gateway),
            config.policy.settings["concurrency"],
            self._emit,
            drain_calls=gateway.drain,
        )
        gateway.listen(self._engine.on_provider_event)
        self._engine_task = asyncio.create_task(self._run_engine(self._engine))
        self._listener_task = asyncio.create_task(shared_gateway.process_notices())
        self._path = path
        return path

    async def lease(self, path: Path, transfers: list[Transfer]) -> bool:
        """Accept leased scenarios, possibly sent again; return false if the call was meant for an earlier process.

        Args:
            path: The file that the addressed incarnation of the worker created. After a restart, the worker has another
                file, or none yet.
            transfers: The scenarios.
        """
        if path != self._path:
            return False
        new = [transfer for transfer in transfers if transfer.lease not in self._lease_ids]
        self._lease_ids.update(transfer.lease for transfer in new)
        await self._store.leases.receive(new)
        for transfer in new:
            assert transfer.position is not None
            self._threads[transfer.position] = transfer.thread
            self._queue.put(self._load_work(transfer.position))
        if self._busy_since is None:
            self._busy_since = time.monotonic()
        return True

    async def report(self, path: Path, received: int) -> WorkerReport | None:
        """Wait until there are results or events, and return them.

        Args:
            path: The file, as for `lease`; `None` is returned if the call is for another incarnation.
            received: The number of the last report that was received, whose content is not sent again.
        """
        if path != self._path:
            return None
        with suppress(TimeoutError):
            await asyncio.wait_for(self._has_news.wait(), _HEARTBEAT_SECONDS)
        await asyncio.sleep(_MIN_REPORT_INTERVAL_SECONDS)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_report_due.wait(), _GATHER_SECONDS)
        while self._outbox and self._outbox[0][0] <= received:
            self._outbox.popleft()
        entries = list(self._outbox)
        if not self._is_over:
            self._has_news.clear()
            self._is_report_due.clear()
        return WorkerReport(
            number=entries[-1][0] if entries else received,
            transfers=[each for _, each in entries if isinstance(each, Transfer)],
            events=[each for _, each in entries if not isinstance(each, Transfer)],
            is_over=self._is_over,
            error=self._error,
            busy=self._busy_seconds(),
            shapes=self._shapes.by_model,
        )

    async def drain(self) -> None:
        """Stop each conversation at its next checkpoint, return everything, and finish."""
        self._queue.close()
        if self._engine is not None:
            self._engine.drain()

    async def stop(self) -> None:
        """Cancel the calls in flight, return what was committed, and finish."""
        self._queue.close()
        if self._engine is not None:
            self._engine.stop()

    async def end(self) -> None:
        """Delete the worker's file after all results were received."""
        self._queue.close()
        if self._engine_task is not None:
            await self._engine_task
            self._listener_task.cancel()
        self._opened.close()
        if self._path is not None:
            remove(self._path)

    def _build_graph(self, recipe: Recipe) -> Graph:
        if self._config.judging is None:
            return build_graph(recipe, self._store.config.options)
        graph = WithJudging.of(recipe).judging()
        assert graph is not None, "checked before any worker was started"
        return graph

    def _load_work(self, position: int) -> Work:
        queue, recipe, judging = self._store.queue, self._store.recipe, self._config.judging
        only = frozenset((position,))
        if judging is None:
            return next(queue.pending(recipe, only))
        return next((queue.to_rejudge if self._config.is_repeated else queue.to_judge)(recipe, judging, only))

    async def _run_engine(self, engine: Engine) -> None:
        try:
            await engine.run(self._queue, resuming=True)
        except Exception as error:
            self._error = _make_picklable(error)
        for position in list(self._threads):  # these scenarios have not finished on this worker
            self._return_scenario(position)
        self._is_over = True
        self._has_news.set()
        self._is_report_due.set()

    def _emit(self, event: Event) -> None:
        if isinstance(event, ScenarioDone | ScenarioFailed):
            self._return_scenario(event.number - 1)
        self._append_to_outbox(event)

    def _return_scenario(self, position: int) -> None:
        self._append_to_outbox(self._store.leases.pack_result(position, self._threads.pop(position)))
        if not self._threads:
            self._past_busy_seconds = self._busy_seconds()
            self._busy_since = None
        if len(self._threads) <= self._config.policy.settings["concurrency"] + self._config.ahead // 2:
            self._is_report_due.set()

    def _busy_seconds(self) -> float:
        return self._past_busy_seconds + (0.0 if self._busy_since is None else time.monotonic() - self._busy_since)

    def _append_to_outbox(self, item: Transfer | Event) -> None:
        self._last_number += 1
        self._outbox.append((self._last_number, item))
        self._has_news.set()


class _LeasedWork:
    """The queue of work leased to this worker. A last entry, `None`, marks the end for all who wait."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Work | None] = asyncio.Queue()
        self.put = self._queue.put_nowait

    def close(self) -> None:
        """Close the queue: no more work will be added."""
        self.put(None)

    async def take(self) -> Work | None:
        """Wait for the next piece of work and return it; return `None` after the queue was closed."""
        if (work := await self._queue.get()) is None:
            self.put(None)
        return work

    def find_obstacle(self, work: Work) -> None:
        """Return `None`, because the run's own process leases only work that can be carried out."""

    def mark_ended(self, work: Work) -> None:
        """Do nothing, because the run's own process leases the next conversation of a sequence."""


def _ensure_folder(configured: Path) -> Path:
    """Return the folder for the worker's file: the configured one, or a temporary one if that cannot be created."""
    try:
        configured.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="dialoom-"))
    return configured


def _make_picklable(error: Exception) -> Exception:
    """Return an error that can be pickled for another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RunError(f"{type(error).__name__}: {error}")
    return error
