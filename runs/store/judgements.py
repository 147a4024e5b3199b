"""Writing judgements. For jobs of the writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from dialoom.graphs import Judgement


def insert_judgements(
    connection: sqlite3.Connection, position: int, judgement_set: str, judgements: Iterable[Judgement]
) -> None:
    """Add the judgements of a scenario to a set that has none of it.

    Args:
        connection: The writer's.
        position: The scenario's.
        judgement_set: The set's name.
        judgements: In the order in which they were made.
    """
    rows = [
        (position, judgement_set, ordinal, judgement.metric, judgement.target, judgement.turn, *_verdict(judgement))
        for ordinal, judgement in enumerate(judgements)
    ]
    connection.executemany(f"INSERT INTO judgements VALUES ({', '.join('?' * 10)})", rows)


def replace_unparsed(
    connection: sqlite3.Connection, position: int, judgement_set: str, judgements: Iterable[Judgement]
) -> None:
    """Put each judgement in the place of the unparsed one of the same metric, target and turn; others are ignored."""
    made = {(each.metric, each.target, each.turn): each for each in judgements}
    query = (
        "SELECT ordinal, metric, target, turn FROM judgements "
        "WHERE scenario = ? AND judging = ? AND status = 'unparsed'"
    )
    update = (
        "UPDATE judgements SET score = ?, is_verdict = ?, status = ?, explanation = ? "
        "WHERE scenario = ? AND judging = ? AND ordinal = ?"
    )
    for ordinal, metric, target, turn in connection.execute(query, (position, judgement_set)).fetchall():
        if (judgement := made.get((metric, target, turn))) is not None:
            connection.execute(update, (*_verdict(judgement), position, judgement_set, ordinal))


def _verdict(judgement: Judgement) -> tuple[float | None, bool, str, str]:
    """The columns `score`, `is_verdict`, `status` and `explanation`."""
    score = judgement.score
    return None if score is None else float(score), isinstance(score, bool), judgement.status, judgement.explanation
