"""The ledger of calls."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import uuid4

from pydantic import TypeAdapter

from dialoom.prompts import ChatMessage, ToolDefinition
from dialoom.prompts.messages import get_extra_fields
from dialoom.roles import MAX_ASKS, CallPlace, Completion
from dialoom.roles.gateway import Attempt, CallRecord, Request
from dialoom.roles.gateway.calls import USAGE_FIELDS, PlayerState
from dialoom.roles.gateway.completions import deserialize_reply, serialize_reply

from .passages import TOOLS, Passages, StoredMessage, find_extra_fields, make_passage_reader, read_messages
from .references import ReadText, encode_canonical
from .schema import insert_row
from .texts import Texts, make_text_reader
from .writer import Writer


class CallKind(NamedTuple):
    """The place of a call in its graph, with its role, model and prompt. A common call has no place.

    Attributes:
        judging: The set of judgements, if it is not the run's own.
        ask: The number of the request at this place, from 1: a reply that cannot be parsed is requested again.
        sample: The sample number; replies are not shared between samples.
        prompt: The id of the prompt.
    """

    judging: str | None
    node: str | None
    step: int | None
    ordinal: int | None
    ask: int
    sample: int
    role: str
    model: str
    prompt: str
    temperature: float | None


_FIND_KIND = f"SELECT id FROM kinds WHERE {' AND '.join(f'{name} IS ?' for name in CallKind._fields)}"


class CallKinds:
    """The table `kinds`, for the writer's jobs. Ids are cached, because a run has only some dozens of kinds."""

    def __init__(self) -> None:
        self._ids: dict[CallKind, int] = {}

    def get_or_insert(self, connection: sqlite3.Connection, kind: CallKind) -> int:
        """Return the id of a kind, inserting the kind if it is new."""
        if (known := self._ids.get(kind)) is not None:
            return known
        row = connection.execute(_FIND_KIND, kind).fetchone()
        id_ = self._ids[kind] = insert_row(connection, "kinds", kind._asdict()) if row is None else int(row[0])
        return id_

    def clear(self) -> None:
        """Clear the cache, after cached rows were rolled back."""
        self._ids.clear()


@dataclass(frozen=True, slots=True)
class Booking:
    """The scenario, set of judgements and branch to which the calls of a thread are assigned.

    Attributes:
        position: The scenario's position.
        judging: The set of judgements, if it is not the run's own.
        branch: The branch on which the calls are made, if it is not the scenario's own line.
        line: The keys of the calls before them, as far as they are known.
    """

    position: int
    judging: str | None = None
    branch: str | None = None
    line: Sequence[str] = ()


Threads = Mapping[str, Booking]
"""The current booking of each thread that is in progress."""


