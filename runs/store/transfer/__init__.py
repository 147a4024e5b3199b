"""Transfer of scenarios between run files: packing rows with all that they refer to, and unpacking them."""

from __future__ import annotations

from .packing import LENT, Parcel, pack, pack_common
from .unpacking import Unpacking

__all__ = ["LENT", "Parcel", "Unpacking", "pack", "pack_common"]
