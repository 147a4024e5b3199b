"""Leases of scenarios to workers, and retries of scenarios."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dialoom.runs.errors import Fault, StoreError

from .branches import NEXT_SAMPLE
from .ledger import CallKinds
from .passages import Passages
from .plan import Work
from .texts import Texts
from .transfer import Transfer, Unpacker, pack, pack_common
from .writer import Writer

_LEASE_BITS = 60
_KEY_PREFIX = "leased "
"""The prefix of the keys of open leases in the table `run`; the scenario's position in the plan follows."""

OPEN_LEASES = f"FROM run WHERE key GLOB '{_KEY_PREFIX}*'"
"""The part of a query that selects the open leases."""


class Leases:
    """The leases of scenarios between a run's file and workers' files.

    Args:
        reader: The connection that reads the file.
        writer: The file's writer.
    """

    def __init__(self, reader: sqlite3.Connection, writer: Writer) -> None:
        # LangGraph takes long to import, and is not needed to look at a run.
        from .checkpoints.batch import CheckpointWriter

        self._reader = reader
        self._writer = writer
        self._caches = writer.get_cache(Texts), writer.get_cache(Passages), writer.get_cache(CallKinds)
        self._checkpoint_writer = writer.get_cache(
            CheckpointWriter
        )  # its cache is cleared after rows were written without it

    async def lease(self, works: Sequence[Work]) -> list[Transfer]:
        """Lease scenarios to a worker: pack them for transfer and record the leases.

        Raises:
            StoreError: If the file cannot be written.
        """
        transfers = [
            pack(self._reader, work.position, work.thread, secrets.randbits(_LEASE_BITS), is_leased=True)
            for work in works
        ]
        await self._writer.run(lambda connection: _insert_leases(connection, transfers))
        return transfers

    async def receive(self, transfers: Sequence[Transfer]) -> None:
        """Store leased scenarios in this file, which is a worker's file.

        Raises:
            StoreError: If the file cannot be written.
        """

        def keep(connection: sqlite3.Connection) -> None:
            for transfer in transfers:
                Unpacker(connection, *self._caches, transfer).insert_leased()
            _insert_leases(connection, transfers)
            if any(transfer.of("threads") for transfer in transfers):
                self._checkpoint_writer.clear()

        await self._writer.run(keep)

    def pack_result(self, position: int, thread: str) -> Transfer:
        """Return the result of a scenario leased to this file, packed for transfer."""
        if (number := _find_lease(self._reader, position)) is None:
            raise StoreError(f"the scenario at {position} was not leased to this file")
        return pack(self._reader, position, thread, number, is_leased=False)

    def read_open(self) -> dict[int, int]:
        """Return the lease numbers of all scenarios that are leased, by position."""
        return {position: number for position, (number, _) in self._read_open_leases().items()}

    def pack_leftovers(self, numbers: Mapping[int, int]) -> Iterator[Transfer]:
        """Yield the (possibly partial) results of scenarios leased to this file with the given lease numbers."""
        for position, (number, thread) in self._read_open_leases().items():
            if numbers.get(position) == number:
                yield pack(self._reader, position, thread, number, is_leased=False)

    async def merge(self, transfers: Sequence[Transfer]) -> list[Transfer]:
        """Merge the results of leases in one transaction, and return the results that had not been merged before.

        Raises:
            StoreError: If the file cannot be written.
        """
        return await self._writer.run(lambda connection: self._merge(connection, transfers))

    def merge_sync(self, transfers: Sequence[Transfer]) -> list[Transfer]:
        """Merge results as `merge` does, without an event loop."""
        return self._writer.run_sync(lambda connection: self._merge(connection, transfers))

    async def store_common_calls(self, transfers: Sequence[Transfer]) -> None:
        """Store common calls that were made in other files."""

        def keep(connection: sqlite3.Connection) -> None:
            for transfer in transfers:
                Unpacker(connection, *self._caches, transfer).insert_common()

        await self._writer.run(keep)

    def pack_common_call(self, key: str) -> Transfer | None:
        """Return the answered common call with a key (in hex digits); `None` if there is none."""
        return pack_common(self._reader, bytes.fromhex(key[:32]))

    def delete_all(self) -> None:
        """Delete all open leases when no worker is left. Scenarios whose results were not merged stay pending."""

        def forget(connection: sqlite3.Connection) -> int:
            return connection.execute(f"DELETE {OPEN_LEASES}").rowcount

        self._writer.run_sync(forget)

    def _merge(self, connection: sqlite3.Connection, transfers: Sequence[Transfer]) -> list[Transfer]:
        new = [transfer for transfer in transfers if _find_lease(connection, transfer.position) == transfer.lease]
        for transfer in new:
            Unpacker(connection, *self._caches, transfer).merge_result()
            connection.execute("DELETE FROM run WHERE key = ?", (f"{_KEY_PREFIX}{transfer.position}",))
        if new:
            self._checkpoint_writer.clear()
        return new

    def _read_open_leases(self) -> dict[int, tuple[int, str]]:
        """Return the number and the thread of each open lease, by the position of its scenario."""
        found: dict[int, tuple[int, str]] = {}
        for key, value in self._reader.execute(f"SELECT key, value {OPEN_LEASES}").fetchall():
            number, _, thread = value.partition(" ")
            found[int(key.removeprefix(_KEY_PREFIX))] = (int(number), thread)
        return found


