"""Taking a run away: rows as JSONL or Parquet, or a folder of files; written beside their place, moved when whole."""

from .rows import DIALOGUES, Encoding, ExportRequest, Soundness, dialogue, formats, provenance
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
