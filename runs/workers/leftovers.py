"""What workers' files hold that the run's file does not have, after a worker or the run's own process was killed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from dialoom.runs.store import RunStore, StoreError
from dialoom.runs.store.parcels import Parcel
from dialoom.runs.store.store import remove

PATIENCE = 15.0
"""Seconds until the file of a worker that was taken for dead is taken for lost: it may be writing still."""

_A_MOMENT = 0.1
_AT_ONCE = 20


def folder_of(path: Path) -> Path:
    """Where the workers of a run that are on its machine keep their files."""
    return path.with_name(path.name + ".workers")


def read_left(path: Path, wanted: Mapping[int, int], patience: float = PATIENCE) -> Iterator[Parcel]:
    """What a worker's file has of deals that are waited for.

    Args:
        path: The file.
        wanted: The deals' numbers by the places of their scenarios.
        patience: Seconds to wait for somebody who still writes it.

    Raises:
        StoreError: If it cannot be read.
    """
    with _opened(path, patience) as store:
        yield from store.deals.left(wanted)


def take_leftovers(store: RunStore) -> int:
    """Take what dead workers have left beside a run's file; returns how many scenarios got further by it.

    Raises:
        StoreError: If somebody still works on the run's scenarios.
    """
    taken = 0
    wanted = store.deals.open()
    folder = folder_of(store.path)
    for path in sorted(folder.glob("*.db")):
        left = read_left(path, wanted)
        while some := list(islice(left, _AT_ONCE)):
            taken += len(store.deals.fold_now(some))
        remove(path)
    with suppress(OSError):
        folder.rmdir()
    if wanted:
        store.deals.forget_all()
    return taken


def _opened(path: Path, patience: float) -> RunStore:
    until = time.monotonic() + patience
    while True:
        try:
            return RunStore(path)
        except StoreError as error:
            is_taken = error.advice is not None and error.advice.action == "resume"
            if not is_taken or time.monotonic() > until:
                raise
            time.sleep(_A_MOMENT)
