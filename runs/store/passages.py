"""Long lists of messages, in passages that are stored once: what two conversations share costs neither of them much.

A list is cut where its own content says so, so that equal stretches are cut alike wherever they stand: the hundreds of
turns that every scenario of a table has in the middle are the same passages for all of them, and a conversation that
has gone on by a line has only its last few lines to write down anew. A list of many passages is cut in the same way.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeAlias

from .documents import digest

Said: TypeAlias = tuple[str, int, *tuple[str | int, ...]]
"""A message: its role and the id of its text; behind these, where an outcome's line broke off, why it did, and where
there is more to it than words (calls of tools), the id of a text with that as JSON."""

TOOLS = "tools"
"""Stands for the role in the first entry of a request that offers tools, whose text is their definitions as JSON."""

LONG = 64
"""Lists of at most so many messages stay as they are: most do, and are read without a second look."""

_SHORTEST, _LONGEST = 4, 64
_FEW = 16
"""Entries at most of a list that is cut; of passages, as every scenario has such a list of its own."""

_REMEMBERED = 4096
_GOLDEN = 0x9E3779B1
_ONE_IN_16 = 28
"""Of ids that follow on each other, too, one in sixteen ends a passage."""

_Entry: TypeAlias = "Said | int"


class Passages:
    """The `passages` table, for use in the writer's jobs; the ids of lately used ones are remembered."""

    def __init__(self) -> None:
        self._ids: OrderedDict[tuple[_Entry, ...], int] = OrderedDict()

    def text_of(self, connection: sqlite3.Connection, messages: Sequence[Said]) -> str:
        """Messages as a column holds them, their passages kept if they were not yet.

        The last message always stands in the column itself.
        """
        if len(messages) <= LONG:
            return _text(messages)
        entries: list[_Entry] = [*messages[:-1]]
        while len(entries) > _FEW and len(cut := self._cut(connection, entries)) < len(entries):
            entries = cut
        return _text([*entries, messages[-1]])

    def forget(self) -> None:
        """Remember nothing: some of it was undone."""
        self._ids.clear()

    def _cut(self, connection: sqlite3.Connection, entries: list[_Entry]) -> list[_Entry]:
        """The list with a passage in the place of every stretch that has come to its end."""
        cut: list[_Entry] = []
        start = 0
        for end, entry in enumerate(entries, start=1):
            length = end - start
            if length >= _SHORTEST and (_ends_passage(entry) or length == _LONGEST):
                cut.append(self._id_of(connection, tuple(entries[start:end])))
                start = end
        return [*cut, *entries[start:]]

    def _id_of(self, connection: sqlite3.Connection, entries: tuple[_Entry, ...]) -> int:
        if (known := self._ids.get(entries)) is not None:
            self._ids.move_to_end(entries)
            return known
        id_ = self._ids[entries] = self.kept(connection, _text(entries))
        if len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)
        return id_

    def kept(self, connection: sqlite3.Connection, content: str) -> int:
        """The id of the passage that has this content, as its column holds it; it is kept if it was not yet."""
        hash_ = digest(content)
        row = connection.execute("SELECT id FROM passages WHERE hash = ?", (hash_,)).fetchone()
        if row is None:
            insert = "INSERT INTO passages (hash, messages) VALUES (?, ?) RETURNING id"
            row = connection.execute(insert, (hash_, content)).fetchone()
        return int(row[0])


def read_messages(text: str, passage: Callable[[int], str]) -> list[Said]:
    """The messages of a column.

    Args:
        text: What it holds.
        passage: Gives what a passage holds, by its id.
    """
    found: list[Said] = []
    for entry in json.loads(text):
        if isinstance(entry, int):
            found += read_messages(passage(entry), passage)
        else:
            found.append((entry[0], entry[1], *entry[2:]))
    return found


def beyond_words_of(message: Said) -> int | None:
    """The id of the text that holds what a message is besides its words."""
    return next((each for each in message[2:] if isinstance(each, int)), None)


def reading(connection: sqlite3.Connection) -> Callable[[int], str]:
    """What `read_messages` asks for passages, over a connection."""
    return lambda id_: str(connection.execute("SELECT messages FROM passages WHERE id = ?", (id_,)).fetchone()[0])


def _ends_passage(entry: _Entry) -> bool:
    id_ = entry if isinstance(entry, int) else entry[1]
    return (id_ * _GOLDEN & 0xFFFFFFFF) >> _ONE_IN_16 == 0


def _text(entries: Sequence[_Entry]) -> str:
    return json.dumps(entries, separators=(",", ":"))
