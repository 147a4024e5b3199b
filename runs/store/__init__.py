"""A run's file: one SQLite database with everything that happened (see `docs/store.md`)."""

from .errors import StoreError
from .runfile import Judging, RunFile
from .status import Status, Usage
from .store import RunStore, Work

__all__ = ["Judging", "RunFile", "RunStore", "Status", "StoreError", "Usage", "Work"]
