"""Every text that was said or sent, once: requests, replies and outcomes refer to it by its id."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict

from .documents import digest
from .references import ReadText

_REMEMBERED = 4096
_SHORT = 1000
"""Letters; so short a text is remembered as it is: to hash hundreds of them at each call would take longer."""


class Texts:
    """The `texts` table, for use in the writer's jobs; the ids of lately used texts are remembered."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str | bytes, int] = OrderedDict()

    def id_of(self, connection: sqlite3.Connection, content: str) -> int:
        """The id of a text, which is kept if it was not yet."""
        if (known := self.find(connection, content)) is not None:
            return known
        insert = "INSERT INTO texts (hash, content) VALUES (?, ?) RETURNING id"
        (id_,) = connection.execute(insert, (digest(content), content)).fetchone()
        return self._remembered(_name(content), int(id_))

    def find(self, connection: sqlite3.Connection, content: str) -> int | None:
        """The id of a text, if it is kept."""
        name = _name(content)
        if (known := self._ids.get(name)) is not None:
            self._ids.move_to_end(name)
            return known
        try:
            row = connection.execute("SELECT id FROM texts WHERE hash = ?", (digest(content),)).fetchone()
        except UnicodeEncodeError:  # half a character, which no text holds
            return None
        return None if row is None else self._remembered(name, int(row[0]))

    def forget(self) -> None:
        """Remember nothing: some of it was undone."""
        self._ids.clear()

    def _remembered(self, name: str | bytes, id_: int) -> int:
        self._ids[name] = id_
        if len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)
        return id_


def _name(content: str) -> str | bytes:
    return content if len(content) <= _SHORT else digest(content)


def reading(connection: sqlite3.Connection) -> ReadText:
    """Reads texts by their ids, over a connection."""
    return lambda id_: str(connection.execute("SELECT content FROM texts WHERE id = ?", (id_,)).fetchone()[0])
