"""The step debugger: one conversation, one superstep at a time; look, edit, rewind, fork, compare, promote."""

from .cases import Case, case_of, read_case, write_case
from .conditions import Condition, ConditionError
from .differences import Difference, diff
from .gateway import Asked, SteppingError
from .paths import PathError
from .replaying import Replayed, replay
from .session import Session
from .stop import Cost, Stop

__all__ = [
    "Asked",
    "Case",
    "Condition",
    "ConditionError",
    "Cost",
    "Difference",
    "PathError",
    "Replayed",
    "Session",
    "SteppingError",
    "Stop",
    "case_of",
    "diff",
    "read_case",
    "replay",
    "write_case",
]
