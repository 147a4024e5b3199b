"""Writing judgements. For jobs of the writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

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
    """Put each judgement in the place of the unparsed one of the same metric, target and turn; of several, in order.

    One of a thing that had none joins them at the end: some things are judged only after the word on another. What is
    said anew of a thing whose judgement stands is ignored.
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
    made: dict[tuple[Any, ...], list[Judgement]] = {}
    for each in judgements:
        thing = (each.metric, each.target, each.turn)
        if (thing, each.explanation) not in stands:
            made.setdefault(thing, []).append(each)
    for ordinal, thing, status, _ in rows:
        if status == "unparsed" and (again := made.get(thing)):
            connection.execute(update, (*_verdict(again.pop(0)), position, judgement_set, ordinal))
    things = {thing for thing, _ in stands}
    new = [each for thing, left in made.items() if thing not in things for each in left]
    last = max((ordinal for ordinal, *_ in rows), default=-1)
    insert_judgements(connection, position, judgement_set, new, after=last)


def _verdict(judgement: Judgement) -> tuple[float | None, bool, str, str]:
    """The columns `score`, `is_verdict`, `status` and `explanation`."""
    score = judgement.score
    return None if score is None else float(score), isinstance(score, bool), judgement.status, judgement.explanation
