"""Writing judgements. For jobs of the writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from dialoom.graphs import Judgement


def insert_judgements(
    connection: sqlite3.Connection, position: int, judgement_set: str, judgements: Iterable[Judgement], after: int = -1
) -> None:
    """Add judgements of a scenario to a set that has none of these things.

    Args:
        connection: The writer's.
        position: The scenario's.
        judgement_set: The set's name.
        judgements: In the order in which they were made.
        after: The last place that is taken.
    """
    rows = [
        (position, judgement_set, ordinal, judgement.metric, judgement.target, judgement.turn, *_verdict(judgement))
        for ordinal, judgement in enumerate(judgements, start=after + 1)
    ]
    connection.executemany(f"INSERT INTO judgements VALUES ({', '.join('?' * 10)})", rows)


def replace_unparsed(
    connection: sqlite3.Connection, position: int, judgement_set: str, judgements: Iterable[Judgement]
) -> None:
    """Put each judgement in the place of the unparsed one of the same metric, target and turn.

    One of a thing that had none joins them at the end: some things are judged only after the word on another. What is
    said anew of a thing whose judgement stands is ignored.
    """
    made = {(each.metric, each.target, each.turn): each for each in judgements}
    query = "SELECT ordinal, metric, target, turn, status FROM judgements WHERE scenario = ? AND judging = ?"
    update = (
        "UPDATE judgements SET score = ?, is_verdict = ?, status = ?, explanation = ? "
        "WHERE scenario = ? AND judging = ? AND ordinal = ?"
    )
    last = -1
    for ordinal, *thing, status in connection.execute(query, (position, judgement_set)).fetchall():
        last = max(last, ordinal)
        judgement = made.pop((thing[0], thing[1], thing[2]), None)
        if judgement is not None and status == "unparsed":
            connection.execute(update, (*_verdict(judgement), position, judgement_set, ordinal))
    insert_judgements(connection, position, judgement_set, made.values(), after=last)


def _verdict(judgement: Judgement) -> tuple[float | None, bool, str, str]:
    """The columns `score`, `is_verdict`, `status` and `explanation`."""
    score = judgement.score
    return None if score is None else float(score), isinstance(score, bool), judgement.status, judgement.explanation
