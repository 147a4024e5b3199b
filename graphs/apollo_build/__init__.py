"""APOLLO's data: a source folder of users, sessions, queries and gold calls, made of templates."""

from .options import BuildOptions
from .recipe import RECIPE, ApolloBuild
from .scenario import BuildScenario

__all__ = ["RECIPE", "ApolloBuild", "BuildOptions", "BuildScenario"]
