"""What changes when somebody has written a run file: for whoever keeps what was read of it."""

from __future__ import annotations

from pathlib import Path

Signature = tuple[tuple[int, int] | None, ...]


def signature(path: Path) -> Signature:
    """Times and sizes of the file and of its log."""
    found: list[tuple[int, int] | None] = []
    for each in (path, path.with_name(path.name + "-wal")):
        try:
            status = each.stat()
        except OSError:
            found.append(None)
        else:
            # An empty log comes with whoever opens the file, to read only, too.
            found.append((status.st_mtime_ns, status.st_size) if status.st_size else None)
    return tuple(found)
