"""Shortcuts in preference datasets: the separation of chosen and rejected replies by length, punctuation and words."""

from .check import WARN_ABOVE, shortcut_table
from .sample import PairSample

__all__ = ["WARN_ABOVE", "PairSample", "shortcut_table"]
