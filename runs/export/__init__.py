"""Exports of runs: rows as JSONL or Parquet, or a folder of files; written to a temporary path, moved when complete."""

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
