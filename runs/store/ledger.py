"""The ledger's table: every call a row, written before it is sent and filled in when it is answered."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from dialoom.roles import CallPlace, Completion
from dialoom.roles.gateway import CallRecord, Request

from .texts import Texts
from .writer import Writer

Threads = Callable[[str], tuple[int, str | None]]
"""The scenario's position and the judging's name (or none) of a thread."""


class SQLiteLedger:
    """The gateway's ledger over the run's file.

    A row with neither a reply nor an error is a call that was sent and not answered: it is under way, or a crash came
    in between and nobody can know whether the provider has billed it.
    """

    def __init__(self, writer: Writer, reader: sqlite3.Connection, texts: Texts, threads: Threads) -> None:
        self._writer = writer
        self._reader = reader
        self._texts = texts
        self._threads = threads

    async def find(self, key: str) -> Completion | None:
        """The reply that a call of this identity got, if any; that it was replayed is counted."""
        row = self._reader.execute(_FIND, (_key(key),)).fetchone()
        if row is None:
            return None
        replayed = "UPDATE calls SET replays = replays + 1 WHERE id = ?"
        await self._writer.submit(lambda connection: connection.execute(replayed, (row["id"],)))
        return Completion(*tuple(row)[1:])

    async def begin(self, key: str, place: CallPlace, request: Request) -> int:
        """Write down that a call is about to be sent; durable on return."""
        return await self._writer.submit(self._texts.forgetful(lambda c: self._insert(c, key, place, request)))

    async def record(self, id_: int, record: CallRecord) -> None:
        """Write down what came of it; durable on return."""
        await self._writer.submit(self._texts.forgetful(lambda connection: self._fill_in(connection, id_, record)))

    def _insert(self, connection: sqlite3.Connection, key: str, place: CallPlace, request: Request) -> int:
        position, judging = self._threads(place.scenario)
        messages = [
            (message["role"], self._texts.id_of(connection, message["content"])) for message in request.messages
        ]
        row: dict[str, Any] = {
            "key": _key(key),
            "scenario": position,
            "judging": judging,
            "node": place.node,
            "step": place.step,
            "ordinal": place.ordinal,
            "ask": place.ask,
            "sample": place.sample,
            "role": request.role,
            "model": request.model,
            "prompt": request.prompt_id,
            "temperature": request.temperature,
            "seed": request.seed,
            "messages": json.dumps(messages, separators=(",", ":")),
        }
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        cursor = connection.execute(f"INSERT INTO calls ({names}) VALUES ({marks})", tuple(row.values()))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _fill_in(self, connection: sqlite3.Connection, id_: int, record: CallRecord) -> None:
        row: dict[str, Any] = {
            "attempts": record.attempts,
            "latency": round(record.latency, 4),
            "error": record.error,
        }
        if (completion := record.completion) is not None:
            row |= {
                "reply": self._texts.id_of(connection, completion.text),
                "finish_reason": completion.finish_reason,
                "input_tokens": completion.input_tokens,
                "output_tokens": completion.output_tokens,
                "cached_tokens": completion.cached_tokens,
                "cost": completion.cost,
            }
        columns = ", ".join(f"{name} = ?" for name in row)
        connection.execute(f"UPDATE calls SET {columns} WHERE id = ?", (*row.values(), id_))


_FIND = """
SELECT calls.id, content, input_tokens, output_tokens, cached_tokens, cost, finish_reason
FROM calls JOIN texts ON texts.id = reply WHERE key = ? AND reply IS NOT NULL"""


def _key(key: str) -> bytes:
    """The first 16 bytes of the call's identity."""
    return bytes.fromhex(key[:32])
