"""APOLLO: a benchmark of agents with tools that should follow a preference stated long ago (see `docs/apollo.md`)."""

from .recipe import Apollo
from .scenario import ApolloScenario

RECIPE = Apollo()

__all__ = ["RECIPE", "Apollo", "ApolloScenario"]
