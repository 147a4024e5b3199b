"""PersonaLens: task-oriented dialogues of simulated users, judged for personalization (see `docs/personalens.md`)."""

from .recipe import PersonaLens
from .scenario import PersonaLensScenario

RECIPE = PersonaLens()

__all__ = ["RECIPE", "PersonaLens", "PersonaLensScenario"]
