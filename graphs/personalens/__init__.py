"""PersonaLens: task-oriented dialogues of simulated users, judged for personalization (see `docs/personalens.md`)."""

from .recipe import RECIPE

__all__ = ["RECIPE"]
