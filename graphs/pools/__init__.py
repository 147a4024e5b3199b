"""Persona pools: texts that a model invents, kept only if unlike all that was kept before (see `docs/personas.md`)."""

from .recipe import PersonaPool
from .scenario import PoolScenario

RECIPE = PersonaPool()

__all__ = ["RECIPE", "PersonaPool", "PoolScenario"]
