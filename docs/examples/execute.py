"""Execute notebooks in place and save their output, as `make notebook` does for the one in this folder."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

CELL_TIMEOUT_SECONDS = 600


def read_notebook(path: Path) -> Any:
    """Read a notebook from its file."""
    return nbformat.read(path, as_version=4)


def execute_notebook(path: Path) -> Any:
    """Execute a notebook in a temporary folder and return it with its new outputs; its file is not changed.

    Raises:
        CellExecutionError: If a cell fails.
    """
    notebook = read_notebook(path)
    with tempfile.TemporaryDirectory(prefix="dialoom-") as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=CELL_TIMEOUT_SECONDS, record_timing=False, resources=resources).execute()
    notebook.metadata.language_info = {"name": "python"}  # without the version of this interpreter
    return notebook


if __name__ == "__main__":
    for path in sys.argv[1:]:
        nbformat.write(execute_notebook(Path(path)), path)
