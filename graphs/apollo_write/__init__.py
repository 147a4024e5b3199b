"""APOLLO's data, written by models: users, preferences, sessions and queries, checked, and edited by people."""

from .recipe import RECIPE

__all__ = ["RECIPE"]
