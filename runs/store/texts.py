"""Every text that was said or sent, once: requests, replies and outcomes refer to it by its id."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict

from .documents import digest

_REMEMBERED = 4096
_SHORT = 1000
"""Letters; so short a text is remembered as it is: to hash hundreds of them at each call would take longer."""


class Texts:
    """The `texts` table, for use in the writer's jobs; the ids of lately used texts are remembered."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str | bytes, int] = OrderedDict()

    def id_of(self, connection: sqlite3.Connection, content: str) -> int:
        """The id of a text, which is kept if it was not yet."""
        name = content if len(content) <= _SHORT else digest(content)
        if (known := self._ids.get(name)) is not None:
            self._ids.move_to_end(name)
            return known
        hash_ = digest(content)
        row = connection.execute("SELECT id FROM texts WHERE hash = ?", (hash_,)).fetchone()
        if row is None:
            insert = "INSERT INTO texts (hash, content) VALUES (?, ?) RETURNING id"
            row = connection.execute(insert, (hash_, content)).fetchone()
        id_ = self._ids[name] = int(row[0])
        if len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)
        return id_

    def forget(self) -> None:
        """Remember nothing: some of it was undone."""
        self._ids.clear()
