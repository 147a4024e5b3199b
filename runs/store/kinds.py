"""Call kinds, the attributes that calls share, stored once: place in the graph, role, prompt and model."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple


class CallKind(NamedTuple):
    """The place of a call in its graph with its role, model and prompt; for the use of a common call, the place alone.

    Attributes:
        judging: The set of judgements, if it is not the run's own.
        ask: 2 when an unparsable reply is requested again.
        sample: The sample number; replies are not shared between samples.
        prompt: The prompt's id.
    """

    judging: str | None
    node: str | None
    step: int | None
    ordinal: int | None
    ask: int
    sample: int
    role: str | None = None
    model: str | None = None
    prompt: str | None = None
    temperature: float | None = None


PLACE = CallKind._fields[:6]
"""The fields that are set for the use of a common call."""

_INSERT = f"INSERT INTO kinds ({', '.join(CallKind._fields)}) VALUES ({', '.join('?' * len(CallKind._fields))})"
_FIND = f"SELECT id FROM kinds WHERE {' AND '.join(f'{name} IS ?' for name in CallKind._fields)}"


class CallKinds:
    """The table `kinds`, for the writer's jobs. Ids are cached, because a run has only some dozens of kinds."""

    def __init__(self) -> None:
        self._ids: dict[CallKind, int] = {}

    def id_of(self, connection: sqlite3.Connection, kind: CallKind) -> int:
        """Return the id of a kind, which is inserted if it is new."""
        if (known := self._ids.get(kind)) is not None:
            return known
        row = connection.execute(_FIND, kind).fetchone()
        id_ = connection.execute(_INSERT, kind).lastrowid if row is None else row[0]
        assert id_ is not None
        self._ids[kind] = id_
        return int(id_)

    def of(self, connection: sqlite3.Connection, row: Mapping[str, Any], place_only: bool = False) -> int:
        """Return the id of the kind of a row of the views: `calls` or (by its place only) `common_uses`."""
        names = PLACE if place_only else CallKind._fields
        return self.id_of(connection, CallKind(**{name: row[name] for name in names}))

    def forget(self) -> None:
        """Clear the cache, because some of it was rolled back."""
        self._ids.clear()
