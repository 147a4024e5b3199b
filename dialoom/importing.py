"""Importing large packages quickly. This module is below all layers."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause garbage collection, for an import: it makes no garbage, and looking for some takes a fifth of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # nobody else has frozen anything
                gc.freeze()
                gc.unfreeze()  # what was imported is now in the oldest generation, without having been looked at
            gc.enable()
