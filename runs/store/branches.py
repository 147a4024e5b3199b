"""The tables of the step debugger: branches of scenarios, and the calls that led to each checkpoint."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from dialoom.prompts import ChatMessage, FunctionCall, ToolDefinition
from dialoom.roles import Completion
from dialoom.roles.gateway.completions import deserialize_reply
from dialoom.roles.gateway.graphs import format_state

from .ledger import decode_request
from .texts import make_text_reader
from .writer import Writer

CallPlace = tuple[str, str, bool]
"""A call that led to a checkpoint: node, key in hexadecimal digits, and whether a person wrote the request."""

_NO_CALL: CallPlace = ("", "", False)

MAIN = "main"
"""The name of the scenario's own line of checkpoints, which the engine plays."""

NEXT_SAMPLE = "1 + max(scenarios.sample, {})".format(
    ", ".join(
        f"(SELECT coalesce(max({table}.sample), 0) FROM {table} WHERE scenario = scenarios.position)"
        for table in ("rejudgings", "branches", "calls")
    )
)
"""An SQL expression for queries over scenarios: the lowest sample number above all those in use."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A named line of checkpoints of a scenario.

    Attributes:
        name: `main`, or the name that the user chose.
        thread: The checkpoints' thread.
        head: The id of the branch's latest checkpoint; `None` if there is none yet.
        sample: The sample number, which is above 0 after resampling; replies are not shared between samples.
        models: The models that replace those of the run on this branch, by role.
        origin: The branch that it was forked from.
    """

    name: str
    thread: str
    head: str | None
    sample: int = 0
    models: Mapping[str, str] = field(default_factory=dict)
    origin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """A call that led to a checkpoint, as recorded in the ledger, without its texts.

    Attributes:
        id: The row in the ledger.
        is_edited: Whether its request was written by a person instead of rendered from the prompt.
        seconds: Its duration, including the waits between attempts.
        branch: The only branch that uses the call; `None` if the scenario's outcome uses it.
        is_common: Whether the call belongs to no scenario, because it was made once for all scenarios with the same
            request.
    """

    id: int
    key: str
    node: str
    ordinal: int
    ask: int
    role: str
    model: str
    prompt: str
    sample: int
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    seconds: float | None
    replays: int
    is_edited: bool
    branch: str | None
    is_common: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCall(MadeCall):
    """A call that led to a checkpoint, with its texts.

    Attributes:
        messages: The request.
        tools: The definitions of the tools that the request offered.
        answer: The reply with its tool calls; `None` if there was none.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...]
    answer: Completion | None

    @property
    def reply(self) -> str | None:
        """The reply's text."""
        return None if self.answer is None else self.answer.text

    @property
    def tool_calls(self) -> tuple[FunctionCall, ...]:
        """The reply's tool calls."""
        return () if self.answer is None else self.answer.tool_calls


@dataclass(frozen=True, slots=True)
class Point:
    """A checkpoint with its position among the checkpoints of a scenario.

    Attributes:
        number: Its number in order of creation, over all branches.
        parent: The id of the checkpoint that it follows.
        source: LangGraph's term for its origin: `input`, `loop` (a step), `update` (an edit), `fork` (a rewind).
        threads: The threads that contain it.
    """

    number: int
    id: str
    parent: str | None
    source: str
    threads: frozenset[str]


