"""APOLLO's data, written by models: users, preferences, sessions and queries, checked, and mended by people."""

from .recipe import RECIPE, ApolloWrite
from .scenario import WriteOptions, WriteScenario

__all__ = ["RECIPE", "ApolloWrite", "WriteOptions", "WriteScenario"]
