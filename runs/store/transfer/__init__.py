"""Transfer of scenarios between run files: packing rows with all rows that they refer to, and unpacking them."""

from __future__ import annotations

from .packing import LENT, Transfer, pack, pack_common
from .unpacking import Unpacker

__all__ = ["LENT", "Transfer", "Unpacker", "pack", "pack_common"]
