"""Writing output. Only this module opens files for writing and makes file names from ids.

Output is written to a temporary path beside its target and moved there when complete, so readers see either the old
content or the new content. Inputs of a command and SQLite files, whoever made them, are never overwritten. Runs, caches
and checkpoints are databases, which their own modules open; all other output is written here. This module is below all
layers.
"""

from __future__ import annotations

import errno
import fcntl
import filecmp
import hashlib
import json
import os
import re
import secrets
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from dialoom.errors import DialoomError
from dialoom.inputs import is_sqlite

_STREAM_FOLDERS = (Path("/dev"), Path("/proc"))
_SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")
_RESERVED_NAME = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_MAX_NAME_BYTES = 120
"""Maximum size in bytes of a name made from an id: file systems accept 255, and prefixes and suffixes are added."""


class OutputError(DialoomError):
    """A target that cannot be written or must not be overwritten; the message has the path and the reason."""


@contextmanager
def text_output(
    target: Path, inputs: Iterable[Path] = (), *, encoding: str = "utf-8", newline: str = "\n"
) -> Iterator[IO[str]]:
    """Yield a text file that replaces the target when the block succeeds, and is removed if it fails.

    Args:
        target: A path. If it is a link, the file that it leads to is replaced. Pipes and devices are written directly.
        inputs: Files that the block reads, which must not be overwritten.
        encoding: The encoding; pipes are written without a byte order mark.
        newline: As for `open`.

    Raises:
        OutputError: If the target is one of the inputs, an SQLite file or a folder, or cannot be written.
    """
    if is_stream(target):
        encoding = encoding.removesuffix("-sig")
    with _open_output(target, inputs, "w", encoding=encoding, newline=newline) as file:
        yield file


def write_lines(path: Path, values: Iterable[Mapping[str, Any]], inputs: Iterable[Path] = ()) -> int:
    """Write one JSON object per line, and return the number of lines.

    Raises:
        OutputError: If the file is one of the inputs or an SQLite file, or cannot be written.
    """
    count = 0
    with text_output(path, inputs) as file:
        for value in values:
            file.write(format_json_line(value))
            count += 1
    return count


def format_json_line(value: Mapping[str, Any]) -> str:
    """Return an object as a line of a JSONL file."""
    return json.dumps(value, ensure_ascii=False) + "\n"


@contextmanager
def binary_output(target: Path, inputs: Iterable[Path] = ()) -> Iterator[IO[bytes]]:
    """Yield a binary file; see `text_output`."""
    with _open_output(target, inputs, "wb") as file:
        yield file


