"""What calls have in common, kept once: where in a graph they are made, of which role, by which prompt and model."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple


class CallKind(NamedTuple):
    """The place of a call in its graph, and who is asked how; of the use of a common call, its place alone.

    Attributes:
        judging: A set of judgements, if it is not the run's own.
        ask: 2 when an unparsable reply is asked for again.
        sample: Another one has replies of its own.
        prompt: Its id.
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
"""What the use of a common call has of it."""

_INSERT = f"INSERT INTO kinds ({', '.join(CallKind._fields)}) VALUES ({', '.join('?' * len(CallKind._fields))})"
_FIND = f"SELECT id FROM kinds WHERE {' AND '.join(f'{name} IS ?' for name in CallKind._fields)}"


class CallKinds:
    """The table `kinds`, for use in the writer's jobs; its ids are remembered, as a run has some dozens of them."""

    def __init__(self) -> None:
        self._ids: dict[CallKind, int] = {}

    def id_of(self, connection: sqlite3.Connection, kind: CallKind) -> int:
        """The id of a kind, which is kept if it was not yet."""
        if (known := self._ids.get(kind)) is not None:
            return known
        row = connection.execute(_FIND, kind).fetchone()
        id_ = connection.execute(_INSERT, kind).lastrowid if row is None else row[0]
        assert id_ is not None
        self._ids[kind] = id_
        return int(id_)

    def of(self, connection: sqlite3.Connection, row: Mapping[str, Any], place_only: bool = False) -> int:
        """The id of the kind of a row of the views, `calls` or (by its place only) `common_uses`."""
        names = PLACE if place_only else CallKind._fields
        return self.id_of(connection, CallKind(**{name: row[name] for name in names}))

    def forget(self) -> None:
        """Remember nothing: some of it was undone."""
        self._ids.clear()
