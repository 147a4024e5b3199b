"""Recovering results from worker files after a crash."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from dialoom.errors import Advice
from dialoom.roles.gateway.prices import Prices
from dialoom.runs.store import RunStore, StoreError
from dialoom.runs.store.store import remove

from .messages import Left

PATIENCE = 15.0
"""Seconds to wait for the files of workers that are considered dead but still hold the lock. A worker on this
machine ends at once with the process that started it; one on another machine notices a little later.
"""

_A_MOMENT = 0.1
_AT_ONCE = 20


def folder_of(path: Path) -> Path:
    """Return the folder in which a run's workers on its machine keep their files."""
    return path.with_name(path.name + ".workers")


def left_by(path: Path, wanted: Mapping[int, int], prices: Prices, patience: float = PATIENCE) -> Left:
    """Return a dead worker's results for open leases, and the spend of its calls.

    Args:
        path: The worker's file.
        wanted: The numbers of the open leases by the positions of their scenarios.
        prices: The stated prices of models.
        patience: Seconds to wait for a process that still writes the file.

    Raises:
        StoreError: If the file cannot be read.
    """
    with _opened(path, time.monotonic() + patience) as store:
        return Left(list(store.deals.left(wanted)), store.taken(prices))


def take_leftovers(store: RunStore) -> int:
    """Merge the results in dead workers' files beside a run's file; return the number of scenarios merged.

    Raises:
        StoreError: If a worker still works on the run's scenarios.
    """
    taken = 0
    wanted = store.deals.open()
    folder = folder_of(store.path)
    deadline = time.monotonic() + PATIENCE
    for path in sorted(folder.glob("*.db")):
        try:
            its = _opened(path, deadline)
        except StoreError as error:
            if not _is_held(error):
                raise
            raise StoreError(
                f"{path} is still written by a worker of this run, maybe on another machine; wait until that process "
                "has ended or end it",
                advice=Advice("resume", "then resume the run", {"path": store.path}),
            ) from error
        with its:
            left = its.deals.left(wanted)
            while some := list(islice(left, _AT_ONCE)):
                taken += len(store.deals.fold_now(some))
        remove(path)
    with suppress(OSError):
        folder.rmdir()
    if wanted:
        store.deals.forget_all()
    return taken


def _opened(path: Path, deadline: float) -> RunStore:
    """Open a worker's file once no process holds its lock; raise an error after the deadline by `time.monotonic`."""
    while True:
        try:
            return RunStore(path)
        except StoreError as error:
            if not _is_held(error) or time.monotonic() > deadline:
                raise
            time.sleep(_A_MOMENT)


def _is_held(error: StoreError) -> bool:
    """Return whether a file could not be opened because another process holds its lock."""
    return error.advice is not None and error.advice.action == "resume"
