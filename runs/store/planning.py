"""Writing a run's plan. For jobs of the writer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from dialoom.graphs import Scenario
from dialoom.graphs.shared import ByHash

from .documents import canonical, kept, pack
from .errors import StoreError


def insert_plan(connection: sqlite3.Connection, scenarios: Iterable[Scenario]) -> int:
    """Add scenarios in their order, and that planning is finished; returns how many they are.

    Raises:
        StoreError: If two of them are the same.
    """

    def keep(hash_: bytes, content: str) -> None:
        if connection.execute("SELECT 1 FROM documents WHERE hash = ?", (hash_,)).fetchone() is None:
            connection.execute("INSERT INTO documents VALUES (?, ?)", (hash_, kept(content)))

    shared: set[str] = set()

    def keep_shared(hash_: str, content: str) -> None:
        if hash_ not in shared:
            keep(bytes.fromhex(hash_), pack(json.loads(content), keep))
            shared.add(hash_)

    by_hash = ByHash(keep_shared)
    insert = "INSERT INTO scenarios (position, id, facets, content, state) VALUES (?, ?, ?, ?, 'pending')"
    count = 0
    for count, scenario in enumerate(scenarios, start=1):
        content = pack(scenario.model_dump(mode="json", context=by_hash), keep)
        try:
            connection.execute(insert, (count - 1, scenario.id, canonical(scenario.facets()), content))
        except sqlite3.IntegrityError as error:
            raise StoreError(f"the plan holds the scenario {scenario.id!r} twice") from error
    connection.execute("INSERT INTO run VALUES ('planned', ?)", (str(count),))
    return count
