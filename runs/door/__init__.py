"""The door: what a library user does with runs. `import dialoom` has all of it; the command line is a face of it."""

from .operations import (
    aestimate,
    ajudge,
    aplan,
    aplay,
    aresume,
    aretry,
    areview,
    estimate,
    judge,
    plan,
    play,
    resume,
    retry,
    review,
    step,
    stream,
)
from .resolving import resolve
from .run import Run, describe, open_run, report
from .settings import CallSettings, PlaySettings

__all__ = [
    "CallSettings",
    "PlaySettings",
    "Run",
    "aestimate",
    "ajudge",
    "aplan",
    "aplay",
    "aresume",
    "aretry",
    "areview",
    "describe",
    "estimate",
    "judge",
    "open_run",
    "plan",
    "play",
    "report",
    "resolve",
    "resume",
    "retry",
    "review",
    "step",
    "stream",
]
