"""Messages between a run's own process and its workers, and recovery of results from workers' files after a crash."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from dialoom.errors import Advice
from dialoom.graphs import Recipe
from dialoom.roles import ModelBinding
from dialoom.roles.gateway.budget import Spend
from dialoom.roles.gateway.model_facts import Prices
from dialoom.runs.control import Event
from dialoom.runs.errors import StoreError
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.store import RunStore
from dialoom.runs.store.store import remove
from dialoom.runs.store.transfer import Transfer


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """The configuration of a worker.

    Attributes:
        file: The content of the worker's run file, without scenarios.
        folder: The folder for this file.
        cwd: The folder to which relative file names in the run refer.
        judging: The set to which the worker's judgements are added; `None` if it plays scenarios.
        is_repeated: Whether only unparsed judgements are repeated.
        models: The models by role.
        recipe: The recipe, if it was passed as an object; by default it is found by the name in the file.
        is_review: Whether the work is a review of the users in the recipe's scenarios.
        policy: The policy for calls; its concurrency is this worker's share of the run's.
        has_cache: Whether replies are shared with other runs.
        ahead: The number of scenarios that are queued for the worker in advance.
    """

    file: bytes
    folder: Path
    cwd: Path
    judging: str | None
    is_repeated: bool
    models: Mapping[str, ModelBinding]
    recipe: Recipe | None
    is_review: bool
    policy: CallPolicy
    has_cache: bool = False
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class WorkerLocation:
    """The location of a worker that has begun.

    Attributes:
        node: The id of its Ray node.
        path: The path of its file on this node.
    """

    node: str
    path: Path


Leftovers: TypeAlias = tuple[list[Transfer], Spend]
"""What a dead worker left in its file: the results of its scenarios, and the spend of its calls."""


@dataclass(slots=True)
class WorkerReport:
    """A worker's report; its content is sent again until it is acknowledged.

    Attributes:
        number: The number of the report's last item.
        transfers: The results of scenarios.
        events: The events.
        is_over: Whether the worker has finished for good, because it was drained or stopped, or because of an error.
        error: The error that ended the worker, if any; it would occur in every other scenario too.
        busy: The seconds in which the worker had a scenario in progress.
        shapes: The reply formats that models have refused; see `Shapes.found`.
    """

    number: int = 0
    transfers: list[Transfer] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    is_over: bool = False
    error: Exception | None = None
    busy: float = 0.0
    shapes: Mapping[str, Sequence[str]] = field(default_factory=dict)


_PR_SET_PDEATHSIG = 1
"""The option of prctl(2) that sets the signal that a process gets when its parent ends."""


def end_with_parent() -> None:
    """Make the system kill this process when its parent ends. This works on Linux only, and does nothing elsewhere."""
    parent = os.getppid()
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:  # the parent ended before the call
        os.kill(os.getpid(), signal.SIGKILL)


LOCK_TIMEOUT_SECONDS = 15.0
"""The seconds to wait for the files of workers that are considered dead but still hold the lock.

A worker on this machine ends at once with the process that started it. A worker on another machine ends a little later.
"""

_POLL_SECONDS = 0.1
_MERGE_BATCH_SIZE = 20


def workers_folder(path: Path) -> Path:
    """Return the folder in which a run's workers on its machine keep their files; the same for all links to the run."""
    real = Path(os.path.realpath(path))
    return real.with_name(real.name + ".workers")


def read_leftovers(
    path: Path, leases: Mapping[int, int], prices: Prices, timeout: float = LOCK_TIMEOUT_SECONDS
) -> Leftovers:
    """Return a dead worker's results for open leases, and the spend of its calls.

    Args:
        path: The worker's file.
        leases: The numbers of the open leases, by the positions of their scenarios.
        prices: The stated prices of models.
        timeout: The seconds to wait for a process that is still writing the file.

    Raises:
        StoreError: If the file cannot be read.
    """
    with _open_when_unlocked(path, time.monotonic() + timeout) as store:
        return list(store.leases.pack_leftovers(leases)), store.spend(prices)


def merge_leftovers(store: RunStore) -> int:
    """Merge the results in dead workers' files beside a run's file; return the number of scenarios merged.

    Raises:
        StoreError: If a worker is still playing scenarios of the run, or a file cannot be read.
    """
    merged = 0
    leases = store.leases.read_open()
    folder = workers_folder(store.path)
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    for path in sorted(folder.glob("*.db")):
        with closing(_read_batches(path, leases, deadline, store.path)) as batches:
            merged += sum(len(store.leases.merge_sync(batch)) for batch in batches)
        remove(path)
    with suppress(OSError):
        folder.rmdir()
    if leases:
        store.leases.delete_all()
    return merged


def _read_batches(
    path: Path, leases: Mapping[int, int], deadline: float, run: Path
) -> Generator[list[Transfer], None, None]:
    """Yield a dead worker's results for open leases. Errors say how to continue the run that leased them."""
    try:
        with _open_when_unlocked(path, deadline) as store:
            left = store.leases.pack_leftovers(leases)
            while batch := list(islice(left, _MERGE_BATCH_SIZE)):
                yield batch
    except StoreError as error:
        if _is_locked(error):
            message = (
                f"{path} is still being written by a worker of this run, maybe on another machine; wait for that "
                "process to end, or stop it"
            )
        else:
            message = (
                f"the calls in the file of a worker of this run cannot be read ({error.message}); repair {path}, or "
                "remove it to have its calls made again"
            )
        raise StoreError(message, advice=Advice("resume", "then resume the run", {"path": run})) from error


def _open_when_unlocked(path: Path, deadline: float) -> RunStore:
    """Open a worker's file once no process holds its lock; raise an error after a deadline (as `time.monotonic`)."""
    while True:
        try:
            return RunStore(path)
        except StoreError as error:
            if not _is_locked(error) or time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)


def _is_locked(error: StoreError) -> bool:
    """Return whether a file could not be opened because another process holds its lock."""
    return error.advice is not None and error.advice.action == "resume"
