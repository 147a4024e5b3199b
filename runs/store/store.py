"""A run's file open for writing. One process at a time, through one writer; each kind of writing has an owner."""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pydantic import ValidationError

from dialoom.graphs import Recipe, Scenario
from dialoom.prompts import Prompt, PromptLibrary
from dialoom.runs.config import RunConfig
from dialoom.runs.recipes import is_relative_file
from dialoom.runs.trust import Trust

from . import schema
from .branches import BranchTable
from .connections import Synchronous, WriteLock, appear, ensure_file, open_for_writing
from .corruption import damaged, is_of_the_store
from .errors import StoreError, store_error
from .judgement_sets import JudgementSet, insert_judgement_set
from .kinds import CallKinds
from .ledger import Booking, SQLiteLedger
from .passages import Passages
from .plan import WorkQueue, insert_plan
from .results import Results
from .retries import Retries
from .runfile import RunFile
from .texts import Texts
from .writer import Transactions, Writer

if TYPE_CHECKING:  # LangGraph is slow to import, and looking at a run needs no saver
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from .checkpoints import Compacted
    from .leases import Deals


class RunStore(RunFile):
    """A run's file, open for writing: holds the lock until it is closed. A context manager that closes it.

    Args:
        path: The file.
        synchronous: What commits survive; see `open_for_writing`.
        recipe: The recipe, where it was given as an object.
        trust: What of the code and the addresses that the file names may be used; see `RunFile`.

    Attributes:
        queue: The work that is left, and the work under way.
        results: Keeps what came of work.
        retries: Makes work pending again.
        ledger: Keeps every model call.
        branches: Keeps the branches of single scenarios.

    Raises:
        StoreError: If it is not a run, or another process writes it.
    """

    branches: BranchTable

    def __init__(
        self,
        path: Path,
        synchronous: Synchronous = "normal",
        recipe: Recipe | None = None,
        trust: Trust | None = None,
    ) -> None:
        ensure_file(path)
        with ExitStack() as opened:
            self._lock = opened.enter_context(closing(WriteLock(path)))
            super().__init__(path, recipe=recipe, trust=trust)
            opened.callback(super().close)
            try:
                self._writer = Writer(lambda: open_for_writing(path, synchronous))
            except sqlite3.Error as error:
                raise damaged(path, error) from error
            opened.pop_all()  # from here on, `close` closes them
        bookings: dict[str, Booking] = {}
        texts, passages = self._writer.only(Texts), self._writer.only(Passages)
        self._transactions = Transactions(self._writer, path)
        self.queue = WorkQueue(self._reader, self._scenarios, bookings)
        self.results = Results(self._transactions, texts, passages)
        self.retries = Retries(self._transactions)
        self.ledger = SQLiteLedger(self._writer, texts, passages, bookings)
        self.branches = BranchTable(self._reader, self._transactions.soon)

    @cached_property
    def deals(self) -> Deals:
        """Scenarios that are worked on in other files."""
        from .checkpoints.batch import Batches
        from .leases import Deals

        only = self._writer.only
        memories = only(Texts), only(Passages), only(CallKinds), only(Batches)
        return Deals(self._reader, self._transactions, *memories)

    @classmethod
    def create(
        cls,
        path: Path,
        config: RunConfig,
        prompts: PromptLibrary,
        synchronous: Synchronous = "normal",
        recipe: Recipe | None = None,
    ) -> RunStore:
        """A new file that holds its configuration and prompts, not yet a plan.

        Raises:
            StoreError: If the file exists or cannot be made.
        """
        try:
            appear(path, _initial(config, prompts, recipe))
            with ExitStack() as made:
                made.callback(remove, path)
                store = cls(path, synchronous, recipe, Trust(everything=True))  # all of it is given just now
                made.pop_all()  # it stays
                return store
        except (sqlite3.Error, OSError) as error:
            raise store_error(path, error, is_new=True) from error

    def for_worker(self) -> bytes:
        """The content of a file in which somebody else can work on some of the scenarios: all but these themselves."""
        with closing(sqlite3.connect(":memory:")) as connection:
            schema.create(connection)
            with connection:
                for table, condition in (("run", "key NOT LIKE 'dealt %'"), ("prompts", "1"), ("judgement_sets", "1")):
                    rows = self._reader.execute(f"SELECT * FROM {table} WHERE {condition}").fetchall()
                    for row in rows:
                        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", tuple(row))
                if is_relative_file(self.config.recipe) and (found := self.located_recipe) is not None:
                    folder = found.removesuffix(f"/{self.config.recipe}")  # maybe the one in which this file is
                    connection.execute("INSERT OR REPLACE INTO run VALUES ('folder', ?)", (folder,))
            return connection.serialize()

    def plan(self, scenarios: Iterable[Scenario], notes: Sequence[str], own: JudgementSet) -> int:
        """Write the plan in one transaction; returns how many scenarios it has.

        All that scenarios refer to while they are played is written here: workers' files are made from this one, and
        only what came of scenarios gets back.

        Args:
            scenarios: Read one at a time, in the writer's thread.
            notes: What planning has to say; read after the last scenario.
            own: The set of the judgements that playing makes; without models if nobody is known to judge.

        Raises:
            StoreError: If two scenarios are the same, or the file cannot be written.
        """
        is_over = threading.Event()

        def until_over() -> Iterator[Scenario]:
            for scenario in scenarios:
                if is_over.is_set():
                    raise StoreError("planning was given up")
                yield scenario

        def write(connection: sqlite3.Connection) -> int:
            count = insert_plan(connection, until_over())
            connection.executemany("INSERT INTO notes (text) VALUES (?)", [(note,) for note in notes])
            insert_judgement_set(connection, own)
            return count

        try:
            return self._transactions.now(write, once=True)  # as the scenarios can be read only once
        finally:
            is_over.set()  # Ctrl-C ends the waiting, and this the planning

    def add_judgement_set(self, judgement_set: JudgementSet) -> None:
        """Add a set of judgements that has none yet."""
        self._transactions.now(lambda connection: insert_judgement_set(connection, judgement_set))

    def add_prompts(self, prompts: Iterable[Prompt]) -> None:
        """Keep prompts that the run did not have; one of an id that is there stays as it is."""
        rows = [_prompt_row(prompt) for prompt in prompts]
        insert = "INSERT OR IGNORE INTO prompts VALUES (?, ?, ?, ?, ?)"
        self._transactions.now(lambda connection: connection.executemany(insert, rows).rowcount)

    def keep_limits(self, limits: str) -> None:
        """Keep what bounds the run's calls: the JSON of a `RunLimits`."""
        insert = "INSERT OR REPLACE INTO run VALUES ('limits', ?)"
        self._transactions.now(lambda connection: connection.execute(insert, (limits,)).rowcount)

    def keep_shapes(self, found: Mapping[str, Sequence[str]]) -> None:
        """Keep what was found out about the shapes that models can be held to."""
        insert = "INSERT OR REPLACE INTO run VALUES ('shapes', ?)"
        self._transactions.now(lambda connection: connection.execute(insert, (json.dumps(found),)).rowcount)

    @asynccontextmanager
    async def checkpointer(self) -> AsyncIterator[BaseCheckpointSaver[int]]:
        """Where LangGraph keeps its checkpoints: this file."""
        from .checkpoints import RunSaver

        with closing(RunSaver(self._writer, self.path)) as saver:
            yield saver

    def compact(self) -> Compacted:
        """Remove checkpointed values that nothing refers to any more, and give their room back to the disk.

        Returns:
            The file's size before and after.

        Raises:
            StoreError: If the file cannot be written.
        """
        from .checkpoints import RunSaver

        try:
            with closing(RunSaver(self._writer, self.path)) as saver:
                return saver.compact()
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    def close(self) -> None:
        """Finish writing and let others write."""
        with ExitStack() as opened:  # closes in the opposite order
            opened.enter_context(closing(self._lock))
            # After the reader, as only a connection that may write can put SQLite's log back into the file.
            opened.enter_context(closing(self._writer))
            super().close()

    def _damage(self, error: BaseException | None, trace: TracebackType | None) -> StoreError | None:
        """While a run is played, other things go wrong, too."""
        is_of_rows = isinstance(error, sqlite3.Error | ValidationError) or is_of_the_store(trace)
        return super()._damage(error, trace) if is_of_rows else None


def remove(path: Path) -> None:
    """Remove a run file with what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _prompt_row(prompt: Prompt) -> tuple[str, int, str, str, str]:
    return prompt.id, prompt.front.version, prompt.front.role, prompt.hash, prompt.source


def _initial(config: RunConfig, prompts: PromptLibrary, recipe: Recipe | None) -> bytes:
    """The content of a run's file that has its configuration and prompts, and no plan yet."""
    with closing(sqlite3.connect(":memory:")) as connection:
        schema.create(connection)
        with connection:
            connection.execute("INSERT INTO run VALUES ('id', ?)", (secrets.token_hex(16),))
            connection.execute("INSERT INTO run VALUES ('config', ?)", (config.model_dump_json(),))
            if is_relative_file(config.recipe):
                connection.execute("INSERT INTO run VALUES ('folder', ?)", (str(Path.cwd()),))
            if recipe is not None:  # by which it is known wherever its file is by then
                connection.execute("INSERT INTO run VALUES ('recipe', ?)", (recipe.name,))
            connection.executemany(
                "INSERT INTO prompts VALUES (?, ?, ?, ?, ?)",
                [_prompt_row(prompt) for prompt in prompts.values()],
            )
        return connection.serialize()
