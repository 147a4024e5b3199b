"""APOLLO: a benchmark of agents with tools that should follow a preference stated long ago (see `docs/apollo.md`)."""

from .recipe import RECIPE

__all__ = ["RECIPE"]
