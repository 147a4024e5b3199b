"""Writing beside a place and moving there when whole: whoever looks sees the old thing or the new one, never half."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dialoom.runs.errors import RunError

_STREAMS = (Path("/dev"), Path("/proc"))


def is_stream(target: Path) -> bool:
    """Whether a path is a pipe, a device or an open file such as `/dev/stdout`: written directly, never replaced.

    Where output goes to a file, `/dev/stdout` looks like a regular one; replacing it would break it for everybody.
    """
    if target.exists() and not target.is_file() and not target.is_dir():
        return True
    return any(target.absolute().is_relative_to(folder) for folder in _STREAMS)


@contextmanager
def file_beside(target: Path) -> Iterator[Path]:
    """A path to write to; the file there takes the target's place when the block ends well, and goes if it does not."""
    target = target.resolve()  # a link stays a link: what it leads to is replaced
    partial = target.with_name(f".{target.name}.partial")
    try:
        yield partial
        _sync(partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """A new folder to write in, which becomes the target when the block ends well, and goes if it does not.

    Raises:
        RunError: If the target is there and is no empty folder.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunError(f"{target} exists and is no empty folder; this export is a folder of files")
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        if target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
