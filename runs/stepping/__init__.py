"""The step debugger: it plays one conversation step by step, to inspect, edit, rewind, fork, compare or promote it."""

from .cases import Case, case_of, read_case, write_case
from .gateway import NextRequest, SteppingError
from .replaying import ReplayResult, replay
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
