"""Generation of people and tasks for PersonaLens, in a folder that it reads (see `docs/personalens-people.md`)."""

from .recipe import RECIPE

__all__ = ["RECIPE"]
