"""Reading a run's plan: its scenarios, and what has become of each. Nothing is held that grows with the run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from dialoom.errors import Advice
from dialoom.graphs import Recipe, Scenario
from dialoom.graphs.shared import SharedValues

from . import documents
from .errors import StoreError

_PAGE = 200
_MOST_PARTS = 10_000
"""Documents of one scenario: in a crafted file, parts may refer to each other without end."""


class ScenarioTable:
    """The scenarios of a run, in plan order.

    Args:
        path: The run's file, for messages.
        reader: Reads it.
    """

    def __init__(self, path: Path, reader: sqlite3.Connection) -> None:
        self._path = path
        self._reader = reader
        self._document = lru_cache(maxsize=512)(self._read_document)
        self._shared = SharedValues(lambda hash_: documents.fetched(hash_, self._document))

    def rows(self, query: str, *values: Any) -> Iterator[sqlite3.Row]:
        """A query's rows, read page by page as they are asked for, so that no read lasts long.

        Args:
            query: Takes the last position that was read and the size of a page, selects `position`, and is ordered by
                it.
            values: Its further parameters.
        """
        after = -1
        while page := self._reader.execute(query, (after, _PAGE, *values)).fetchall():
            yield from page
            after = page[-1]["position"]

    def scenario(self, recipe: Recipe, content: str) -> Scenario:
        """A scenario of a recipe, from the column `content` of its row.

        Raises:
            StoreError: If the file lacks a part of it.
        """
        left = iter(range(_MOST_PARTS))

        def document(hash_: bytes) -> str:
            if next(left, None) is None:
                raise StoreError(f"{self._path} is damaged: a scenario has more than {_MOST_PARTS:,} parts")
            return self._document(hash_)

        plain = documents.unpack(content, document)
        return recipe.scenario_type.model_validate(plain, context=self._shared)

    def resolve(self, name: str) -> int:
        """The position of a scenario by its id, the beginning of its id, or its place in the plan (from 1).

        Raises:
            StoreError: If it fits none or several.
        """
        if name.isdecimal() and (position := self._find("position = ?", int(name) - 1)) is not None:
            return position
        if (position := self.position_of(name)) is not None:
            return position
        # Ids sort by their text, so those that begin alike stand together in the index.
        query = "SELECT position, id FROM scenarios WHERE id >= ? AND id < ? ORDER BY position LIMIT 4"
        rows = self._reader.execute(query, (name, name + "\U0010ffff")).fetchall() if name else []
        if len(rows) == 1:
            return int(rows[0]["position"])
        if rows:
            some = ", ".join(row["id"] for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
            raise StoreError(f"{name!r} is the beginning of several scenarios: {some}; give more of the id")
        raise StoreError(
            f"{self._path} has no scenario {name!r}; it has {self._count():,}, numbered from 1",
            advice=Advice("list", "list its scenarios", {"path": self._path}),
        )

    def position_of(self, id_: str) -> int | None:
        """The position of a scenario by its whole id; `None` if there is none of it."""
        return self._find("id = ?", id_)

    def listing(self) -> Iterator[tuple[int, str, str, str | None]]:
        """Every scenario's place in the plan, id, state and ending."""
        query = (
            "SELECT position, id, state, ended_by FROM scenarios LEFT JOIN outcomes ON scenario = position "
            "WHERE position > ? ORDER BY position LIMIT ?"
        )
        yield from ((row["position"], row["id"], row["state"], row["ended_by"]) for row in self.rows(query))

    def facets(self) -> Iterator[dict[str, Any]]:
        """What every scenario shows of itself, finished or not."""
        query = "SELECT position, facets FROM scenarios WHERE position > ? ORDER BY position LIMIT ?"
        yield from (json.loads(row["facets"]) for row in self.rows(query))

    def _count(self) -> int:
        return int(self._reader.execute("SELECT count(*) FROM scenarios").fetchone()[0])

    def _find(self, condition: str, value: Any) -> int | None:
        row = self._reader.execute(f"SELECT position FROM scenarios WHERE {condition}", (value,)).fetchone()
        return None if row is None else int(row["position"])

    def _read_document(self, hash_: bytes) -> str:
        row = self._reader.execute("SELECT content FROM documents WHERE hash = ?", (hash_,)).fetchone()
        if row is None:
            raise StoreError(f"{self._path} lacks the document {hash_.hex()}; the file is damaged")
        try:
            return documents.text_of(row["content"])
        except ValueError as error:
            raise StoreError(f"{self._path} is damaged: of the document {hash_.hex()}, {error}") from error


def thread_of(id_: str, take: int) -> str:
    """A scenario's thread of checkpoints: one that is played anew has another."""
    return f"{id_}@{take}" if take else id_
