"""Exports of runs: rows as JSONL or Parquet, or a folder of files. They are written to a temporary path first."""

from .rows import (
    DIALOGUES,
    Encoding,
    ExportRequest,
    ExportResult,
    Soundness,
    dialogue_row,
    formats,
    prompt_hashes,
    resolve_models,
)
from .writing import write_export

__all__ = [
    "DIALOGUES",
    "Encoding",
    "ExportRequest",
    "ExportResult",
    "Soundness",
    "dialogue_row",
    "formats",
    "prompt_hashes",
    "resolve_models",
    "write_export",
]
