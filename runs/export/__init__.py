"""Exports of runs: rows as JSONL or Parquet, or a folder of files. They are written to a temporary path first."""

from .rows import DIALOGUES, Encoding, Exported, ExportRequest, Soundness, dialogue, formats, models_of, prompt_hashes
from .writing import write

__all__ = [
    "DIALOGUES",
    "Encoding",
    "ExportRequest",
    "Exported",
    "Soundness",
    "dialogue",
    "formats",
    "models_of",
    "prompt_hashes",
    "write",
]
