"""The step debugger: one conversation, one superstep at a time; inspect, edit, rewind, fork, compare, promote."""

from .cases import Case, case_of, read_case, write_case
from .gateway import NextRequest, SteppingError
from .navigation import Looking, NotBegunError
from .replaying import ReplayResult, replay
from .stepper import Stepper
from .stop import Cost, Stop
from .tree import Difference, diff
from .values import PathError
from .view import Condition, ConditionError

__all__ = [
    "Case",
    "Condition",
    "ConditionError",
    "Cost",
    "Difference",
    "Looking",
    "NextRequest",
    "NotBegunError",
    "PathError",
    "ReplayResult",
    "Stepper",
    "SteppingError",
    "Stop",
    "case_of",
    "diff",
    "read_case",
    "replay",
    "write_case",
]
