"""Persona pools: texts written by a model, kept only if unlike all earlier ones (see `docs/personas.md`)."""

from .recipe import PersonaPool
from .scenario import PoolScenario

RECIPE = PersonaPool()

__all__ = ["RECIPE", "PersonaPool", "PoolScenario"]
