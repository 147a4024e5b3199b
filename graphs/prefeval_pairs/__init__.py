"""Generation of new pairs for PrefEval: from topics to files that it reads (see `docs/prefeval-pairs.md`)."""

from .recipe import RECIPE

__all__ = ["RECIPE"]
