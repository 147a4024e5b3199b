"""Generation of new pairs for PrefEval: from topics to files that it reads (see `docs/prefeval-pairs.md`)."""

from .recipe import PrefEvalPairs
from .scenario import PairsScenario

RECIPE = PrefEvalPairs()

__all__ = ["RECIPE", "PairsScenario", "PrefEvalPairs"]
