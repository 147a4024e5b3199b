"""Taking a run away: rows as JSONL or Parquet, or a folder of files; written beside their place, moved when whole."""

from .request import DIALOGUES, Encoding, ExportRequest, Soundness, formats
from .rows import dialogue, provenance
from .writing import export, write

__all__ = [
    "DIALOGUES",
    "Encoding",
    "ExportRequest",
    "Soundness",
    "dialogue",
    "export",
    "formats",
    "provenance",
    "write",
]
