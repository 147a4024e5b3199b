"""The ledger's table: every call a row, each message of a request once, replies found again by their call's key."""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from dialoom.prompts import ChatMessage
from dialoom.roles import Completion
from dialoom.roles.gateway import CallRecord

from .documents import canonical, digest
from .writer import Writer

_KNOWN_MESSAGES = 4096

Threads = Callable[[str], tuple[int, str | None]]
"""The scenario's position and the judging's name (or none) of a thread."""


class SQLiteLedger:
    """The gateway's ledger over the run's file."""

    def __init__(self, writer: Writer, reader: sqlite3.Connection, threads: Threads) -> None:
        self._writer = writer
        self._reader = reader
        self._threads = threads
        self._messages = _MessageIds()

    async def find(self, key: str) -> Completion | None:
        """The reply that a call of this identity got, if any."""
        query = (
            "SELECT reply, input_tokens, output_tokens, cached_tokens, cost, finish_reason FROM calls "
            "WHERE key = ? AND reply IS NOT NULL"
        )
        row = self._reader.execute(query, (bytes.fromhex(key),)).fetchone()
        return None if row is None else Completion(*row)

    async def record(self, record: CallRecord) -> None:
        """Keep a call; returns once it is durable."""
        await self._writer.submit(lambda connection: self._insert(connection, record))

    def _insert(self, connection: sqlite3.Connection, record: CallRecord) -> None:
        place, request, completion = record.place, record.request, record.completion
        position, judging = self._threads(place.scenario)
        row: dict[str, Any] = {
            "key": bytes.fromhex(record.key),
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
            "prompt_hash": request.prompt_hash,
            "temperature": request.temperature,
            "seed": request.seed,
            "messages": json.dumps([self._messages.id_of(connection, message) for message in request.messages]),
            "attempts": record.attempts,
            "latency": round(record.latency, 6),
            "error": record.error,
        }
        if completion is not None:
            row |= {
                "reply": completion.text,
                "finish_reason": completion.finish_reason,
                "input_tokens": completion.input_tokens,
                "output_tokens": completion.output_tokens,
                "cached_tokens": completion.cached_tokens,
                "cost": completion.cost,
            }
        names = ", ".join(row)
        connection.execute(f"INSERT INTO calls ({names}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))


class _MessageIds:
    """Ids of messages by their hashes, the lately used ones remembered."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, int] = OrderedDict()

    def id_of(self, connection: sqlite3.Connection, message: ChatMessage) -> int:
        hash_ = digest(canonical([message["role"], message["content"]]))
        if (known := self._known.get(hash_)) is not None:
            self._known.move_to_end(hash_)
            return known
        connection.execute(
            "INSERT OR IGNORE INTO messages (hash, role, content) VALUES (?, ?, ?)",
            (hash_, message["role"], message["content"]),
        )
        id_: int = connection.execute("SELECT id FROM messages WHERE hash = ?", (hash_,)).fetchone()[0]
        self._known[hash_] = id_
        if len(self._known) > _KNOWN_MESSAGES:
            self._known.popitem(last=False)
        return id_
