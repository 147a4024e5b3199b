"""Understudies of APOLLO: an agent that follows the preferences that it recognizes, and a memory that notes them."""

from . import players  # noqa: F401  (registers them)
