"""Passages: sequences of messages that are stored once and shared between the message lists of conversations.

A list is cut at points that its own content determines, so that equal stretches are cut in the same way wherever they
occur. If all scenarios have the same hundreds of turns in the middle, they share the passages for these turns. When a
conversation has grown by a line, only its last few lines are stored again. A list of many passages is cut in the same
way.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeAlias

from .references import digest

StoredMessage: TypeAlias = tuple[str, int, *tuple[str | int, ...]]
"""A message: its role and the id of its text.

Two further entries are optional: the finish reason of an incomplete line (a string), and the id of a text with the
message's other fields, such as tool calls, in JSON (an integer).
"""

TOOLS = "tools"
"""The role of an additional first entry in requests that offer tools; its text is the tools' definitions as JSON."""

MAX_INLINE_MESSAGES = 64
"""The maximum length of message lists that are stored without passages; most lists are not longer."""

_MIN_PASSAGE_LENGTH, _MAX_PASSAGE_LENGTH = 4, 64
_MAX_ENTRIES = 16
"""The maximum number of entries in a list after passages are cut out, low because every scenario has its own list."""

_MAX_CACHED_IDS = 4096
_HASH_MULTIPLIER = 0x9E3779B1
_HASH_SHIFT = 28
"""The shift that leaves 4 bits of a 32-bit hash: on average, one message in sixteen ends a passage."""

_Entry: TypeAlias = "StoredMessage | int"


class Passages:
    """The `passages` table, for the writer's jobs; the ids of recently used passages are cached."""

    def __init__(self) -> None:
        self._ids: OrderedDict[tuple[_Entry, ...], int] = OrderedDict()

    def encode(self, connection: sqlite3.Connection, messages: Sequence[StoredMessage]) -> str:
        """Return messages as a column's value, and insert new passages.

        The last message is always stored in the column itself.
        """
        if len(messages) <= MAX_INLINE_MESSAGES:
            return _encode(messages)
        entries: list[_Entry] = [*messages[:-1]]
        while len(entries) > _MAX_ENTRIES and len(cut := self._replace_passages(connection, entries)) < len(entries):
            entries = cut
        return _encode([*entries, messages[-1]])

    def clear(self) -> None:
        """Clear the cache, after cached rows were rolled back."""
        self._ids.clear()

    def _replace_passages(self, connection: sqlite3.Connection, entries: list[_Entry]) -> list[_Entry]:
        """Return the list with every complete passage replaced by the id of its passage."""
        cut: list[_Entry] = []
        start = 0
        for end, entry in enumerate(entries, start=1):
            length = end - start
            if length >= _MIN_PASSAGE_LENGTH and (_is_boundary(entry) or length == _MAX_PASSAGE_LENGTH):
                cut.append(self._get_or_insert(connection, tuple(entries[start:end])))
                start = end
        return [*cut, *entries[start:]]

    def _get_or_insert(self, connection: sqlite3.Connection, entries: tuple[_Entry, ...]) -> int:
        if (known := self._ids.get(entries)) is not None:
            self._ids.move_to_end(entries)
            return known
        id_ = self._ids[entries] = self.get_or_insert(connection, _encode(entries))
        if len(self._ids) > _MAX_CACHED_IDS:
            self._ids.popitem(last=False)
        return id_

    def get_or_insert(self, connection: sqlite3.Connection, content: str) -> int:
        """Return the id of the passage with this content in its stored form; a new passage is inserted."""
        hash_ = digest(content)
        row = connection.execute("SELECT id FROM passages WHERE hash = ?", (hash_,)).fetchone()
        if row is None:
            row = connection.execute(
                "INSERT INTO passages (hash, messages) VALUES (?, ?) RETURNING id", (hash_, content)
            ).fetchone()
        return int(row[0])


def read_messages(text: str, passage: Callable[[int], str]) -> list[StoredMessage]:
    """Return the messages that a column contains.

    Args:
        text: The column's value.
        passage: A function that returns the content of a passage by its id.
    """
    found: list[StoredMessage] = []
    for entry in json.loads(text):
        if isinstance(entry, int):
            found += read_messages(passage(entry), passage)
        else:
            found.append((entry[0], entry[1], *entry[2:]))
    return found


def find_extra_fields(message: StoredMessage) -> int | None:
    """Return the id of the text that holds a message's fields besides role and content; `None` if there are none."""
    return next((each for each in message[2:] if isinstance(each, int)), None)


def make_passage_reader(connection: sqlite3.Connection) -> Callable[[int], str]:
    """Return a function that reads a passage over a connection, as `read_messages` needs it."""
    return lambda id_: str(connection.execute("SELECT messages FROM passages WHERE id = ?", (id_,)).fetchone()[0])


def _is_boundary(entry: _Entry) -> bool:
    id_ = entry if isinstance(entry, int) else entry[1]
    return (id_ * _HASH_MULTIPLIER & 0xFFFFFFFF) >> _HASH_SHIFT == 0


def _encode(entries: Sequence[_Entry]) -> str:
    return json.dumps(entries, separators=(",", ":"))
