"""Understudies of PrefEval's pairs: a writer, some of whose pairs are faulty on purpose, and those who filter them."""

from . import filters, writer

__all__ = ["filters", "writer"]
