"""Leases: scenarios handed to other processes, and merging each result exactly once."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from .checkpoints.batch import Batches
from .errors import StoreError
from .kinds import CallKinds
from .passages import Passages
from .plan import Work
from .texts import Texts
from .transfer import Parcel, Unpacking, pack, pack_common
from .writer import Transactions

_BITS = 60
_KEY = "dealt "
"""Begins the keys of open deals among the facts about a run; the scenario's place in the plan follows."""


class Deals:
    """Scenarios on their way between a run's file and workers' files.

    Args:
        reader: Reads the file.
        transactions: Write to it.
        texts: Its texts.
        passages: Its passages.
        kinds: The kinds of its calls.
        checkpoints: Gives out the ids of checkpoints' rows, and must hear of those that were written past it.
    """

    def __init__(
        self,
        reader: sqlite3.Connection,
        transactions: Transactions,
        texts: Texts,
        passages: Passages,
        kinds: CallKinds,
        checkpoints: Batches,
    ) -> None:
        self._reader = reader
        self._transactions = transactions
        self._texts = texts
        self._passages = passages
        self._kinds = kinds
        self._checkpoints = checkpoints

    async def deal(self, works: Sequence[Work]) -> list[Parcel]:
        """Pack scenarios to be worked on elsewhere, and keep in mind that they are.

        Raises:
            StoreError: If the file cannot be written.
        """
        parcels = [
            pack(self._reader, work.position, work.thread, secrets.randbits(_BITS), is_dealt=True) for work in works
        ]
        await self._transactions.soon(lambda connection: _note(connection, parcels))
        return parcels

    async def receive(self, parcels: Sequence[Parcel]) -> None:
        """Put scenarios that were dealt into this file, a worker's.

        Raises:
            StoreError: If the file cannot be written.
        """

        def keep(connection: sqlite3.Connection) -> None:
            for parcel in parcels:
                Unpacking(connection, self._texts, self._passages, self._kinds, parcel).dealt()
            _note(connection, parcels)
            if any(parcel.of("threads") for parcel in parcels):
                self._checkpoints.forget()

        await self._transactions.soon(keep)

    def packed(self, position: int, thread: str) -> Parcel:
        """What has come of a scenario that was dealt to this file."""
        return pack(self._reader, position, thread, self._number(position), is_dealt=False)

    def open(self) -> dict[int, int]:
        """What was dealt out and is waited for: the numbers of the deals by the places of their scenarios."""
        return {position: number for position, (number, _) in self._dealt().items()}

    def left(self, wanted: Mapping[int, int]) -> Iterator[Parcel]:
        """What has come up to now of those scenarios that were dealt to this file under these numbers."""
        for position, (number, thread) in self._dealt().items():
            if wanted.get(position) == number:
                yield pack(self._reader, position, thread, number, is_dealt=False)

    async def fold(self, parcels: Sequence[Parcel]) -> list[Parcel]:
        """Take back what came of deals, in one transaction; returns those that had not been taken back before.

        Raises:
            StoreError: If the file cannot be written.
        """
        return await self._transactions.soon(lambda connection: self._folded(connection, parcels))

    def fold_now(self, parcels: Sequence[Parcel]) -> list[Parcel]:
        """As `fold`, for callers without an event loop."""
        return self._transactions.now(lambda connection: self._folded(connection, parcels))

    async def keep_common(self, parcels: Sequence[Parcel]) -> None:
        """Keep common calls that were made in other files."""

        def keep(connection: sqlite3.Connection) -> None:
            for parcel in parcels:
                Unpacking(connection, self._texts, self._passages, self._kinds, parcel).common()

        await self._transactions.soon(keep)

    def common(self, key: str) -> Parcel | None:
        """The answered common call of a key (its hex digits), if there is one."""
        return pack_common(self._reader, bytes.fromhex(key[:32]))

    def forget_all(self) -> None:
        """Nobody works on anything: what had been dealt and was not taken back is lost, and still to be done."""

        def forget(connection: sqlite3.Connection) -> int:
            delete = "DELETE FROM run WHERE key >= ? AND key < ?"
            return connection.execute(delete, (_KEY, _KEY + "\U0010ffff")).rowcount

        self._transactions.now(forget)

    def _folded(self, connection: sqlite3.Connection, parcels: Sequence[Parcel]) -> list[Parcel]:
        taken = [parcel for parcel in parcels if _is_open(connection, parcel)]
        for parcel in taken:
            Unpacking(connection, self._texts, self._passages, self._kinds, parcel).returned()
            connection.execute("DELETE FROM run WHERE key = ?", (f"{_KEY}{parcel.position}",))
        if taken:
            self._checkpoints.forget()
        return taken

    def _dealt(self) -> dict[int, tuple[int, str]]:
        """The number and the thread of each deal, by the place of its scenario."""
        query = "SELECT key, value FROM run WHERE key >= ? AND key < ?"
        found: dict[int, tuple[int, str]] = {}
        for key, value in self._reader.execute(query, (_KEY, _KEY + "\U0010ffff")).fetchall():
            number, _, thread = value.partition(" ")
            found[int(key.removeprefix(_KEY))] = (int(number), thread)
        return found

    def _number(self, position: int) -> int:
        row = self._reader.execute("SELECT value FROM run WHERE key = ?", (f"{_KEY}{position}",)).fetchone()
        if row is None:
            raise StoreError(f"the scenario at {position} was not dealt to this file")
        return int(row["value"].partition(" ")[0])


def _note(connection: sqlite3.Connection, parcels: Sequence[Parcel]) -> None:
    insert = "INSERT OR REPLACE INTO run VALUES (?, ?)"
    connection.executemany(insert, [(f"{_KEY}{each.position}", f"{each.deal} {each.thread}") for each in parcels])


def _is_open(connection: sqlite3.Connection, parcel: Parcel) -> bool:
    """Whether what came of a deal is still waited for."""
    row = connection.execute("SELECT value FROM run WHERE key = ?", (f"{_KEY}{parcel.position}",)).fetchone()
    return row is not None and int(row[0].partition(" ")[0]) == parcel.deal
