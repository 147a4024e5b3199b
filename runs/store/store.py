"""A run's file, open for writing by one process at a time. Objects for each kind of data share one writer."""

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
from dialoom.runs.configuration.config import RunConfig
from dialoom.runs.configuration.recipes import is_relative_file
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.errors import StoreError, store_error
from dialoom.settings import MAX_TRIALS, Synchronous

from . import schema
from .branches import BranchTable
from .connections import WriteLock, create_atomically, ensure_file, open_for_writing
from .corruption import corruption_error, was_raised_in_store
from .judgement_sets import JudgementSet, insert_judgement_set
from .leases import Leases, Retries
from .ledger import SQLiteLedger
from .plan import insert_plan, insert_trials
from .results import Results
from .runfile import RunFile
from .writer import Writer

if TYPE_CHECKING:  # LangGraph is slow to import, and not needed to look at a run
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from .checkpoints import Compacted


class RunStore(RunFile):
    """A run's file, open for writing: a context manager that holds the writer lock until it is closed.

    Args:
        path: The file.
        synchronous: The durability of commits; see `open_for_writing`.
        recipe: The recipe, if it was passed as an object.
        trust: The code and the addresses in the file that may be used; see `RunFile`.

    Attributes:
        queue: The open work, and the work in progress.
        results: Saves the results of work.
        retries: Makes work pending again.
        ledger: Records every model call.
        branches: Saves the branches of single scenarios.

    Raises:
        StoreError: If the file is not a run, or another process is writing it.
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
                self._writer = Writer(path, lambda: open_for_writing(path, synchronous))
            except sqlite3.Error as error:
                raise corruption_error(path, error) from error
            opened.pop_all()  # from here on, `close` closes them
        self.results = Results(self._writer)
        self.retries = Retries(self._writer)
        self.ledger = SQLiteLedger(self._writer, self._bookings)
        self.branches = BranchTable(self._reader, self._writer)

    @cached_property
    def leases(self) -> Leases:
        """The leases of scenarios to other files."""
        return Leases(self._reader, self._writer)

    @classmethod
    def create(
        cls,
        path: Path,
        config: RunConfig,
        prompts: PromptLibrary,
        synchronous: Synchronous = "normal",
        recipe: Recipe | None = None,
    ) -> RunStore:
        """Create a run's file with configuration and prompts, but without a plan.

        Raises:
            StoreError: If the file exists or cannot be created.
        """
        try:
            create_atomically(path, _initial(config, prompts, recipe))
            with ExitStack() as made:
                made.callback(remove, path)
                store = cls(path, synchronous, recipe, Trust(everything=True))  # the user has just specified them
                made.pop_all()  # keep the file
                return store
        except (sqlite3.Error, OSError) as error:
            raise store_error(path, error, is_new=True) from error

    def for_worker(self) -> bytes:
        """Return the content for a worker's file: this run without its scenarios, which are leased separately."""
        with closing(sqlite3.connect(":memory:")) as connection:
            schema.create(connection)
            with connection:
                for table, condition in (("run", "key NOT LIKE 'leased %'"), ("prompts", "1"), ("judgement_sets", "1")):
                    for row in self._reader.execute(f"SELECT * FROM {table} WHERE {condition}").fetchall():
                        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", tuple(row))
                if is_relative_file(self.config.recipe) and (found := self.located_recipe) is not None:
                    folder = found.removesuffix(f"/{self.config.recipe}")  # possibly the folder of this recipe file
                    connection.execute("INSERT OR REPLACE INTO run VALUES ('folder', ?)", (folder,))
            return connection.serialize()

    def plan(
        self,
        scenarios: Iterable[Scenario],
        notes: Sequence[str],
        own: JudgementSet,
        trials: int = 1,
        sequence: str | None = None,
        users: Sequence[str] = (),
    ) -> int:
        """Write the plan in one transaction and return its number of scenarios, counted once for each user model.

        Everything to which scenarios refer while they are played must be written here, because workers' files are made
        from this file, and only the results of scenarios are merged back.

        Args:
            scenarios: The scenarios, which are read one at a time, in the writer's thread.
            notes: The messages that planning reports; they are read after the last scenario.
            own: The set for the judgements made while playing; it has no models if no judge is known.
            trials: The number of times that each scenario is played.
            sequence: A facet, if any; scenarios with the same value of it are played one after another.
            users: The user models, if there are several.

        Raises:
            StoreError: If two scenarios have the same id, or the file cannot be written.
        """
        is_over = threading.Event()

        def until_over() -> Iterator[Scenario]:
            for scenario in scenarios:
                if is_over.is_set():
                    raise StoreError("planning was cancelled")
                yield scenario

        def write(connection: sqlite3.Connection) -> int:
            count = insert_plan(connection, until_over(), sequence, users)
            if trials > 1:
                insert_trials(connection, trials)
            connection.executemany("INSERT INTO notes (text) VALUES (?)", [(note,) for note in notes])
            insert_judgement_set(connection, own)
            return count

        try:
            return self._writer.run_sync(write, once=True)  # because the scenarios can be read only once
        finally:
            is_over.set()  # if waiting is interrupted, the generator of scenarios ends too

    def add_trials(self, trials: int) -> None:
        """Plan further trials of every scenario.

        Args:
            trials: The number of trials that each scenario has afterwards.

        Raises:
            StoreError: If the run already has more trials, or these are too many.
        """
        config = self.config
        if trials > MAX_TRIALS:
            raise StoreError(f"trials must be at most {MAX_TRIALS:,}, got {trials}", setting="trials")
        if trials < config.trials:
            raise StoreError(
                f"trials must be at least {config.trials}, which the run has, got {trials}", setting="trials"
            )
        if trials == config.trials:
            return
        raised = config.model_copy(update={"trials": trials}).model_dump_json()

        def write(connection: sqlite3.Connection) -> None:
            insert_trials(connection, trials)
            connection.execute("UPDATE run SET value = ? WHERE key = 'config'", (raised,))

        self._writer.run_sync(write)

    def add_judgement_set(self, judgement_set: JudgementSet) -> None:
        """Add a set of judgements under a new name, or replace a set without judgements and forget its failures."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM judged WHERE judging = ?", (judgement_set.name,))
            insert_judgement_set(connection, judgement_set)

        self._writer.run_sync(write)

    def add_prompts(self, prompts: Iterable[Prompt]) -> None:
        """Add prompts that the run does not have yet. An existing prompt with the same id is kept."""
        rows = [_prompt_row(prompt) for prompt in prompts]
        insert = "INSERT OR IGNORE INTO prompts VALUES (?, ?, ?, ?, ?)"
        self._writer.run_sync(lambda connection: connection.executemany(insert, rows).rowcount)

    def take_study(self, config: RunConfig, prompts: PromptLibrary) -> None:
        """Replace the run's study by the one in a new configuration, together with the prompts made from it."""
        rows = [_prompt_row(prompt) for prompt in prompts.values()]

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE run SET value = ? WHERE key = 'config'", (config.model_dump_json(),))
            connection.executemany("INSERT OR REPLACE INTO prompts VALUES (?, ?, ?, ?, ?)", rows)

        self._writer.run_sync(write)
        self._recipe = None
        for name in ("gate", "_prompt_words"):
            vars(self).pop(name, None)

    def keep_limits(self, limits: str) -> None:
        """Save the limits on the run's calls, given as the JSON of a `RunLimits`."""
        self._keep("limits", limits)

    def keep_forgotten(self, positions: Iterable[int]) -> None:
        """Save the conversations before which a stateful player may have lost its state."""
        chosen = set(positions)
        names = {id_ for position, id_, _, _ in self.listing() if position in chosen}
        self._keep("forgotten", json.dumps(sorted(names.union(self.forgotten))))

    def keep_changed_code(self) -> None:
        """Save the files of code that were found to have changed, because scenarios are now played with them."""
        if self._trust.changed:
            self._keep("changed code", json.dumps(sorted({*self.changed_code, *self._trust.changed})))

    def keep_shapes(self, found: Mapping[str, Sequence[str]]) -> None:
        """Save the reply formats that models have refused."""
        self._keep("shapes", json.dumps(found))

    def _keep(self, key: str, value: str) -> None:
        insert = "INSERT OR REPLACE INTO run VALUES (?, ?)"
        self._writer.run_sync(lambda connection: connection.execute(insert, (key, value)).rowcount)

    @asynccontextmanager
    async def checkpointer(self) -> AsyncIterator[BaseCheckpointSaver[int]]:
        """Return the saver with which LangGraph stores its checkpoints in this file."""
        from .checkpoints import RunSaver

        with closing(RunSaver(self._writer, self.path)) as saver:
            yield saver

    def compact(self) -> Compacted:
        """Delete checkpointed values to which nothing refers any more, and shrink the file.

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
        """Finish writing, close the file and release the writer lock."""
        # The writer is closed after the reader: only a connection that may write can merge SQLite's log into the file.
        with closing(self._lock), closing(self._writer):
            super().close()

    def _damage(self, error: BaseException | None, trace: TracebackType | None) -> StoreError | None:
        """Return the error that reports corruption if damaged rows caused an error; otherwise `None`."""
        is_of_rows = isinstance(error, sqlite3.Error | ValidationError) or was_raised_in_store(trace)
        return super()._damage(error, trace) if is_of_rows else None


def remove(path: Path) -> None:
    """Remove a run file and the files that SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _prompt_row(prompt: Prompt) -> tuple[str, int, str, str, str]:
    return prompt.id, prompt.front.version, prompt.front.role, prompt.hash, prompt.source


def _initial(config: RunConfig, prompts: PromptLibrary, recipe: Recipe | None) -> bytes:
    """Return the content of a new run file with configuration and prompts, and without a plan."""
    with closing(sqlite3.connect(":memory:")) as connection:
        schema.create(connection)
        with connection:
            connection.execute("INSERT INTO run VALUES ('id', ?)", (secrets.token_hex(16),))
            connection.execute("INSERT INTO run VALUES ('config', ?)", (config.model_dump_json(),))
            if is_relative_file(config.recipe):
                connection.execute("INSERT INTO run VALUES ('folder', ?)", (str(Path.cwd()),))
            if recipe is not None:  # recognizes the recipe even if its file moves
                connection.execute("INSERT INTO run VALUES ('recipe', ?)", (recipe.name,))
            connection.executemany(
                "INSERT INTO prompts VALUES (?, ?, ?, ?, ?)",
                [_prompt_row(prompt) for prompt in prompts.values()],
            )
        return connection.serialize()
