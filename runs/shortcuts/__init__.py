"""How far length, punctuation and words alone separate the chosen from the rejected replies of a preference dataset."""

from .check import WARN_ABOVE, shortcut_table
from .sample import PairSample

__all__ = ["WARN_ABOVE", "PairSample", "shortcut_table"]
