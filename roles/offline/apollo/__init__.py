"""Understudies of APOLLO: an agent that follows what it has read and understood, and a memory that notes it."""

from . import agent, judge, memory

__all__ = ["agent", "judge", "memory"]