class SQLiteLedger:
    """The gateway's ledger over the run's file.

    A row with neither a reply nor an error is a call that was sent and not answered. Either it is in progress, or the
    process crashed, and the provider may have billed the call.
    """

    def __init__(self, writer: Writer, threads: Threads) -> None:
        self._writer = writer
        self._texts = writer.get_cache(Texts)
        self._passages = writer.get_cache(Passages)
        self._kinds = writer.get_cache(CallKinds)
        self._threads = threads

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:
        """Return the recorded reply for this key, counted as a replay, or else begin a call and return its id.

        In both cases, the change of the file is durable on return.
        """

        def work(connection: sqlite3.Connection) -> Completion | int:
            return self._replay(connection, key, place) or self._insert(connection, key, place, request)

        return await self._writer.submit(work)

    async def find(self, key: str, place: CallPlace) -> Completion | None:
        """Return the recorded reply for this key, counted as a replay; `None` if there is none. No call is begun.

        The use of a common call does not count as a replay; its place is recorded instead.
        """
        return await self._writer.submit(lambda connection: self._replay(connection, key, place))

    async def player_state(self, place: CallPlace, player: bytes, marks: Sequence[bytes]) -> PlayerState | None:
        """Return a player's state at the first of the given points of the conversation for which one is recorded.

        If several branches have states after equal conversations, the state of a call on the booked line is preferred,
        then that of the branch, then that of the sample. If no state is recorded, the result is the last state in the
        latest of the person's earlier conversations that has one.
        """
        booking = self._threads[place.scenario]
        line = json.dumps(booking.line)

        def work(connection: sqlite3.Connection) -> PlayerState | None:
            for mark in marks:
                parameters = (booking.position, player, mark, line, booking.branch, place.sample)
                row = connection.execute(_FIND_STATE, parameters).fetchone()
                if row is not None:
                    return PlayerState(player, mark, row[0])
            row = connection.execute(_FIND_EARLIER_STATE, (booking.position, player)).fetchone()
            return None if row is None else PlayerState(player, None, row[0])

        return await self._writer.submit(work)

    async def is_open(self, key: str, place: CallPlace) -> bool:
        """Return whether a call with this key was begun and has no reply."""
        row = (self._threads[place.scenario].position, _encode_key(key))
        return await self._writer.submit(
            lambda connection: connection.execute(_FIND_OPEN_CALL, row).fetchone() is not None
        )

    async def record_failed_attempt(self, id_: int, attempt: Attempt) -> None:
        """Record a failed attempt. It is durable when this returns."""
        row = (id_, attempt.number, round(attempt.latency, 4), attempt.error, attempt.retry_after)
        insert = "INSERT INTO attempts (call, number, latency, error, retry_after) VALUES (?, ?, ?, ?, ?)"
        await self._writer.submit(lambda connection: connection.execute(insert, row).rowcount)

    async def record(self, id_: int, record: CallRecord) -> None:
        """Record the result of a call. It is durable when this returns."""
        await self._writer.submit(lambda connection: self._store_result(connection, id_, record))

    def _replay(self, connection: sqlite3.Connection, key: str, place: CallPlace) -> Completion | None:
        row = connection.execute(_FIND_CALL, (_encode_key(key),)).fetchone()
        if row is None:
            return None
        if place.is_common:
            self._record_use(connection, key, place)
        else:
            connection.execute("UPDATE kept_calls SET replays = replays + 1 WHERE id = ?", (row[0],))
        bookings = list(self._threads.values())  # copied at once, because the event loop's thread may change it
        if row[1] is not None and any(each.position == row[2] and each.branch is None for each in bookings):
            # `main`, which is in progress, has reached a call that another branch had already made.
            connection.execute("UPDATE kept_calls SET branch = NULL WHERE id = ?", (row[0],))
        return deserialize_reply(Completion(*tuple(row)[3:]))

    def _insert(self, connection: sqlite3.Connection, key: str, place: CallPlace, request: Request) -> int:
        booking = self._threads[place.scenario]
        messages = [self._store_message(connection, message) for message in request.messages]
        if request.tools:
            messages.insert(0, (TOOLS, self._texts.get_or_insert(connection, encode_canonical(list(request.tools)))))
        node, step, ordinal = _NO_PLACE if place.is_common else (place.node, place.step, place.ordinal)
        kind = CallKind(
            booking.judging,
            node,
            step,
            ordinal,
            place.ask,
            place.sample,
            request.role,
            request.model,
            request.prompt_id,
            request.temperature,
        )
        row = (
            _encode_key(key),
            *((None, None) if place.is_common else (booking.position, booking.branch)),
            self._kinds.get_or_insert(connection, kind),
            request.seed,
            self._passages.encode(connection, messages),
            uuid4().bytes if place.is_common else None,
        )
        if place.is_common:
            self._record_use(connection, key, place)
        return int(connection.execute(_INSERT_CALL, row).lastrowid or 0)

    def _store_message(self, connection: sqlite3.Connection, message: ChatMessage) -> StoredMessage:
        stored = (message["role"], self._texts.get_or_insert(connection, message["content"]))
        rest = get_extra_fields(message)
        return (*stored, self._texts.get_or_insert(connection, encode_canonical(rest))) if rest else stored

    def _record_use(self, connection: sqlite3.Connection, key: str, place: CallPlace) -> None:
        """Record where a common call's reply is used, unless the use is already recorded, as after a crash."""
        booking = self._threads[place.scenario]
        where = (place.node, place.step, place.ordinal, place.ask)
        connection.execute(_RECORD_USE, (booking.position, booking.judging, booking.branch, *where, _encode_key(key)))

    def _store_result(self, connection: sqlite3.Connection, id_: int, record: CallRecord) -> None:
        row: dict[str, Any] = {
            "attempts": record.attempts,
            "latency": round(record.latency, 4),
            "error": record.error,
            "changes": record.changes and self._texts.get_or_insert(connection, record.changes),
        }
        if (completion := record.completion) is not None:
            row |= {
                "reply": self._texts.get_or_insert(connection, serialize_reply(completion)),
                "reasoning": completion.reasoning and self._texts.get_or_insert(connection, completion.reasoning),
                "changes": completion.changes and self._texts.get_or_insert(connection, completion.changes),
                "finish_reason": completion.finish_reason,
            }
        if (counted := completion or record.billed) is not None:
            row |= {name: getattr(counted, name) for name in USAGE_FIELDS}
        columns = ", ".join(f"{name} = ?" for name in row)
        connection.execute(f"UPDATE kept_calls SET {columns} WHERE id = ?", (*row.values(), id_))
        if completion is not None and (state := completion.state) is not None:
            connection.execute(_STORE_STATE, (state.player, state.mark, state.content, id_))


