"""APOLLO's data, written by models: users, preferences, sessions and queries, checked, and mended by people."""

from .options import WriteOptions
from .recipe import RECIPE, ApolloWrite
from .scenario import WriteScenario

__all__ = ["RECIPE", "ApolloWrite", "WriteOptions", "WriteScenario"]
