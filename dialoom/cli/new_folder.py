"""New folders with files made from the shipped templates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from dialoom.errors import RunError


def check_folder_is_new(folder: Path) -> None:
    """Check that a folder is missing or empty.

    Raises:
        RunError: If it is neither.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder} exists already; give another folder")


def fill_template(template: str, words: Mapping[str, str]) -> str:
    """Return the text of a shipped template with its placeholders, such as `@NAME@`, replaced by these words."""
    text = resources.files(__package__).joinpath("templates", f"{template}.txt").read_text(encoding="utf-8")
    return re.sub("@[A-Z]+@", lambda found: words[found[0]], text)
