"""Understudies of APOLLO: an agent that follows what it has read and understood, and a memory that notes it."""

from . import players  # noqa: F401  (registers them)