_NO_PLACE = (None, None, None)
"""The place of a common call, which has no scenario, node, step or ordinal."""

_FIND_CALL = """
SELECT kept_calls.id, branch, scenario, content, input_tokens, output_tokens, cached_tokens, cost, finish_reason,
    (SELECT content FROM texts WHERE id = reasoning)
FROM kept_calls JOIN texts ON texts.id = reply WHERE key = ? AND reply IS NOT NULL"""

_FIND_OPEN_CALL = "SELECT 1 FROM kept_calls WHERE scenario = ? AND key = ? AND reply IS NULL"

_INSERT_CALL = "INSERT INTO kept_calls (key, scenario, branch, kind, seed, messages, uid) VALUES (?, ?, ?, ?, ?, ?, ?)"

_JOIN_CALLS = "LEFT JOIN kept_calls ON kept_calls.key = player_states.key AND reply IS NOT NULL"

_FIND_STATE = f"""
SELECT state FROM player_states {_JOIN_CALLS} WHERE player_states.scenario = ? AND player = ? AND mark = ? ORDER BY
    hex(player_states.key) IN (SELECT upper(value) FROM json_each(?)) DESC, branch IS ? DESC, sample = ? DESC, sample
LIMIT 1"""

LAST_STATE_IDS = f"""
WITH RECURSIVE earlier (position, age) AS (
    SELECT after, 1 FROM scenarios WHERE position = ?1 AND after IS NOT NULL
    UNION ALL
    SELECT after, age + 1 FROM earlier JOIN scenarios USING (position) WHERE after IS NOT NULL
)
SELECT id FROM (
    SELECT player_states.id, player, row_number() OVER (PARTITION BY player ORDER BY age, player_states.id DESC) AS nth
    FROM earlier JOIN player_states ON player_states.scenario = earlier.position
    LEFT JOIN scenarios USING (position) {_JOIN_CALLS}
    WHERE kept_calls.branch IS NULL AND player_states.sample >= coalesce(take, 0)
) WHERE nth = 1"""
"""The query for the ids of each player's last state in the person's conversations before a scenario.

A worker's file has such states without the conversations to which they belong.
"""

_FIND_EARLIER_STATE = f"SELECT state FROM player_states WHERE id IN ({LAST_STATE_IDS}) AND player = ?2"

_STORE_STATE = """
INSERT OR REPLACE INTO player_states (scenario, sample, player, mark, key, state)
SELECT scenario, sample, ?1, ?2, key, ?3 FROM kept_calls JOIN kinds ON kinds.id = kind WHERE kept_calls.id = ?4"""

_RECORD_USE = """
INSERT INTO common_uses (scenario, sample, judging, branch, node, step, ordinal, ask, key)
SELECT position, sample, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM scenarios WHERE position = ?1 AND NOT EXISTS (
    SELECT 1 FROM common_uses AS used WHERE scenario = ?1 AND used.sample = scenarios.sample AND judging IS ?2
    AND used.branch IS ?3 AND (node, step, ordinal, ask, key) = (?4, ?5, ?6, ?7, ?8)
)"""


def insert_call(connection: sqlite3.Connection, kinds: CallKinds, call: Mapping[str, Any]) -> int:
    """Insert a call from another file, given as a row of `calls`; return its id, which is assigned if missing."""
    kind = CallKind(**{name: call[name] for name in CallKind._fields})
    own = {name: value for name, value in call.items() if name not in CallKind._fields}
    return insert_row(connection, "kept_calls", own | {"kind": kinds.get_or_insert(connection, kind)})


def _encode_key(key: str) -> bytes:
    """Return the first 16 bytes of a call's key, which is given in hex digits."""
    return bytes.fromhex(key[:32])


_PAGE_SIZE = 500


def _build_call(row: sqlite3.Row) -> dict[str, Any]:
    call = dict(row)
    reply = None if call["reply"] is None else deserialize_reply(Completion(call["reply"]))
    call["reply"] = None if reply is None else reply.text
    return call | {"tool_calls": [] if reply is None else list(reply.tool_calls)}


@dataclass(frozen=True, slots=True)
class CommonCall:
    """A call that belongs to no scenario.

    Attributes:
        node: The node where a scenario used it.
        scenarios: The number of scenarios that used it.
    """

    role: str
    model: str
    prompt: str
    node: str
    scenarios: int


