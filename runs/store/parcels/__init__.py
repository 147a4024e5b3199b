"""What a run file has of a scenario, packed for another file: so work gets to workers' files and back."""

from .packing import pack, pack_common
from .parcel import LENT, Parcel
from .unpacking import Unpacking

__all__ = ["LENT", "Parcel", "Unpacking", "pack", "pack_common"]