class BranchReader:
    """Read access to the branches of a run's scenarios.

    Args:
        reader: The connection that reads the file.
    """

    def __init__(self, reader: sqlite3.Connection) -> None:
        self._reader = reader

    def of(self, scenario: int) -> list[Branch]:
        """Return the branches of a scenario except `main`, oldest first."""
        rows = self._reader.execute("SELECT * FROM branches WHERE scenario = ? ORDER BY rowid", (scenario,))
        return [
            Branch(row["name"], row["thread"], row["head"], row["sample"], json.loads(row["models"]), row["origin"])
            for row in rows
        ]

    def points(self, threads: Iterable[str]) -> dict[str, Point]:
        """Return the checkpoints of threads by id, oldest first; a checkpoint in several threads is returned once."""
        from .checkpoints.items import decode_id

        rows = self._reader.execute(
            "SELECT checkpoints.id, parent, metadata ->> 'source' AS source, json_group_array(name) AS names "
            "FROM checkpoints JOIN checkpoint_frames AS frames ON frames.id = frame "
            "JOIN threads ON threads.id = thread "
            "WHERE namespace = '' AND name IN (SELECT value FROM json_each(?)) "
            "GROUP BY checkpoints.id ORDER BY checkpoints.id",
            (json.dumps(list(threads)),),
        ).fetchall()
        points = [
            Point(
                number,
                decode_id(row["id"]),
                None if row["parent"] is None else decode_id(row["parent"]),
                row["source"],
                frozenset(json.loads(row["names"])),
            )
            for number, row in enumerate(rows)
        ]
        return {point.id: point for point in points}

    def next_sample(self, scenario: int) -> int:
        """Return a sample number that no call of the scenario uses."""
        return int(
            self._reader.execute(f"SELECT {NEXT_SAMPLE} FROM scenarios WHERE position = ?", (scenario,)).fetchone()[0]
        )

    def indexed(self, scenario: int) -> set[str]:
        """Return the ids of the checkpoints for which the calls that led to them are recorded."""
        query = "SELECT DISTINCT checkpoint FROM step_calls WHERE scenario = ?"
        return {row[0] for row in self._reader.execute(query, (scenario,))}

    def has_player_states(self, scenario: int) -> bool:
        """Return whether a player's state was stored for a scenario, on any branch."""
        return (
            self._reader.execute("SELECT 1 FROM player_states WHERE scenario = ? LIMIT 1", (scenario,)).fetchone()
            is not None
        )

    def player_states(self, calls: Iterable[MadeCall]) -> dict[str, tuple[str, Any]]:
        """Return the model and state of each stateful player after its last call among the given calls, by role."""
        found: dict[str, tuple[str, Any]] = {}
        for call in calls:
            query = "SELECT state FROM player_states WHERE key = ?"
            if (row := self._reader.execute(query, (bytes.fromhex(call.key),)).fetchone()) is not None:
                found[call.role] = call.model, format_state(row[0])
        return found

    def calls_of(self, scenario: int, checkpoint: str) -> list[MadeCall] | None:
        """Return the calls that led to a checkpoint; `None` if that was not recorded, as for the engine's steps."""
        noted = "SELECT 1 FROM step_calls WHERE scenario = ? AND checkpoint = ? LIMIT 1"
        if self._reader.execute(noted, (scenario, checkpoint)).fetchone() is None:
            return None
        return [
            _made_call(row)
            for row in self._reader.execute(
                "SELECT calls.*, is_edited, step_calls.node AS at_node, coalesce(ordinal, (SELECT min(ordinal) FROM "
                "common_uses AS used WHERE used.key = calls.key AND used.scenario = step_calls.scenario "
                "AND used.node = step_calls.node)) AS at_ordinal "
                "FROM calls JOIN step_calls ON step_calls.key = calls.key AND reply IS NOT NULL "
                "WHERE step_calls.scenario = ? AND checkpoint = ? ORDER BY number",
                (scenario, checkpoint),
            )
        ]

    def calls_at(self, scenario: int, step: int, nodes: Iterable[str]) -> list[MadeCall]:
        """Return the calls that some nodes made at a step of `main`."""
        rows = self._reader.execute(_CALLS_AT, (scenario, step, json.dumps(sorted(nodes))))
        return [_made_call(row) for row in rows.fetchall()]

    def with_texts(self, calls: Iterable[MadeCall]) -> list[StepCall]:
        """Return calls with their requests and replies, which take most of the time to read."""
        return [self._with_texts(call) for call in calls]

    def _with_texts(self, call: MadeCall) -> StepCall:
        query = "SELECT messages, reply, reasoning, finish_reason FROM calls WHERE id = ?"
        row = self._reader.execute(query, (call.id,)).fetchone()
        request = decode_request(self._reader, row["messages"])
        reply, reasoning = (
            None if row[each] is None else make_text_reader(self._reader)(row[each]) for each in ("reply", "reasoning")
        )
        rest = {"reasoning": reasoning, "finish_reason": row["finish_reason"]}
        return StepCall(
            **{each.name: getattr(call, each.name) for each in fields(call)},
            messages=request.messages,
            tools=request.tools,
            answer=None if reply is None else deserialize_reply(Completion(reply, **rest)),
        )


