"""PrefEval: a benchmark of following a preference after much unrelated talk (see `docs/prefeval.md`)."""

from .recipe import RECIPE

__all__ = ["RECIPE"]
