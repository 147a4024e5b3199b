"""ALOE: preference trees of users who reveal themselves gradually.

The system of "Aligning LLMs with Individual Preferences via Interaction" (COLING 2025), in our own words and code.
"""

from .recipe import RECIPE

__all__ = ["RECIPE"]