def _made_call(row: sqlite3.Row) -> MadeCall:
    return MadeCall(
        id=row["id"],
        key=row["key"].hex(),
        node=row["at_node"],
        ordinal=row["at_ordinal"],
        ask=row["ask"],
        role=row["role"],
        model=row["model"],
        prompt=row["prompt"],
        sample=row["sample"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cost=row["cost"],
        seconds=row["latency"],
        replays=row["replays"],
        is_edited=bool(row["is_edited"]),
        branch=row["branch"],
        is_common=row["scenario"] is None,
    )


class BranchTable(BranchReader):
    """Read and write access to the branches of a run's scenarios.

    Args:
        reader: The connection that reads the file.
        writer: The file's writer.
    """

    def __init__(self, reader: sqlite3.Connection, writer: Writer) -> None:
        super().__init__(reader)
        self._writer = writer

    async def keep(self, scenario: int, branch: Branch) -> None:
        """Save a branch, which may be new."""
        row = (scenario, branch.name, branch.thread, branch.head, branch.sample, json.dumps(dict(branch.models)))
        upsert = (
            "INSERT INTO branches (scenario, name, thread, head, sample, models, origin) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (scenario, name) DO UPDATE SET head = excluded.head, sample = excluded.sample, "
            "models = excluded.models"
        )
        await self._writer.run(lambda connection: connection.execute(upsert, (*row, branch.origin)).rowcount)

    async def keep_calls(self, scenario: int, led: Mapping[str, Sequence[CallPlace]]) -> None:
        """Record the calls that led to checkpoints, by checkpoint id; an empty sequence of calls is recorded too."""
        rows = [
            (scenario, checkpoint, number, node, bytes.fromhex(key[:32]), is_edited)
            for checkpoint, calls in led.items()
            for number, (node, key, is_edited) in enumerate(calls or [_NO_CALL])
        ]
        insert = "INSERT OR REPLACE INTO step_calls VALUES (?, ?, ?, ?, ?, ?)"
        await self._writer.run(lambda connection: connection.executemany(insert, rows).rowcount)

    async def keep_only(self, thread: str, line: Iterable[str]) -> None:
        """Delete all checkpoints of a thread except the given ones."""
        from .checkpoints.items import encode_id

        query = "SELECT id FROM checkpoints WHERE thread = ?"
        retained = {encode_id(id_) for id_ in line}

        def work(connection: sqlite3.Connection) -> None:
            (number,) = connection.execute(
                "SELECT id FROM threads WHERE name = ? AND namespace = ''", (thread,)
            ).fetchone()
            others = [
                (number, id_) for (id_,) in connection.execute(query, (number,)).fetchall() if id_ not in retained
            ]
            connection.executemany("DELETE FROM checkpoints WHERE thread = ? AND id = ?", others)
            connection.executemany("DELETE FROM pending_writes WHERE thread = ? AND checkpoint = ?", others)

        await self._writer.run(work)

    async def drop_writes(self, thread: str, checkpoint: str) -> None:
        """Delete the pending writes of the tasks after a checkpoint, so that all of them run again."""
        from .checkpoints.items import encode_id

        delete = (
            "DELETE FROM pending_writes WHERE checkpoint = ? "
            "AND thread IN (SELECT id FROM threads WHERE name = ? AND namespace = '')"
        )
        await self._writer.run(lambda connection: connection.execute(delete, (encode_id(checkpoint), thread)).rowcount)


_AT = """step = ?2 AND {0}.judging IS NULL AND {0}.branch IS NULL AND {0}.node IN (SELECT value FROM json_each(?3))
    AND {0}.sample >= (SELECT take FROM scenarios WHERE position = ?1) AND reply IS NOT NULL"""

# Only the call with the latest sample number at each place is selected, which is the one that the engine used.
_CALLS_AT = f"""
SELECT * FROM (SELECT *, max(at_sample) OVER (PARTITION BY at_node, at_ordinal) AS latest FROM (
SELECT calls.*, 0 AS is_edited, node AS at_node, ordinal AS at_ordinal, sample AS at_sample
FROM calls WHERE scenario = ?1 AND {_AT.format("calls")}
UNION ALL
SELECT calls.*, 0, used.node, used.ordinal, used.sample
FROM common_uses AS used JOIN calls USING (key) WHERE used.scenario = ?1 AND used.{_AT.format("used")}
)) WHERE at_sample = latest ORDER BY at_node, at_ordinal, ask, id"""


def exchange_calls(
    connection: sqlite3.Connection, scenario: int, before: str, after: str, calls: Sequence[int]
) -> None:
    """Assign a branch's calls to the scenario's outcome, and the former calls of the outcome to their own branch.

    Args:
        connection: The writer's connection.
        scenario: The scenario's position.
        before: The branch from which the outcome came so far.
        after: The branch from which it comes now.
        calls: The ids of the calls on the line of the branch `after`. For `main` the list may be incomplete: all calls
            that were assigned to `main` when another branch was promoted are assigned to the outcome again.
    """
    ids = json.dumps(list(calls))
    these = "id IN (SELECT value FROM json_each(?))"
    which = "scenario = ? AND kind IN (SELECT kinds.id FROM kinds WHERE judging IS NULL) AND"
    connection.execute(
        f"UPDATE kept_calls SET branch = ? WHERE {which} branch IS NULL AND NOT {these}", (before, scenario, ids)
    )
    connection.execute(f"UPDATE kept_calls SET branch = NULL WHERE {which} {these}", (scenario, ids))
    if after == MAIN:
        connection.execute(f"UPDATE kept_calls SET branch = NULL WHERE {which} branch = ?", (scenario, MAIN))
