"""The Python API: everything that `import dialoom` offers for runs; the command line and the studio are built on it."""

from .operations import (
    Run,
    aestimate,
    ajudge,
    aplan,
    aplay,
    aresume,
    aretry,
    areview,
    estimate,
    judge,
    open_run,
    plan,
    play,
    resume,
    retry,
    review,
    step,
    stream,
)
from .resolving import resolve
from .run import describe, report
from .scorecards import ascorecard, open_scorecard, scorecard
from .settings import CallSettings, PlaySettings
from .simulating import asimulate, simulate

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
    "ascorecard",
    "asimulate",
    "describe",
    "estimate",
    "judge",
    "open_run",
    "open_scorecard",
    "plan",
    "play",
    "report",
    "resolve",
    "resume",
    "retry",
    "review",
    "scorecard",
    "simulate",
    "step",
    "stream",
]
