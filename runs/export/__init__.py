"""Exports of runs: rows as JSONL or Parquet, or a folder of files; written to a temporary path, moved when complete."""

from .rows import DIALOGUES, Encoding, ExportRequest, Soundness, dialogue, formats, provenance
from .writing import write

__all__ = [
    "DIALOGUES",
    "Encoding",
    "ExportRequest",
    "Soundness",
    "dialogue",
    "formats",
    "provenance",
    "write",
]
