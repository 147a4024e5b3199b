"""APOLLO: whether an agent with tools follows what its user told an assistant long ago (see `docs/apollo.md`)."""

from .recipe import Apollo
from .scenario import ApolloScenario

RECIPE = Apollo()

__all__ = ["RECIPE", "Apollo", "ApolloScenario"]
