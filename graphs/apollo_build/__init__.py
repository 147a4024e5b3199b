"""APOLLO's data: a source folder of users, sessions, queries and gold calls, made from templates."""

from .recipe import RECIPE, ApolloBuild, BuildOptions, BuildScenario

__all__ = ["RECIPE", "ApolloBuild", "BuildOptions", "BuildScenario"]
