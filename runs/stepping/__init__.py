"""The step debugger: one conversation, one superstep at a time; inspect, edit, rewind, fork, compare, promote."""

from .cases import Case, ReplayResult, case_of, read_case, replay, write_case
from .gateway import NextRequest, SteppingError
from .stepper import Stepper
from .stop import Cost, Stop
from .tree import Difference, diff
from .values import PathError
from .view import Condition, ConditionError, NotBegunError, ReadOnlyStepper

__all__ = [
    "Case",
    "Condition",
    "ConditionError",
    "Cost",
    "Difference",
    "NextRequest",
    "NotBegunError",
    "PathError",
    "ReadOnlyStepper",
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
