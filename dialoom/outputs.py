"""Where dialoom writes for others: the one place that opens a file to write, and that makes file names of ids.

What is written stands beside its place until it is whole: whoever looks there sees the old thing or the new one. What a
command has read, and any SQLite file, whoever's it is, is never written over. Runs, caches and checkpoints are
databases, which their own modules open; everything else comes through here. This module is below every floor.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dialoom.errors import DialoomError

_STREAMS = (Path("/dev"), Path("/proc"))
_SQLITE = b"SQLite format 3\x00"
_BESIDE_SQLITE = ("-wal", "-shm", "-journal")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_LONGEST = 120
"""Bytes of a name made of an id: file systems take 255, and others put something before and behind it."""


class OutputError(DialoomError):
    """A place that cannot be written, or must not be: which, and why."""


@contextmanager
def text_output(
    target: Path, inputs: Iterable[Path] = (), *, encoding: str = "utf-8", newline: str = "\n"
) -> Iterator[IO[str]]:
    """A text file that takes the target's place when the block ends well, and is gone if it does not.

    Args:
        target: A path; a link stays a link, and what it leads to is replaced. Pipes and devices are written directly.
        inputs: What the writing reads, which is not written over.
        encoding: Of the file; of a pipe it is without a mark at its beginning.
        newline: As of `open`.

    Raises:
        OutputError: If the target is one of the inputs, an SQLite file or a folder, or cannot be written.
    """
    if is_stream(target):
        encoding = encoding.removesuffix("-sig")
    with _output(target, inputs, "w", encoding=encoding, newline=newline) as file:
        yield file


@contextmanager
def binary_output(target: Path, inputs: Iterable[Path] = ()) -> Iterator[IO[bytes]]:
    """The same for bytes; see `text_output`."""
    with _output(target, inputs, "wb") as file:
        yield file


class Folder:
    """A new folder that is being filled. Names in it are made of ids, so that none leads out of it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def text(self, *names: str, more: bool = False) -> Iterator[IO[str]]:
        """A new text file under the names of its folders and its own.

        Args:
            names: The names.
            more: The file is there and is written on at its end.

        Raises:
            OutputError: If it is there already.
        """
        path = self._named(names) if more else self._new(names)
        with path.open("a" if more else "x", encoding="utf-8", newline="\n") as file:
            yield file

    @contextmanager
    def binary(self, *names: str) -> Iterator[IO[bytes]]:
        """The same for bytes."""
        with self._new(names).open("xb") as file:
            yield file

    def _named(self, names: tuple[str, ...]) -> Path:
        return self._path.joinpath(*map(file_name, names))

    def _new(self, names: tuple[str, ...]) -> Path:
        path = self._named(names)
        if path.exists():
            raise OutputError(f"two things to be written have the name {'/'.join(map(file_name, names))!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


@contextmanager
def folder_output(target: Path) -> Iterator[Folder]:
    """A new folder, which becomes the target when the block ends well, and is gone if it does not.

    Raises:
        OutputError: If the target is there and is no empty folder, or cannot be written.
    """
    with _told(target):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise OutputError(f"{target} exists and is no empty folder; this is written as a folder of files")
        partial = _beside(target)
        try:
            partial.mkdir(parents=True)
            yield Folder(partial)
            if target.exists():
                target.rmdir()
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def append_private(path: Path, text: str) -> None:
    """Add to a file of the user's own, which nobody else can read; it is made, with its folders, if it is not there.

    Raises:
        OutputError: If it cannot be written.
    """
    with _told(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)


def private_file(path: Path) -> None:
    """Make a file of the user's own, which nobody else can read, with its folders, if it is not there.

    Raises:
        OutputError: If it cannot be made.
    """
    append_private(path, "")


def make_folder(path: Path) -> None:
    """Make a folder, with those above it, if it is not there.

    Raises:
        OutputError: If it cannot be made.
    """
    with _told(path):
        path.mkdir(parents=True, exist_ok=True)


def is_stream(target: Path) -> bool:
    """Whether a path is a pipe, a device or an open file such as `/dev/stdout`: written directly, never replaced.

    Where output goes to a file, `/dev/stdout` looks like a regular one; replacing it would break it for everybody.
    """
    if target.exists() and not target.is_file() and not target.is_dir():
        return True
    return any(target.absolute().is_relative_to(folder) for folder in _STREAMS)


def check_output(target: Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse a place that must not be written over.

    Raises:
        OutputError: If it is one of the inputs, an SQLite file or what SQLite keeps beside one, a folder, or in none.
    """
    if target.is_dir():
        raise OutputError(f"{target} is a folder; give the path of a file")
    if not target.parent.is_dir():
        raise OutputError(f"{target} cannot be written: there is no folder {target.parent}")
    if not target.exists():
        return
    for read in inputs:
        if read.exists() and target.samefile(read):
            raise OutputError(f"{target} is what this is made from ({read}), so it is not written over")
    real = Path(os.path.realpath(target))
    bases = [real, *(real.with_name(real.name.removesuffix(end)) for end in _BESIDE_SQLITE if real.name.endswith(end))]
    if any(map(_is_sqlite, bases)):
        raise OutputError(f"{target} is an SQLite file, such as a run or a cache, so it is not written over")


def file_name(id_: str) -> str:
    """A name for a file or a folder, made of an id that may hold anything.

    It is one part of a path, on any system: no separators, no `.` or `..`, no control, invisible or unpaired character,
    nothing too long. Most ids are their own names. What must be changed gets a mark of what it was, so that different
    ids are different files.
    """
    kept = "".join("_" if _is_unfit(char) else char for char in unicodedata.normalize("NFC", id_))
    kept = kept.strip(" ").rstrip(".")
    if kept.startswith(".") or _RESERVED.fullmatch(kept):
        kept = "_" + kept
    if kept and kept == id_ and len(kept.encode()) <= _LONGEST:
        return kept
    mark = hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    ending = found[0] if (found := _ENDING.search(kept)) else ""
    short = kept.removesuffix(ending).encode()[: _LONGEST - len(mark) - len(ending) - 1].decode(errors="ignore")
    return f"{short}-{mark}{ending}" if short else mark + ending


def _is_unfit(char: str) -> bool:
    """Whether a character has another meaning in a path on some system, or cannot be seen."""
    return char in '/\\:*?"<>|' or (unicodedata.category(char)[0] in "CZ" and char != " ")


@contextmanager
def _output(target: Path, inputs: Iterable[Path], mode: str, **how: Any) -> Iterator[IO[Any]]:
    read = tuple(inputs)
    with _told(target):
        check_output(target, read)
        if is_stream(target):
            with target.open(mode, **how) as file:
                yield file
            return
        place = Path(os.path.realpath(target))
        partial = _beside(place)
        try:
            with partial.open(mode.replace("w", "x"), **how) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            check_output(target, read)  # somebody may have made a run there meanwhile
            partial.replace(place)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def _told(target: Path) -> Iterator[None]:
    """The system's complaints as ours."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{target} cannot be written: {_why(error)}") from error
    except ValueError as error:
        if "null byte" not in str(error) and "null character" not in str(error):
            raise
        raise OutputError(f"{str(target)!r} is no path: it holds a null character") from error


def _why(error: OSError) -> str:
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
        return "another process has written there meanwhile"
    return error.strerror or str(error)


def _beside(target: Path) -> Path:
    """A name that nobody else has: several may write to one target at once, and each of them something whole."""
    return target.absolute().with_name(f".dialoom-{secrets.token_hex(8)}.partial")


def _is_sqlite(path: Path) -> bool:
    # What SQLite keeps beside an open database is looked for first: closing a descriptor of a file drops this process'
    # locks on it, so one that is in use had better not be opened.
    if all(path.with_name(path.name + end).exists() for end in ("", "-wal", "-shm")):
        return True
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False
