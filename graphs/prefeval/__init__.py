"""PrefEval: a benchmark of following a preference after much unrelated talk (see `docs/prefeval.md`)."""

from .recipe import PrefEval
from .scenario import PrefEvalScenario

RECIPE = PrefEval()

__all__ = ["RECIPE", "PrefEval", "PrefEvalScenario"]
