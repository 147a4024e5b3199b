"""Execute the notebooks of this folder in place, as `make notebook` does; what they show is saved in them.

What changes from one time to the next is left out of the files: counts of executions, times, warnings about the machine.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

SECONDS = 600
"""That a cell may take."""


def executed(path: Path) -> nbformat.NotebookNode:
    """A notebook with the outputs that come out now, in a folder of its own.

    Raises:
        CellExecutionError: If a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="dialoom-") as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, record_timing=False, resources=resources).execute()
    notebook.metadata.language_info = {"name": "python"}
    return notebook


if __name__ == "__main__":
    for each in sys.argv[1:]:
        nbformat.write(executed(Path(each)), each)
