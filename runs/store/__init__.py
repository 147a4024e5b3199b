"""A run's file: one SQLite database with everything that happened (see `docs/run-file.md`)."""

from .errors import StoreError
from .runfile import Judging, RunFile, Status
from .store import RunStore, Work

__all__ = ["Judging", "RunFile", "RunStore", "Status", "StoreError", "Work"]
