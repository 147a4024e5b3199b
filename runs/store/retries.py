"""Making work pending again that failed, was unparsed, or is wanted anew."""

from __future__ import annotations

import sqlite3

from .branches import NEXT_SAMPLE
from .transactions import Transactions


class Retries:
    """What can be tried again. Nothing is played or judged here; that is done by whoever goes on with the run.

    Args:
        transactions: Write to the file.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def failed(self, judging: str | None = None) -> int:
        """Make failed scenarios pending again, or what failed in a set of judgements; returns how many.

        They go on from their last step. Replies that the ledger holds are used again, unless it was a reply that a
        scenario failed by: then it gets other ones from there on.

        Args:
            judging: The name of the set, if its failures are meant instead of the scenarios'.

        Raises:
            StoreError: If the file cannot be written.
        """

        def retry_judging(connection: sqlite3.Connection) -> int:
            delete = "DELETE FROM judged WHERE judging = ? AND state = 'failed'"
            return connection.execute(delete, (judging,)).rowcount

        return self._transactions.now(_retry_scenarios if judging is None else retry_judging)

    def scenario(self, position: int) -> None:
        """Make a scenario pending from its beginning, with replies of its own; what had come of it is dropped.

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
        """Have the unparsed judgements of a set made again; returns of how many scenarios.

        Those that were to be made again already go on with the replies that they have got.

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


def _retry_scenarios(connection: sqlite3.Connection) -> int:
    connection.execute("DELETE FROM outcomes WHERE scenario IN (SELECT position FROM scenarios WHERE state = 'failed')")
    return connection.execute(
        f"UPDATE scenarios SET state = 'pending', sample = iif(fault = 'reply', {NEXT_SAMPLE}, sample), "
        "fault = NULL, error = NULL WHERE state = 'failed'"
    ).rowcount


# One that failed by a provider keeps its sample, so that what was answered is not paid twice.
_REJUDGE = f"""
INSERT INTO rejudgings (scenario, judging, sample, state)
SELECT position, ?1, {NEXT_SAMPLE}, 'pending' FROM scenarios WHERE state = 'done' AND position IN
    (SELECT scenario FROM judgements WHERE judging = ?1 AND status = 'unparsed')
ON CONFLICT (scenario, judging) DO UPDATE
SET sample = iif(state = 'done', excluded.sample, sample), state = 'pending'"""
