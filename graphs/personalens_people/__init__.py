"""Generation of people and tasks for PersonaLens, in a folder that it reads (see `docs/personalens-people.md`)."""

from .recipe import PersonaLensPeople
from .scenario import PersonScenario

RECIPE = PersonaLensPeople()

__all__ = ["RECIPE", "PersonScenario", "PersonaLensPeople"]
