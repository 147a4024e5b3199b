"""The folder that a run is made for, such as a source that another recipe plays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dialoom.graphs.capabilities import WithExports
from dialoom.outputs import OutputError
from dialoom.runs.configuration.recipes import find_recipe, parsed_options
from dialoom.runs.errors import RunError

from .settings import RecipeLike


def made_folder(recipe: RecipeLike, options: Mapping[str, Any] | BaseModel | None, folder: Path) -> str:
    """Return the format of the folder that a run with these options is made for.

    Raises:
        RunError: If there is no such recipe, it takes no such options, or it makes no folder.
        OutputError: If something is there already.
    """
    _, found = find_recipe(recipe)
    format_ = WithExports.of(found).folder_format(parsed_options(found, options))
    if format_ is None:
        raise RunError(f"folder {str(folder)!r}: {found.name} is not made for one; export a format", setting="folder")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder} exists and is no empty folder; the run's folder is to be written there")
    return format_