def _insert_leases(connection: sqlite3.Connection, transfers: Sequence[Transfer]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO run VALUES (?, ?)",
        [(f"{_KEY_PREFIX}{each.position}", f"{each.lease} {each.thread}") for each in transfers],
    )


def _find_lease(connection: sqlite3.Connection, position: int | None) -> int | None:
    """Return the number of a scenario's open lease; `None` if there is none."""
    row = connection.execute("SELECT value FROM run WHERE key = ?", (f"{_KEY_PREFIX}{position}",)).fetchone()
    return None if row is None else int(row[0].partition(" ")[0])


class Retries:
    """The retries of a run. They only mark work as pending; resuming the run plays or judges it.

    Args:
        writer: The file's writer.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def retry_failed(self, judging: str | None = None, too_long: bool = True) -> tuple[int, int]:
        """Make failed scenarios pending again, or failed judgings in a set.

        Scenarios continue from their last step. Replies in the ledger are reused, unless a reply made the scenario
        fail: then all further replies are requested anew.

        Args:
            judging: The name of the set whose failed judgings are retried; by default, failed scenarios are.
            too_long: Whether to include failures by a request that exceeded its model's context window. With the same
                window, they occur again.

        Returns:
            The number of failures that are retried, and of those that are not, because they would occur again.

        Raises:
            StoreError: If the file cannot be written.
        """
        which = "state = 'failed'" if too_long else f"state = 'failed' AND fault IS NOT '{Fault.CONTEXT}'"

        def retry(connection: sqlite3.Connection) -> tuple[int, int]:
            if judging is None:
                connection.execute(
                    f"DELETE FROM outcomes WHERE scenario IN (SELECT position FROM scenarios WHERE {which})"
                )
                retried = connection.execute(
                    f"UPDATE scenarios SET state = 'pending', sample = iif(fault = 'reply', {NEXT_SAMPLE}, sample), "
                    f"fault = NULL, error = NULL WHERE {which}"
                )
                skipped = connection.execute("SELECT count(*) FROM scenarios WHERE state = 'failed'")
            else:
                retried = connection.execute(f"DELETE FROM judged WHERE judging = ? AND {which}", (judging,))
                skipped = connection.execute(
                    "SELECT count(*) FROM judged WHERE state = 'failed' AND judging = ?", (judging,)
                )
            return retried.rowcount, int(skipped.fetchone()[0])

        return self._writer.run_sync(retry)

    def restart_scenarios(self, positions: Iterable[int], note: str = "") -> None:
        """Make scenarios pending again, to be played from their beginning with new replies. Their outcomes are deleted.

        Their earlier calls and checkpoints stay in the file.

        Args:
            positions: The positions of the scenarios.
            note: The reason, which is stored with the notes of planning; empty for no note.

        Raises:
            StoreError: If the file cannot be written.
        """
        chosen = list(positions)

        def retry(connection: sqlite3.Connection) -> None:
            rows = [(position,) for position in chosen]
            connection.executemany("INSERT INTO notes (text) VALUES (?)", [(note,)] if note else [])
            connection.executemany(
                f"UPDATE scenarios SET state = 'pending', sample = {NEXT_SAMPLE}, take = {NEXT_SAMPLE}, "
                "fault = NULL, error = NULL, branch = NULL WHERE position = ?",
                rows,
            )
            for table in ("outcomes", "judgements", "judged", "rejudgings", "branches"):
                connection.executemany(f"DELETE FROM {table} WHERE scenario = ?", rows)

        self._writer.run_sync(retry)

    def retry_unparsed(self, name: str) -> int:
        """Mark the unparsed judgements of a set to be repeated, and return the number of scenarios that have any.

        Scenarios that were marked before keep the new replies that they already have.

        Args:
            name: The set's name.

        Raises:
            StoreError: If the file cannot be written.
        """

        def retry(connection: sqlite3.Connection) -> int:
            connection.execute(_REJUDGE, (name,))
            return int(
                connection.execute(
                    "SELECT count(*) FROM rejudgings WHERE judging = ? AND state = 'pending'", (name,)
                ).fetchone()[0]
            )

        return self._writer.run_sync(retry)


# A judging that failed because of a provider keeps its sample number, so that answered calls are not paid for twice.
_REJUDGE = f"""
INSERT INTO rejudgings (scenario, judging, sample, state)
SELECT position, ?1, {NEXT_SAMPLE}, 'pending' FROM scenarios WHERE state = 'done' AND position IN
    (SELECT scenario FROM judgements WHERE judging = ?1 AND status = 'unparsed')
ON CONFLICT (scenario, judging) DO UPDATE
SET sample = iif(state = 'done', excluded.sample, sample), state = 'pending'"""
