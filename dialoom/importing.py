"""Importing large packages quickly. This module is below all layers."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause garbage collection during an import: it would free nothing, and would take a fifth of the import's time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # only if nothing else has been frozen
                gc.freeze()
                gc.unfreeze()  # the imported objects are now in the oldest generation, without a scan
            gc.enable()
