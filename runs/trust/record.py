"""A private list of what this user has given on this machine, by the run that it was given for.

So going on with one's own runs needs no more words, and a stranger's file does not pass for one's own. A
run has a random id, which nobody knows who has not seen its file; the list has pairs of such an id and a thing. It is
used only if nobody else can write it. Where it cannot be kept, nothing is known, and everything is to be said again.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from dialoom.outputs import OutputError, append_private

_LONGEST = 16 * 2**20
"""Bytes of a list that is read: some hundred thousand runs."""


def remember(id_: str | None, marks: Iterable[str]) -> None:
    """Keep in mind that the user has given these for a run or a case; that it cannot be kept does no harm."""
    if id_ is None:
        return
    known = remembered(id_)
    lines = [json.dumps([id_, mark]) + "\n" for mark in dict.fromkeys(marks) if mark not in known]
    if lines and (path := _path()) is not None:
        try:
            append_private(path, "".join(lines))
        except OutputError:
            return


def remembered(id_: str | None) -> frozenset[str]:
    """The marks of what the user has given for a run or a case."""
    found: set[str] = set()
    for line in [] if id_ is None else _lines():
        try:
            whose, mark = json.loads(line)
        except ValueError:
            continue  # cut off, or of somebody's making
        if whose == id_ and isinstance(mark, str):
            found.add(mark)
    return frozenset(found)


def _lines() -> list[str]:
    path = _path()
    if path is None:
        return []
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o022:
                return []
            return file.read(_LONGEST).decode(errors="replace").splitlines()
    except OSError:
        return []


def _path() -> Path | None:
    """By the XDG base directory specification; a relative folder does not count there."""
    folder = os.environ.get("XDG_STATE_HOME", "")
    try:
        state = Path(folder) if os.path.isabs(folder) else Path.home() / ".local" / "state"  # noqa: PTH117
    except RuntimeError:  # nobody's home
        return None
    return state / "dialoom" / "given.jsonl"
