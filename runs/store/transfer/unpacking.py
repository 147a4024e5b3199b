"""Unpacking transferred scenarios into a run file. Existing rows are kept, and ids are replaced."""

from __future__ import annotations

import sqlite3

from dialoom.grouping import group_pairs
from dialoom.runs.store.ledger import CallKinds, insert_call
from dialoom.runs.store.passages import Passages
from dialoom.runs.store.schema import insert_row
from dialoom.runs.store.texts import Texts, select_in_batches

from .packing import RESULT_TABLES, IdMapper, Row, Transfer


class Unpacker:
    """The merge of one transfer's rows into a file.

    Args:
        connection: The writer's connection, in a transaction.
        texts: The file's texts.
        passages: The file's passages.
        kinds: The kinds of the file's calls.
        transfer: The transfer.
    """

    def __init__(
        self, connection: sqlite3.Connection, texts: Texts, passages: Passages, kinds: CallKinds, transfer: Transfer
    ) -> None:
        self._connection = connection
        self._kinds = kinds
        self._stored_texts = texts
        self._stored_passages = passages
        self._transfer = transfer
        self._texts: dict[int, int] = {}
        self._passages: dict[int, int] = {}
        self._values: dict[int, int] = {}
        self._lists: dict[int, int] = {}
        maps = (self._texts, self._passages, self._values, self._lists)
        self._id_mapper = IdMapper(*(ids.__getitem__ for ids in maps))

    def insert_leased(self) -> None:
        """Insert a leased scenario into a worker's file."""
        for document in self._transfer.of("documents"):
            insert_row(self._connection, "documents", document, "OR IGNORE")
        for scenario in self._transfer.of("scenarios"):
            insert_row(self._connection, "scenarios", scenario, "OR REPLACE")
        self._merge_all()

    def merge_result(self) -> None:
        """Merge a scenario's result into the run's file."""
        update = "UPDATE scenarios SET state = ?, fault = ?, error = ? WHERE position = ?"
        for row in self._transfer.of("scenarios"):
            self._connection.execute(update, (row["state"], row["fault"], row["error"], row["position"]))
        self._connection.executemany(
            "UPDATE kept_calls SET replays = max(replays, ?), branch = ? WHERE key = ? AND reply IS NOT NULL",
            [(replays, branch, key) for key, replays, branch in self._transfer.lent],
        )
        self._merge_all()

    def insert_common(self) -> None:
        """Insert a common call into a file."""
        self._map_texts()
        self._insert_calls()

    def _merge_all(self) -> None:
        self._map_texts()
        self._replace_results()
        self._replace_player_states()
        self._insert_calls()
        if self._transfer.of("threads"):
            self._replace_checkpoints()

    def _map_texts(self) -> None:
        """Map the ids of texts and passages to ids in the file. A passage comes after the passages that it contains."""
        texts = self._transfer.texts
        self._texts.update(
            zip(texts, self._stored_texts.get_or_insert_many(self._connection, texts.values()), strict=True)
        )
        for row in self._transfer.of("passages"):
            content = self._id_mapper.map_messages(row["messages"])
            self._passages[row["id"]] = self._stored_passages.get_or_insert(self._connection, content)

    def _replace_results(self) -> None:
        """Replace the scenario's results and its uses of common calls in the file by those in the transfer."""
        position = self._transfer.position
        for table in RESULT_TABLES:
            self._connection.execute(f"DELETE FROM {table} WHERE scenario = ?", (position,))
            for row in self._transfer.of(table):
                if table == "outcomes":
                    details = row["details"] and self._id_mapper.map_texts(row["details"])
                    row = row | {"messages": self._id_mapper.map_messages(row["messages"]), "details": details}
                insert_row(self._connection, table, row)

    def _replace_player_states(self) -> None:
        for scenario in {row["scenario"] for row in self._transfer.of("player_states")}:
            self._connection.execute("DELETE FROM player_states WHERE scenario = ?", (scenario,))
        for row in self._transfer.of("player_states"):
            insert_row(self._connection, "player_states", row | {"id": None})

    def _insert_calls(self) -> None:
        attempts = group_pairs((attempt["call"], attempt) for attempt in self._transfer.of("attempts"))
        calls = self._transfer.of("calls")
        query = "SELECT key FROM kept_calls WHERE key IN ({}) AND reply IS NOT NULL"
        replied = [row["key"] for row in calls if row["reply"] is not None]
        answered = {row[0] for row in select_in_batches(self._connection, query, replied)}
        for row in calls:
            if (row["key"] in answered and row["reply"] is not None) or self._has_common(row):
                continue  # it came in another transfer
            if row["reply"] is not None:
                answered.add(row["key"])
            texts = {name: row[name] and self._texts[row[name]] for name in ("reply", "reasoning", "changes")}
            changed = {"id": None, "messages": self._id_mapper.map_messages(row["messages"]), **texts}
            id_ = insert_call(self._connection, self._kinds, row | changed)
            for attempt in attempts.get(row["id"], ()):
                insert_row(self._connection, "attempts", attempt | {"call": id_})

    def _has_common(self, row: Row) -> bool:
        """Return whether the file already has a common call, which comes with every scenario that uses it.

        A copy of the call that was transferred while it was in progress is removed, so that the completed call replaces
        it.
        """
        if row["uid"] is None:
            return False
        known = self._connection.execute(
            "SELECT id, attempts IS NULL FROM kept_calls WHERE uid = ?", (row["uid"],)
        ).fetchone()
        if known is not None and known[1]:
            self._connection.execute("DELETE FROM attempts WHERE call = ?", (known[0],))
            self._connection.execute("DELETE FROM kept_calls WHERE id = ?", (known[0],))
            return False
        return known is not None

    def _replace_checkpoints(self) -> None:
        """Replace the thread's checkpoints in the file by those in the transfer."""
        threads: dict[int, int] = {}
        for row in self._transfer.of("threads"):
            known = self._connection.execute(
                "SELECT id FROM threads WHERE name = ? AND namespace = ?", (row["name"], row["namespace"])
            ).fetchone()
            threads[row["id"]] = known[0] if known else insert_row(self._connection, "threads", row | {"id": None})
        frames = {
            row["id"]: self._get_or_insert_hashed("checkpoint_frames", row)
            for row in self._transfer.of("checkpoint_frames")
        }
        for row in self._transfer.of("checkpoint_values"):
            content = self._id_mapper.map_texts(row["content"])
            self._values[row["id"]] = self._get_or_insert_hashed("checkpoint_values", row | {"content": content})
        for row in self._transfer.of("checkpoint_lists"):
            prefix = None if row["prefix"] is None else self._lists[row["prefix"]]
            changed = {"prefix": prefix, "elements": self._id_mapper.map_elements(row["elements"])}
            self._lists[row["id"]] = self._get_or_insert_hashed("checkpoint_lists", row | changed)
        placeholders = ",".join("?" * len(threads))
        for table in ("checkpoints", "pending_writes"):
            self._connection.execute(f"DELETE FROM {table} WHERE thread IN ({placeholders})", (*threads.values(),))
        for row in self._transfer.of("checkpoints"):
            changed = {
                "number": None,
                "thread": threads[row["thread"]],
                "frame": frames[row["frame"]],
                "held": self._id_mapper.map_elements(row["held"]),
            }
            insert_row(self._connection, "checkpoints", row | changed)
        for row in self._transfer.of("pending_writes"):
            value = self._id_mapper.map_write(row["value"])
            insert_row(self._connection, "pending_writes", row | {"thread": threads[row["thread"]], "value": value})

    def _get_or_insert_hashed(self, table: str, row: Row) -> int:
        """Return the id of a row that is identified by its hash; a new row is inserted."""
        known = self._connection.execute(f"SELECT id FROM {table} WHERE hash = ?", (row["hash"],)).fetchone()
        return int(known[0]) if known else insert_row(self._connection, table, row | {"id": None})
