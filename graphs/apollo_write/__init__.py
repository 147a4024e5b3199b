"""APOLLO's data, written by models: users, preferences, sessions and queries, checked, and edited by people."""

from .recipe import RECIPE, ApolloWrite
from .scenario import WriteOptions, WriteScenario

__all__ = ["RECIPE", "ApolloWrite", "WriteOptions", "WriteScenario"]
