"""Execute notebooks in place and save their output, as `make notebook` does for the one in this folder."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

SECONDS = 600
"""The timeout of a cell."""


def saved(path: Path) -> Any:
    """Return a notebook as stored in its file."""
    return nbformat.read(path, as_version=4)


def executed(path: Path) -> Any:
    """Return a notebook with new outputs, executed in a temporary folder; its file is not changed.

    Raises:
        CellExecutionError: If a cell fails.
    """
    notebook = saved(path)
    with tempfile.TemporaryDirectory(prefix="dialoom-") as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, record_timing=False, resources=resources).execute()
    notebook.metadata.language_info = {"name": "python"}  # without the version of this interpreter
    return notebook


if __name__ == "__main__":
    for each in sys.argv[1:]:
        nbformat.write(executed(Path(each)), each)
