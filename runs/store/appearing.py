"""A run's file appears whole or not at all: whoever is killed while it is made leaves nothing that looks like a run."""

from __future__ import annotations

import os
from pathlib import Path

from dialoom.errors import Advice
from dialoom.outputs import partial_file

from .errors import StoreError


def appear(path: Path, content: bytes) -> None:
    """Make a new file with this content, in one step as others see it.

    Args:
        path: The file.
        content: All of it.

    Raises:
        StoreError: If there is something at the path already, it is none for a file, or the folder takes none.
        OSError: If there is no room for it.
    """
    if str(path) == ":memory:" or str(path).startswith("file:"):
        raise StoreError(f"path {str(path)!r} is SQLite's word for something else; give a file's path", setting="path")
    if os.path.lexists(path):
        raise _exists(path)
    try:
        _appear(path, content)
    except FileExistsError as error:
        raise _exists(path) from error
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise StoreError(f"{path} cannot be made: {error.strerror}") from error


def _appear(path: Path, content: bytes) -> None:
    """By way of a file without a name, which a kill leaves nothing of; where there are none, of one beside it."""
    try:
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except (AttributeError, OSError):
        _appear_by_name(path, content)
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:  # only with a folder given does Python have the link followed
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=folder, follow_symlinks=True)
        except FileExistsError:
            raise
        except OSError:
            _appear_by_name(path, content)
        finally:
            os.close(folder)


def _appear_by_name(path: Path, content: bytes) -> None:
    with partial_file(path, "wb") as (beside, file):
        file.write(content)
        file.flush()
        _give_name(beside, path)


def _give_name(beside: Path, path: Path) -> None:
    """The file's name; never that of a file that has come there meanwhile."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        beside.replace(path)


def _exists(path: Path) -> StoreError:
    text = f"go on with dialoom.resume({str(path)!r}), or give another path"
    advice = Advice("resume_or_new_path", text, {"path": path})
    return StoreError(f"{path} exists", advice=advice)
