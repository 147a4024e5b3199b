"""LangGraph's checkpoints in a run's file: every value once, lists by their growth, forks for nothing."""

from .reading import ReadingSaver
from .saver import Compacted, RunSaver
from .values import RecordedError, UnstorableError

__all__ = ["Compacted", "ReadingSaver", "RecordedError", "RunSaver", "UnstorableError"]
