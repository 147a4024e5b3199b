"""Transfer of scenarios between run files: packing rows with all rows that they refer to, and unpacking them."""

from __future__ import annotations

from .packing import LENT, Transfer, pack, pack_common
from .unpacking import Unpacking

__all__ = ["LENT", "Transfer", "Unpacking", "pack", "pack_common"]
