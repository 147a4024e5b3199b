"""LangGraph's checkpoints in a run's file: every value stored once, lists by their additions, forks at no cost."""

from .reading import ReadingSaver
from .saver import Compacted, RunSaver
from .values import RecordedError, UnstorableError

__all__ = ["Compacted", "ReadingSaver", "RecordedError", "RunSaver", "UnstorableError"]