class Folder:
    """A new folder that is being filled. Names in it are made from ids, so no path leads out of the folder.

    Attributes:
        path: The temporary path of the folder until it is complete.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def text(self, *names: str, append: bool = False) -> Iterator[IO[str]]:
        """Yield a new text file in the folder.

        Args:
            names: The names of its subfolders, if any, and its own name.
            append: Whether to append to an existing file.

        Raises:
            OutputError: If the file exists already, unless `append` is set.
        """
        path = self._resolve(names) if append else self._prepare(names)
        with path.open("a" if append else "x", encoding="utf-8", newline="\n") as file:
            yield file

    @contextmanager
    def binary(self, *names: str) -> Iterator[IO[bytes]]:
        """Yield a new binary file; see `text`."""
        with self._prepare(names).open("xb") as file:
            yield file

    def _resolve(self, names: tuple[str, ...]) -> Path:
        return self.path.joinpath(*map(make_file_name, names))

    def _prepare(self, names: tuple[str, ...]) -> Path:
        path = self._resolve(names)
        if path.exists():
            raise OutputError(f"two files of the export have the same name {'/'.join(map(make_file_name, names))!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


@contextmanager
def folder_output(target: Path, *, adds: bool = False) -> Iterator[Folder]:
    """Yield a new folder, which becomes the target when the block succeeds, and is removed if it fails.

    Existing files with the same content are accepted, so that a repeated export succeeds.

    Args:
        target: A folder that does not exist, is empty, or contains the result of an earlier call.
        adds: Whether the target may also contain other files, to which the new ones are added.

    Raises:
        OutputError: If the target is not a folder, contains other files or a file with different content, or cannot be
            written.
    """
    with _convert_errors(target):
        if target.exists() and not target.is_dir():
            raise OutputError(f"{target} is a file, but a folder of files must be written; give another path")
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        with _locked_partial(target, is_folder=True) as (partial, _):
            yield Folder(partial)
            if target.exists() and any(target.iterdir()):
                _move_files(partial, target, adds)
            else:
                if target.exists():
                    target.rmdir()
                partial.rename(target)


def _move_files(partial: Path, target: Path, adds: bool) -> None:
    """Move all files of one folder into another one, or none of them."""
    new, old = (
        {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} for folder in (partial, target)
    )
    if not adds and (unexpected := sorted(old - new)):
        raise OutputError(
            f"{target} exists and is not an empty folder: it contains {unexpected[0]}; give another folder"
        )
    for name in sorted(new):
        if os.path.lexists(target / name) and not _have_same_content(partial / name, target / name):
            raise OutputError(f"{target / name} exists with other content; give another folder, or remove it first")
    for name in new:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (partial / name).replace(target / name)


def _have_same_content(first: Path, second: Path) -> bool:
    return second.is_file() and filecmp.cmp(first, second, shallow=False)


def append_private(path: Path, text: str) -> None:
    """Append to a file that only this user can read; a missing file is created, with its folders.

    Raises:
        OutputError: If it cannot be written.
    """
    with _convert_errors(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)


def create_private_file(path: Path) -> None:
    """Create a file that only this user can read, with its folders, if it is missing.

    Raises:
        OutputError: If it cannot be created.
    """
    append_private(path, "")


def make_folder(path: Path) -> None:
    """Create a folder and its parents, if they are missing.

    Raises:
        OutputError: If it cannot be created.
    """
    with _convert_errors(path):
        path.mkdir(parents=True, exist_ok=True)


def is_stream(target: Path) -> bool:
    """Return whether a path is a pipe, a device or an open file such as `/dev/stdout`, which is never replaced.

    When output is redirected to a file, `/dev/stdout` looks like a regular file; replacing it would break it for all
    users.
    """
    if target.exists() and not target.is_file() and not target.is_dir():
        return True
    return any(target.absolute().is_relative_to(folder) for folder in _STREAM_FOLDERS)


def check_output(target: Path, inputs: Iterable[Path] = ()) -> None:
    """Check that a target may be written.

    Raises:
        OutputError: If the target is one of the inputs, an SQLite file or a file that SQLite keeps beside one, a
            folder, or in a folder that does not exist.
    """
    if target.is_dir():
        raise OutputError(f"{target} is a folder; give the path of a file")
    if not target.parent.is_dir():
        raise OutputError(f"{target} cannot be written: there is no folder {target.parent}; create it first")
    if not target.exists():
        return
    for input_path in inputs:
        if input_path.exists() and target.samefile(input_path):
            raise OutputError(f"{target} is an input of this command ({input_path}), so it is not overwritten")
    real_path = Path(os.path.realpath(target))
    bases = [
        real_path,
        *(
            real_path.with_name(real_path.name.removesuffix(suffix))
            for suffix in _SQLITE_SUFFIXES
            if real_path.name.endswith(suffix)
        ),
    ]
    if any(map(_is_sqlite, bases)):
        raise OutputError(f"{target} is an SQLite file, such as a run or a cache, so it is not overwritten")


def make_file_name(id_: str) -> str:
    """Return a name for a file or a folder, made from an arbitrary id.

    The name is one path component on any system: it has no separators, no control, invisible or unpaired characters,
    and a limited length, and is not `.` or `..`. Most ids are returned unchanged. A changed name gets a hash of the id,
    so that different ids have different names.
    """
    name = "".join("_" if _is_unfit(char) else char for char in unicodedata.normalize("NFC", id_))
    name = name.strip(" ").rstrip(".")
    if name.startswith(".") or _RESERVED_NAME.fullmatch(name):
        name = "_" + name
    if name and name == id_ and len(name.encode()) <= _MAX_NAME_BYTES:
        return name
    digest = hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    extension = found[0] if (found := _EXTENSION.search(name)) else ""
    stem = (
        name.removesuffix(extension)
        .encode()[: _MAX_NAME_BYTES - len(digest) - len(extension) - 1]
        .decode(errors="ignore")
    )
    return f"{stem}-{digest}{extension}" if stem else digest + extension


def _is_unfit(char: str) -> bool:
    """Return whether a character has a special meaning in a path on some system, or is invisible."""
    return char in '/\\:*?"<>|' or (unicodedata.category(char)[0] in "CZ" and char != " ")


@contextmanager
def _open_output(target: Path, inputs: Iterable[Path], mode: str, **options: Any) -> Iterator[IO[Any]]:
    input_paths = tuple(inputs)
    with _convert_errors(target):
        check_output(target, input_paths)
        if is_stream(target):
            with target.open(mode, **options) as file:
                yield file
            return
        final_path = Path(os.path.realpath(target))
        with partial_file(final_path, mode, **options) as (partial, file):
            yield file
            file.flush()
            os.fsync(file.fileno())
            check_output(target, input_paths)  # a run may have been created there in the meantime
            partial.replace(final_path)


@contextmanager
def partial_file(final_path: Path, mode: str, **options: Any) -> Iterator[tuple[Path, IO[Any]]]:
    """Yield a new file beside its final path. The block must move it to that path; otherwise it is removed.

    Args:
        final_path: The final path. Unfinished files of dead processes beside it are removed.
        mode: As for `open`.
        **options: As for `open`.
    """
    with _locked_partial(final_path) as (partial, descriptor), open(descriptor, mode, closefd=False, **options) as file:
        yield partial, file


@contextmanager
def _locked_partial(final_path: Path, is_folder: bool = False) -> Iterator[tuple[Path, int]]:
    """Yield a new file or folder beside a path, and its descriptor, whose lock marks it as being written.

    The system releases the lock when the process ends, however it ends. An unlocked file is therefore left over from a
    dead process.
    """
    _remove_leftovers(final_path.absolute().parent)
    while True:
        partial = final_path.absolute().with_name(f".dialoom-{secrets.token_hex(8)}.partial")
        descriptor = _create_partial(partial, is_folder)
        with suppress(OSError):  # the file system has no locks: remove nothing
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if partial.exists():
            break
        os.close(descriptor)  # another process removed it as a leftover just before it was locked
    try:
        yield partial, descriptor
    finally:
        if is_folder:
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def exclusive_lock(target: Path) -> Iterator[None]:
    """Hold the lock of a file's folder, so that one process at a time reads and replaces the file.

    Raises:
        OutputError: If the folder cannot be opened.
    """
    with _convert_errors(target):
        descriptor = os.open(target.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # the file system has no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _create_partial(partial: Path, is_folder: bool) -> int:
    if not is_folder:
        return os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    while True:
        partial.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # removed as a leftover
            return os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _remove_leftovers(folder: Path) -> None:
    """Remove unfinished files of dead processes from a folder."""
    for leftover in folder.glob(".dialoom-*.partial"):
        try:
            descriptor = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        except OSError:  # the file is being written, or another process removes it
            continue
        finally:
            os.close(descriptor)


@contextmanager
def _convert_errors(target: Path) -> Iterator[None]:
    """Convert the operating system's errors to `OutputError`."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{target} cannot be written: {_describe_error(error)}") from error
    except ValueError as error:
        if "null byte" not in str(error) and "null character" not in str(error):
            raise
        raise OutputError(f"{str(target)!r} is not a path: it contains a null character") from error


def _describe_error(error: OSError) -> str:
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
        return "another process has written there in the meantime"
    return error.strerror or str(error)


def _is_sqlite(path: Path) -> bool:
    # SQLite's auxiliary files are checked first. A database in use must not be opened here, because closing a
    # descriptor of a file drops this process's locks on it.
    if all(path.with_name(path.name + suffix).exists() for suffix in ("", "-wal", "-shm")):
        return True
    return is_sqlite(path)
