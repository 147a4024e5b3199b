"""LangGraph's checkpoints in a run's file: values are stored once, a longer list as additions to a stored one."""

from .reading import ReadingSaver
from .saver import Compacted, RunSaver
from .values import RecordedError, UnstorableError

__all__ = ["Compacted", "ReadingSaver", "RecordedError", "RunSaver", "UnstorableError"]
