"""Retries: making failed, unparsed or repeated work pending again."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from .branches import NEXT_SAMPLE
from .writer import Transactions

_TOO_LONG = "context"
"""The value of `Fault.CONTEXT`, whose module depends on this package."""


class Retried(NamedTuple):
    """The result of retrying failures.

    Attributes:
        again: The number of failures that are retried.
        left: The number that stay failed, because they would fail again.
    """

    again: int
    left: int


class Retries:
    """The retries of a run. Work is only marked as pending here; whoever resumes the run plays or judges it.

    Args:
        transactions: Write to the file.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def failed(self, judging: str | None = None, too_long: bool = True) -> Retried:
        """Make failed scenarios pending again, or the failures in a set of judgements; return the counts.

        Scenarios continue from their last step. Replies in the ledger are reused, unless a reply made the scenario
        fail: then it gets new ones from there on.

        Args:
            judging: The name of the set whose failures are retried; by default the scenarios' failures are.
            too_long: Whether to include failures by a request that exceeds its model's context; it will exceed it
                again.

        Raises:
            StoreError: If the file cannot be written.
        """
        which = "state = 'failed'" if too_long else f"state = 'failed' AND fault IS NOT '{_TOO_LONG}'"

        def retry(connection: sqlite3.Connection) -> Retried:
            if judging is None:
                return Retried(_retry_scenarios(connection, which), _left(connection, "scenarios"))
            delete = f"DELETE FROM judged WHERE judging = ? AND {which}"
            count = connection.execute(delete, (judging,)).rowcount
            return Retried(count, _left(connection, "judged", judging))

        return self._transactions.now(retry)

    def scenario(self, position: int) -> None:
        """Make a scenario pending from its beginning, with replies of its own; its outcome is deleted.

        Its earlier calls and checkpoints stay in the file.

        Raises:
            StoreError: If the file cannot be written.
        """

        def retry(connection: sqlite3.Connection) -> None:
            connection.execute(
                f"UPDATE scenarios SET state = 'pending', sample = {NEXT_SAMPLE}, take = {NEXT_SAMPLE}, "
                "fault = NULL, error = NULL, branch = NULL WHERE position = ?",
                (position,),
            )
            for table in ("outcomes", "judgements", "judged", "rejudgings", "branches"):
                connection.execute(f"DELETE FROM {table} WHERE scenario = ?", (position,))

        self._transactions.now(retry)

    def unparsed(self, name: str) -> int:
        """Mark the unparsed judgements of a set to be repeated; return the number of scenarios.

        Those that were marked already continue with the replies they have.

        Args:
            name: The set's name.

        Raises:
            StoreError: If the file cannot be written.
        """

        def retry(connection: sqlite3.Connection) -> int:
            connection.execute(_REJUDGE, (name,))
            count = "SELECT count(*) FROM rejudgings WHERE judging = ? AND state = 'pending'"
            return int(connection.execute(count, (name,)).fetchone()[0])

        return self._transactions.now(retry)


def _left(connection: sqlite3.Connection, table: str, *judging: str) -> int:
    of = "state = 'failed'" + (" AND judging = ?" if judging else "")
    return int(connection.execute(f"SELECT count(*) FROM {table} WHERE {of}", judging).fetchone()[0])


def _retry_scenarios(connection: sqlite3.Connection, which: str) -> int:
    connection.execute(f"DELETE FROM outcomes WHERE scenario IN (SELECT position FROM scenarios WHERE {which})")
    return connection.execute(
        f"UPDATE scenarios SET state = 'pending', sample = iif(fault = 'reply', {NEXT_SAMPLE}, sample), "
        f"fault = NULL, error = NULL WHERE {which}"
    ).rowcount


# A judging that failed because of a provider keeps its sample, so that answered calls are not paid twice.
_REJUDGE = f"""
INSERT INTO rejudgings (scenario, judging, sample, state)
SELECT position, ?1, {NEXT_SAMPLE}, 'pending' FROM scenarios WHERE state = 'done' AND position IN
    (SELECT scenario FROM judgements WHERE judging = ?1 AND status = 'unparsed')
ON CONFLICT (scenario, judging) DO UPDATE
SET sample = iif(state = 'done', excluded.sample, sample), state = 'pending'"""
