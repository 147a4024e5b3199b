"""The ALOE benchmark: how well an assistant's answers come to suit a user who reveals themselves bit by bit.

The alignment levels of "Aligning LLMs with Individual Preferences via Interaction" (COLING 2025), in our own words and
code.
"""

from .recipe import RECIPE

__all__ = ["RECIPE"]
