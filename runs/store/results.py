"""Writing outcomes, judgements and failures."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from dialoom.graphs import Judgement, Line, Outcome, Scenario
from dialoom.grouping import group_pairs

from .branches import MAIN, exchange_calls
from .episodes import PromotedBranch
from .judgement_sets import OWN_JUDGEMENTS
from .passages import Passages, StoredMessage
from .plan import JudgeWork, PlayWork, Work, insert_recorded
from .references import encode_canonical, replace_texts
from .texts import Texts
from .writer import Writer


def insert_judgements(
    connection: sqlite3.Connection, position: int, judgement_set: str, judgements: Iterable[Judgement], after: int = -1
) -> None:
    """Add a scenario's judgements to a set, which must not have judged these subjects yet.

    Args:
        connection: The writer's connection.
        position: The scenario's position.
        judgement_set: The set's name.
        judgements: The judgements in the order in which they were made.
        after: The last ordinal that is already used.
    """
    rows = [
        (position, judgement_set, ordinal, judgement.metric, judgement.target, judgement.turn, *_verdict(judgement))
        for ordinal, judgement in enumerate(judgements, start=after + 1)
    ]
    connection.executemany(f"INSERT INTO judgements VALUES ({', '.join('?' * 10)})", rows)


def replace_unparsed(
    connection: sqlite3.Connection, position: int, judgement_set: str, judgements: Iterable[Judgement]
) -> None:
    """Replace each unparsed judgement by a new one with the same metric, target and turn; several are matched in order.

    A new judgement of a subject without a judgement is appended, because some subjects are judged only after another
    judgement. A new judgement of a subject whose judgement was parsed is ignored.
    """
    query = (
        "SELECT ordinal, metric, target, turn, status, explanation FROM judgements WHERE scenario = ? AND judging = ? "
        "ORDER BY ordinal"
    )
    update = (
        "UPDATE judgements SET score = ?, is_verdict = ?, status = ?, explanation = ? "
        "WHERE scenario = ? AND judging = ? AND ordinal = ?"
    )
    rows = [(row[0], tuple(row[1:4]), row[4], row[5]) for row in connection.execute(query, (position, judgement_set))]
    stands = {(thing, explanation) for _, thing, status, explanation in rows if status != "unparsed"}
    named = (((each.metric, each.target, each.turn), each) for each in judgements)
    made = group_pairs((thing, each) for thing, each in named if (thing, each.explanation) not in stands)
    for ordinal, thing, status, _ in rows:
        if status == "unparsed" and (again := made.get(thing)):
            connection.execute(update, (*_verdict(again.pop(0)), position, judgement_set, ordinal))
    things = {thing for thing, _ in stands}
    new = [each for thing, left in made.items() if thing not in things for each in left]
    last = max((ordinal for ordinal, *_ in rows), default=-1)
    insert_judgements(connection, position, judgement_set, new, after=last)


def _verdict(judgement: Judgement) -> tuple[float | None, bool, str, str]:
    """Return the columns `score`, `is_verdict`, `status` and `explanation` of a judgement."""
    score = judgement.score
    return None if score is None else float(score), isinstance(score, bool), judgement.status, judgement.explanation


class Results:
    """The writer of results. Each method runs one transaction, which is durable on return.

    Args:
        writer: The file's writer.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._texts = writer.get_cache(Texts)
        self._passages = writer.get_cache(Passages)

    async def finish(self, work: Work, outcome: Outcome) -> None:
        """Save the result of a piece of work: the outcome of a played scenario, or the judgements of a judged one.

        Args:
            work: The work.
            outcome: The outcome, with its judgements.

        Raises:
            StoreError: If the file cannot be written.
        """

        def keep(connection: sqlite3.Connection) -> None:
            judgements = outcome.judgements
            match work:
                case PlayWork(position):
                    self._insert_outcome(connection, position, outcome)
                    connection.execute("UPDATE scenarios SET state = 'done' WHERE position = ?", (position,))
                    insert_judgements(connection, position, OWN_JUDGEMENTS, judgements)
                case JudgeWork(position, judgement_set=name, is_repeated=True):
                    replace_unparsed(connection, position, name, judgements)
                    _end_rejudging(connection, work, "done")
                case JudgeWork(position, judgement_set=name):
                    connection.execute(
                        "INSERT INTO judged (judging, scenario, state) VALUES (?, ?, 'done')", (name, position)
                    )
                    insert_judgements(connection, position, name, judgements)

        await self._writer.run(keep)

    async def fail(self, work: Work, fault: str, error: str, outcome: Outcome | None) -> None:
        """Save the failure of a piece of work.

        Args:
            work: The work.
            fault: The party at fault.
            error: The error message.
            outcome: The partial outcome of a played scenario; `None` for judging.

        Raises:
            StoreError: If the file cannot be written.
        """

        def keep(connection: sqlite3.Connection) -> None:
            match work:
                case PlayWork(position):
                    if outcome is not None:
                        self._insert_outcome(connection, position, outcome)
                    connection.execute(
                        "UPDATE scenarios SET state = 'failed', fault = ?, error = ? WHERE position = ?",
                        (fault, error, position),
                    )
                case JudgeWork(is_repeated=True):
                    _end_rejudging(connection, work, "failed")
                case JudgeWork(position, judgement_set=name):
                    row = (name, position, "failed", fault, error)
                    connection.execute("INSERT INTO judged VALUES (?, ?, ?, ?, ?)", row)

        await self._writer.run(keep)

    async def promote(
        self, work: PlayWork, branch: PromotedBranch | None, outcome: Outcome, calls: Sequence[int]
    ) -> None:
        """Make the outcome of a branch the outcome of the scenario. All judgements of the former outcome are deleted.

        Args:
            work: The scenario.
            branch: The record of the branch; `None` for the scenario's own line.
            outcome: The branch's outcome.
            calls: The ids of the calls from which the outcome results.

        Raises:
            StoreError: If the file cannot be written.
        """
        position = work.position

        def exchange(connection: sqlite3.Connection) -> None:
            query = "SELECT branch ->> 'name' FROM scenarios WHERE position = ?"
            before = connection.execute(query, (position,)).fetchone()[0] or MAIN
            exchange_calls(connection, position, before, MAIN if branch is None else branch.name, calls)
            connection.execute(
                "UPDATE scenarios SET state = 'done', fault = NULL, error = NULL, branch = ? WHERE position = ?",
                (branch and branch.model_dump_json(), position),
            )
            for table in ("outcomes", "judgements", "judged", "rejudgings"):
                connection.execute(f"DELETE FROM {table} WHERE scenario = ?", (position,))
            _delete_judging_threads(connection, work.thread)
            self._writer.clear_caches()
            self._insert_outcome(connection, position, outcome)
            insert_judgements(connection, position, OWN_JUDGEMENTS, outcome.judgements)

        await self._writer.run(exchange)

    def record(self, recorded: Sequence[tuple[Scenario, Outcome]]) -> int:
        """Add finished conversations to the plan, and return the number of those that are new.

        Raises:
            StoreError: If the file cannot be written.
        """

        def keep(connection: sqlite3.Connection) -> int:
            places = insert_recorded(connection, [scenario for scenario, _ in recorded])
            for place, (_, outcome) in zip(places, recorded, strict=True):
                if place is not None:
                    self._insert_outcome(connection, place, outcome)
                    insert_judgements(connection, place, OWN_JUDGEMENTS, outcome.judgements)
            return sum(place is not None for place in places)

        return self._writer.run_sync(keep)

    def review(self, outcomes: Mapping[int, Outcome]) -> None:
        """Replace the faults and languages of stored outcomes by those of the given outcomes (by position).

        Raises:
            StoreError: If the file cannot be written.
        """
        rows = [
            (_faults(outcome), encode_canonical(outcome.languages), position) for position, outcome in outcomes.items()
        ]

        def keep(connection: sqlite3.Connection) -> int:
            return connection.executemany(
                "UPDATE outcomes SET faults = ?, languages = ? WHERE scenario = ?", rows
            ).rowcount

        self._writer.run_sync(keep)

    def _insert_outcome(self, connection: sqlite3.Connection, position: int, outcome: Outcome) -> None:
        messages: list[StoredMessage] = [
            (line.role, self._texts.get_or_insert(connection, line.content), *self._rest(connection, line))
            for line in outcome.messages
        ]
        details = None
        if outcome.details:
            plain = json.loads(encode_canonical(dict(outcome.details)))
            details = encode_canonical(replace_texts(plain, lambda text: self._texts.find(connection, text)))
        connection.execute(
            "INSERT INTO outcomes (scenario, ended_by, counts, messages, details, faults, languages) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                position,
                outcome.ended_by,
                encode_canonical(dict(outcome.counts)),
                self._passages.encode(connection, messages),
                details,
                _faults(outcome),
                encode_canonical(outcome.languages),
            ),
        )

    def _rest(self, connection: sqlite3.Connection, line: Line) -> tuple[str | int, ...]:
        """Return the fields of a line other than its role and its text, in stored form."""
        reason = () if line.finish_reason is None else (line.finish_reason,)
        if not line.tool_calls and line.tool_call_id is None:
            return reason
        rest = line.model_dump(mode="json", include={"tool_calls", "tool_call_id"})
        return (*reason, self._texts.get_or_insert(connection, encode_canonical(rest)))


def _faults(outcome: Outcome) -> str | None:
    return None if outcome.faults is None else encode_canonical([each.model_dump() for each in outcome.faults])


def _end_rejudging(connection: sqlite3.Connection, work: JudgeWork, state: str) -> None:
    connection.execute(
        "UPDATE rejudgings SET state = ? WHERE scenario = ? AND judging = ?", (state, work.position, work.judgement_set)
    )


def _delete_judging_threads(connection: sqlite3.Connection, thread: str) -> None:
    """Delete the checkpoints of unfinished judging of a scenario's former outcome, so that it is not resumed."""
    from .checkpoints.upkeep import delete_threads  # imported here, because the package imports LangGraph

    query = "SELECT name FROM threads WHERE substr(name, 1, ?) = ?"
    names = connection.execute(query, (len(thread) + 1, f"{thread}#")).fetchall()
    delete_threads(connection, [name for (name,) in names])