_COMMON_CALLS = """
SELECT role, model, prompt, used.node, (SELECT count(DISTINCT scenario) FROM common_uses WHERE key = calls.key)
FROM common_uses AS used JOIN calls USING (key)
WHERE used.scenario = ? AND used.judging IS NULL AND used.branch IS NULL AND reply IS NOT NULL
GROUP BY calls.id ORDER BY min(used.step), used.node, min(used.ordinal), calls.id"""

_FAULTY = """
SELECT outcomes.scenario FROM outcomes WHERE faults IS NOT NULL AND (faults != '[]' OR EXISTS
    (SELECT 1 FROM calls WHERE calls.scenario = outcomes.scenario AND ask > ? AND branch IS NULL)) ORDER BY 1"""

_SELECT_CALLS = """
SELECT calls.id AS call, position + 1 AS number, scenarios.id AS id, judging, calls.branch AS branch, node, step,
    ordinal, role, model, prompt, calls.sample AS sample, ask, texts.content AS reply, calls.error AS error,
    finish_reason, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, attempts, latency, replays
FROM calls LEFT JOIN scenarios ON position = calls.scenario LEFT JOIN texts ON texts.id = reply"""
_CALLS = _SELECT_CALLS + " WHERE calls.id > ? ORDER BY calls.id LIMIT ?"
_SCENARIO_CALLS = _SELECT_CALLS + " WHERE calls.scenario = ? AND calls.sample >= take ORDER BY calls.id"


_TOOLS = TypeAdapter(list[dict[str, Any]])
_MESSAGE = TypeAdapter(ChatMessage)


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """The messages and tools of a request that was sent to a model.

    Attributes:
        messages: The messages in order.
        tools: The definitions of the tools that the request offered.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()


def decode_request(connection: sqlite3.Connection, column: str) -> RecordedRequest:
    """Return the request that the column `messages` of a call encodes."""
    text = make_text_reader(connection)
    messages = read_messages(column, make_passage_reader(connection))
    tools = _TOOLS.validate_json(text(messages.pop(0)[1])) if messages[:1] and messages[0][0] == TOOLS else []
    return RecordedRequest(tuple(_build_message(each, text) for each in messages), tuple(tools))


def _build_message(stored: StoredMessage, text: ReadText) -> ChatMessage:
    message: ChatMessage = {"role": stored[0], "content": text(stored[1])}
    if (rest := find_extra_fields(stored)) is not None:
        message = _MESSAGE.validate_python({**message, **json.loads(text(rest))})
    return message


class CallReader:
    """The reader of a run's calls."""

    _reader: sqlite3.Connection

    def calls(self) -> Iterator[dict[str, Any]]:
        """Yield every call in the order in which the calls began, without its request.

        Yields:
            `call` (its row), `number` (the scenario's place in the plan, from 1), `id`, `node`, `step`, `ordinal` (all
            `None` for a common call, which belongs to no scenario), `role`, `model`, `prompt`, `sample`, `ask`,
            `judging` (a later set's name), `branch`, `reply` (its text), `tool_calls`, `error`, `finish_reason`,
            tokens, `cost` (US dollars), `attempts`, `latency` (seconds) and `replays`.
        """
        after = 0
        while rows := self._reader.execute(_CALLS, (after, _PAGE_SIZE)).fetchall():
            after = rows[-1]["call"]
            yield from map(_build_call, rows)

    def calls_of(self, position: int) -> list[dict[str, Any]]:
        """Return one scenario's calls since it was last started from its beginning, with the fields of `calls`."""
        return [_build_call(row) for row in self._reader.execute(_SCENARIO_CALLS, (position,))]

    def request(self, call: int) -> RecordedRequest | None:
        """Return a call's request, by its row in the ledger; `None` if there is no such call."""
        query = "SELECT messages FROM calls WHERE id = ?"
        row = self._reader.execute(query, (int(call),)).fetchone()  # SQLite would not match a numpy integer
        return None if row is None else decode_request(self._reader, row["messages"])

    def find_faulty(self) -> list[int]:
        """Return the positions of the scenarios with faults, or with lines that were requested again due to faults."""
        return [position for (position,) in self._reader.execute(_FAULTY, (MAX_ASKS,))]

    def common_calls(self, position: int) -> list[CommonCall]:
        """Return the answered common calls that a scenario used in the run itself, in the order of its steps."""
        return [CommonCall(*row) for row in self._reader.execute(_COMMON_CALLS, (position,))]
