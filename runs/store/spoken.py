"""Reading what was said in finished conversations, for an index of its words."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from .passages import read_messages, reading

_PAGE = 500


class SpokenTexts:
    """The messages of a run's outcomes, by the ids of their texts.

    Args:
        reader: Reads the run.
    """

    def __init__(self, reader: sqlite3.Connection) -> None:
        self._reader = reader
        self._passage = lru_cache(maxsize=4096)(reading(reader))

    def of_changed(self, known: Mapping[int, bytes]) -> Iterator[tuple[int, bytes, list[int]]]:
        """Each scenario whose messages are others than are known.

        Args:
            known: By position, a mark of the messages that are known.

        Yields:
            Its position, the mark of its messages, and the ids of their texts; none of one that is pending again.
        """
        after, seen = -1, set()
        while page := self._reader.execute(_PAGES, (after, _PAGE)).fetchall():
            after = page[-1]["scenario"]
            for position, messages in page:
                seen.add(position)
                mark = hashlib.blake2b(messages.encode(), digest_size=8).digest()
                if known.get(position) != mark:
                    yield position, mark, [said[1] for said in read_messages(messages, self._passage)]
        for position in known.keys() - seen:
            if known[position]:
                yield position, b"", []

    def contents(self, ids: Sequence[int]) -> Iterator[tuple[int, str]]:
        """The texts of ids."""
        query = "SELECT id, content FROM texts WHERE id IN (SELECT value FROM json_each(?))"
        for start in range(0, len(ids), _PAGE):
            yield from self._reader.execute(query, (json.dumps(ids[start : start + _PAGE]),)).fetchall()


_PAGES = (
    "SELECT scenario, messages FROM outcomes JOIN scenarios ON position = scenario "
    "WHERE state IN ('done', 'failed') AND scenario > ? ORDER BY scenario LIMIT ?"
)
