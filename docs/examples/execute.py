"""Execute notebooks in place, as `make notebook` does for the one in this folder; what they show is saved in them."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

SECONDS = 600
"""That a cell may take."""


def saved(path: Path) -> Any:
    """A notebook as it stands in its file."""
    return nbformat.read(path, as_version=4)


def executed(path: Path) -> Any:
    """A notebook with the outputs that come out now, in a folder of its own; its file is left alone.

    Raises:
        CellExecutionError: If a cell fails.
    """
    notebook = saved(path)
    with tempfile.TemporaryDirectory(prefix="dialoom-") as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, record_timing=False, resources=resources).execute()
    notebook.metadata.language_info = {"name": "python"}  # without the version of the one who executed it
    return notebook


if __name__ == "__main__":
    for each in sys.argv[1:]:
        nbformat.write(executed(Path(each)), each)
