"""Writing a run's file: planning, work to do, results. One process at a time, through one writer."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from dialoom.graphs import Judgement, Outcome, Recipe, Scenario
from dialoom.prompts import PromptLibrary
from dialoom.runs.branch_taken import BranchTaken
from dialoom.runs.config import RunConfig

from . import documents, schema
from .branches import MAIN, NEXT_SAMPLE, BranchTable, exchange_calls
from .connections import Synchronous, open_for_writing
from .documents import canonical
from .errors import StoreError, store_error
from .ledger import Booking, SQLiteLedger
from .lock import WriteLock
from .runfile import FIRST_JUDGING, Judging, RunFile
from .texts import Texts
from .writer import Writer

if TYPE_CHECKING:  # LangGraph is slow to import, and looking at a run needs no saver
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from .checkpoints import Compacted

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Work:
    """A scenario to be played, or a finished one to be judged again.

    Attributes:
        thread: The checkpoints' thread.
        judging: The set that the judgements go to.
        outcome: What is to be judged; `None` if the scenario is to be played.
        sample: 0; another number gets replies of its own instead of those that the ledger holds.
        again: Whether only the judgements that are unparsed in the set are to be replaced.
    """

    position: int
    scenario: Scenario
    thread: str
    judging: str = FIRST_JUDGING
    outcome: Outcome | None = None
    sample: int = 0
    again: bool = False


class RunStore(RunFile):
    """A run's file, open for writing: holds the lock until it is closed.

    Args:
        path: The file.
        synchronous: What commits survive; see `open_for_writing`.

    Raises:
        StoreError: If it is not a run, or another process writes it.
    """

    def __init__(self, path: Path, synchronous: Synchronous = "normal") -> None:
        lock = WriteLock(path) if path.is_file() else None
        try:
            super().__init__(path, locked=True)
        except BaseException:
            if lock:
                lock.close()
            raise
        assert lock is not None
        self._lock = lock
        self._threads: dict[str, Booking] = {}
        self._writer = Writer(lambda: open_for_writing(path, synchronous))
        self._texts = self._writer.only(Texts)
        self.ledger = SQLiteLedger(self._writer, self._texts, self._threads)
        self.branches = BranchTable(self._reader, self._soon)

    @classmethod
    def create(
        cls, path: Path, config: RunConfig, prompts: PromptLibrary, synchronous: Synchronous = "normal"
    ) -> RunStore:
        """A new file that holds its configuration and prompts, not yet a plan.

        Raises:
            StoreError: If the file exists or cannot be made.
        """
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        except FileExistsError as error:
            raise StoreError(
                f"{path} exists; go on with 'dialoom resume {path}', or give another file with -o"
            ) from error
        except OSError as error:
            raise StoreError(f"{path} cannot be made: {error.strerror}") from error
        try:
            lock = WriteLock(path)
            try:
                _initialise(path, config, prompts)
            finally:
                lock.close()
            return cls(path, synchronous)
        except (sqlite3.Error, OSError) as error:
            remove(path)
            raise store_error(path, error) from error

    def plan(self, scenarios: Iterable[Scenario], notes: Sequence[str], judging: Judging | None) -> int:
        """Write the plan in one transaction; returns its size.

        Args:
            scenarios: Read one at a time, in the writer's thread.
            notes: What planning has to say; read after the last scenario.
            judging: The set of judgements that the run itself will make.

        Raises:
            StoreError: If two scenarios are the same, or the file cannot be written.
        """
        is_given_up = threading.Event()

        def until_given_up() -> Iterator[Scenario]:
            for scenario in scenarios:
                if is_given_up.is_set():
                    raise StoreError("planning was given up")
                yield scenario

        def work(connection: sqlite3.Connection) -> int:
            count = _insert_plan(connection, until_given_up())
            connection.executemany("INSERT INTO notes (text) VALUES (?)", [(note,) for note in notes])
            if judging is not None:
                _insert_judging(connection, judging)
            return count

        try:
            return self._now(work, once=True)  # as the scenarios can be read only once
        except BaseException:  # Ctrl-C
            is_given_up.set()
            raise

    def add_judging(self, judging: Judging) -> None:
        """Open a set of judgements."""
        self._now(lambda connection: _insert_judging(connection, judging))

    def keep_limits(self, limits: str) -> None:
        """Keep what bounds the run's calls: the JSON of a `RunLimits`."""
        row = ("limits", limits)
        self._now(lambda connection: connection.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", row).rowcount)

    def retry(self, judging: str | None = None) -> int:
        """Make failed scenarios (or failed judgings of a set) pending again; returns how many.

        They go on from their last step. Replies that the ledger holds are used again, unless it was a reply that a
        scenario failed by: then it gets other ones from there on.
        """

        def work(connection: sqlite3.Connection) -> int:
            if judging is not None:
                return connection.execute(
                    "DELETE FROM judged WHERE judging = ? AND state = 'failed'", (judging,)
                ).rowcount
            connection.execute(
                "DELETE FROM outcomes WHERE scenario IN (SELECT position FROM scenarios WHERE state = 'failed')"
            )
            return connection.execute(
                f"UPDATE scenarios SET state = 'pending', sample = iif(fault = 'reply', {NEXT_SAMPLE}, sample), "
                "fault = NULL, error = NULL WHERE state = 'failed'"
            ).rowcount

        return self._now(work)

    def play_anew(self, position: int) -> None:
        """Make a scenario pending from its beginning, with replies of its own; what had come of it is dropped.

        Its earlier calls and checkpoints stay in the file.
        """

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                f"UPDATE scenarios SET state = 'pending', sample = {NEXT_SAMPLE}, take = {NEXT_SAMPLE}, "
                "fault = NULL, error = NULL, branch = NULL WHERE position = ?",
                (position,),
            )
            for table in ("outcomes", "judgements", "judged", "rejudgings", "branches"):
                connection.execute(f"DELETE FROM {table} WHERE scenario = ?", (position,))

        self._now(work)

    def rejudge(self, judging: str) -> int:
        """Have the unparsed judgements of a set made again; returns of how many scenarios.

        Those that were to be made again already go on with the replies that they have got.
        """

        def work(connection: sqlite3.Connection) -> int:
            connection.execute(_REJUDGE, (judging,))
            count = "SELECT count(*) FROM rejudgings WHERE judging = ? AND state = 'pending'"
            return int(connection.execute(count, (judging,)).fetchone()[0])

        return self._now(work)

    def to_rejudge(self, recipe: Recipe, judging: str) -> Iterator[Work]:
        """Finished scenarios whose unparsed judgements in a set are to be made again, in plan order."""
        query = (
            "SELECT position, content, take, rejudgings.sample FROM scenarios JOIN rejudgings ON scenario = position "
            "WHERE rejudgings.state = 'pending' AND position > ?1 AND judging = ?3 ORDER BY position LIMIT ?2"
        )
        for page in self._pages(query, judging):
            for row in page:
                scenario = self._unpacked(recipe, row["content"])
                thread = f"{_thread(scenario, row['take'])}#{judging}#{row['sample']}"
                outcome = self._with_standing(row["position"], judging)
                yield Work(row["position"], scenario, thread, judging, outcome, row["sample"], again=True)

    def _with_standing(self, position: int, judging: str) -> Outcome:
        """A finished scenario's outcome with those judgements of a set that are not to be made again."""
        episode = self.episode(position, judging)
        assert episode is not None, "what is judged again is done"
        standing = tuple(each for each in episode.outcome.judgements if each.status != "unparsed")
        return episode.outcome.model_copy(update={"judgements": standing})

    def pending(self, recipe: Recipe, only: Container[int] | None = None) -> Iterator[Work]:
        """Scenarios to play, in plan order, read page by page as they are asked for.

        Args:
            recipe: Whose they are.
            only: Their positions, if not all are wanted.
        """
        query = (
            "SELECT position, content, take, sample FROM scenarios WHERE state = 'pending' AND position > ? "
            "ORDER BY position LIMIT ?"
        )
        for page in self._pages(query):
            for row in page:
                if only is not None and row["position"] not in only:
                    continue
                scenario = self._unpacked(recipe, row["content"])
                yield Work(row["position"], scenario, _thread(scenario, row["take"]), sample=row["sample"])

    def to_judge(self, recipe: Recipe, judging: str) -> Iterator[Work]:
        """Finished scenarios that a set has no judgements of yet, in plan order."""
        query = (
            "SELECT position, content, take FROM scenarios WHERE state = 'done' AND position > ?1 AND NOT EXISTS "
            "(SELECT 1 FROM judged WHERE judging = ?3 AND scenario = position) ORDER BY position LIMIT ?2"
        )
        for page in self._pages(query, judging):
            for row in page:
                scenario = self._unpacked(recipe, row["content"])
                outcome = self.outcome(row["position"])
                thread = f"{_thread(scenario, row['take'])}#{judging}"
                yield Work(row["position"], scenario, thread, judging, outcome)

    def count_to_judge(self, judging: str) -> int:
        """How many of these there are."""
        query = (
            "SELECT count(*) FROM scenarios WHERE state = 'done' AND NOT EXISTS "
            "(SELECT 1 FROM judged WHERE judging = ? AND scenario = position)"
        )
        return int(self._reader.execute(query, (judging,)).fetchone()[0])

    def begin(self, work: Work, branch: str | None = None) -> None:
        """Say that work is under way, so that its calls are booked on its scenario (and a branch of it)."""
        judging = None if work.judging == FIRST_JUDGING else work.judging
        self._threads[work.thread] = Booking(work.position, judging, branch)

    def end(self, work: Work) -> None:
        """Say that it is not, any more."""
        self._threads.pop(work.thread, None)

    async def finish(self, work: Work, outcome: Outcome) -> None:
        """Keep a result, in one transaction with its judgements."""

        def keep(connection: sqlite3.Connection) -> None:
            if work.again:
                _replace_unparsed(connection, work, outcome.judgements)
                _end_rejudging(connection, work, "done")
                return
            if work.outcome is None:
                _insert_outcome(connection, self._texts, work.position, outcome)
                connection.execute("UPDATE scenarios SET state = 'done' WHERE position = ?", (work.position,))
            else:
                row = (work.judging, work.position, "done")
                connection.execute("INSERT INTO judged (judging, scenario, state) VALUES (?, ?, ?)", row)
            _insert_judgements(connection, work, outcome.judgements)

        await self._soon(keep)

    async def fail(self, work: Work, fault: str, error: str, outcome: Outcome | None) -> None:
        """Keep a failure, and what the scenario had come to."""

        def keep(connection: sqlite3.Connection) -> None:
            if work.again:
                _end_rejudging(connection, work, "failed")
                return
            if work.outcome is not None:
                row = (work.judging, work.position, "failed", fault, error)
                connection.execute("INSERT INTO judged VALUES (?, ?, ?, ?, ?)", row)
                return
            if outcome is not None:
                _insert_outcome(connection, self._texts, work.position, outcome)
            update = "UPDATE scenarios SET state = 'failed', fault = ?, error = ? WHERE position = ?"
            connection.execute(update, (fault, error, work.position))

        await self._soon(keep)

    def work_of(self, recipe: Recipe, position: int) -> Work:
        """A scenario as it is to be played (or was), whatever has become of it."""
        query = "SELECT content, take, sample FROM scenarios WHERE position = ?"
        row = self._reader.execute(query, (position,)).fetchone()
        scenario = self._unpacked(recipe, row["content"])
        return Work(position, scenario, _thread(scenario, row["take"]), sample=row["sample"])

    async def promote(self, work: Work, branch: BranchTaken | None, outcome: Outcome, calls: Sequence[int]) -> None:
        """Make what came of a branch the scenario's outcome. All judgements of the one before are dropped.

        Args:
            work: The scenario.
            branch: The branch; `None` for the scenario's own line.
            outcome: What came of it.
            calls: The ids of the calls that it came from.
        """
        from .checkpoints.upkeep import delete_threads

        def exchange(connection: sqlite3.Connection) -> None:
            query = "SELECT branch ->> 'name' FROM scenarios WHERE position = ?"
            before = connection.execute(query, (work.position,)).fetchone()[0] or MAIN
            after = MAIN if branch is None else branch.name
            exchange_calls(connection, work.position, before, after, calls)
            connection.execute(
                "UPDATE scenarios SET state = 'done', fault = NULL, error = NULL, branch = ? WHERE position = ?",
                (branch and branch.model_dump_json(), work.position),
            )
            for table in ("outcomes", "judgements", "judged", "rejudgings"):
                connection.execute(f"DELETE FROM {table} WHERE scenario = ?", (work.position,))
            # Where other judges stood in the outcome before, they must not go on.
            judgings = "SELECT name FROM threads WHERE substr(name, 1, ?) = ?"
            names = connection.execute(judgings, (len(work.thread) + 1, f"{work.thread}#")).fetchall()
            delete_threads(connection, [name for (name,) in names])
            self._writer.forget()
            _insert_outcome(connection, self._texts, work.position, outcome)
            _insert_judgements(connection, work, outcome.judgements)

        await self._soon(exchange)

    @asynccontextmanager
    async def checkpointer(self) -> AsyncIterator[BaseCheckpointSaver[int]]:
        """Where LangGraph keeps its checkpoints: this file. The one place that knows which saver it is."""
        from .checkpoints import RunSaver

        saver = RunSaver(self._writer, self.path)
        try:
            yield saver
        finally:
            saver.close()

    def compact(self) -> Compacted:
        """Remove checkpointed values that nothing refers to any more, and give their room back to the disk."""
        from .checkpoints import RunSaver

        saver = RunSaver(self._writer, self.path)
        try:
            return saver.compact()
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error
        finally:
            saver.close()

    def close(self) -> None:
        """Finish writing and let others write."""
        super().close()
        self._writer.close()  # last, as only a connection that may write can put the log back into the file
        self._lock.close()

    async def _soon(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            return await self._writer.submit(work)
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    def _now(self, work: Callable[[sqlite3.Connection], Result], once: bool = False) -> Result:
        try:
            return self._writer.enqueue(work, once).result()
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    def __enter__(self) -> Self:
        return self


def remove(path: Path) -> None:
    """Remove a run file with what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _thread(scenario: Scenario, take: int) -> str:
    """A scenario's thread of checkpoints: one that is played anew has another."""
    return f"{scenario.id}@{take}" if take else scenario.id


# One that failed by a provider keeps its sample, so that what was answered is not paid twice.
_REJUDGE = f"""
INSERT INTO rejudgings (scenario, judging, sample, state)
SELECT position, ?1, {NEXT_SAMPLE}, 'pending' FROM scenarios WHERE state = 'done' AND position IN
    (SELECT scenario FROM judgements WHERE judging = ?1 AND status = 'unparsed')
ON CONFLICT (scenario, judging) DO UPDATE
SET sample = iif(state = 'done', excluded.sample, sample), state = 'pending'"""


def _initialise(path: Path, config: RunConfig, prompts: PromptLibrary) -> None:
    connection = sqlite3.connect(path)
    try:
        schema.create(connection)
        with connection:
            connection.execute("INSERT INTO run VALUES ('config', ?)", (config.model_dump_json(),))
            connection.executemany(
                "INSERT INTO prompts VALUES (?, ?, ?, ?, ?)",
                [(p.id, p.front.version, p.front.role, p.hash, p.source) for p in prompts.values()],
            )
    finally:
        connection.close()


def _insert_plan(connection: sqlite3.Connection, scenarios: Iterable[Scenario]) -> int:
    def keep(hash_: bytes, content: str) -> None:
        connection.execute("INSERT OR IGNORE INTO documents VALUES (?, ?)", (hash_, content))

    insert = "INSERT INTO scenarios (position, id, facets, content, state) VALUES (?, ?, ?, ?, 'pending')"
    count = 0
    for count, scenario in enumerate(scenarios, start=1):
        content = documents.pack(scenario.model_dump(mode="json"), keep)
        try:
            connection.execute(insert, (count - 1, scenario.id, canonical(scenario.facets()), content))
        except sqlite3.IntegrityError as error:
            raise StoreError(f"the plan holds the scenario {scenario.id!r} twice") from error
    connection.execute("INSERT INTO run VALUES ('planned', ?)", (str(count),))
    return count


def _insert_judging(connection: sqlite3.Connection, judging: Judging) -> None:
    models = {role: binding.model_dump() for role, binding in judging.models.items()}
    row = (judging.name, canonical(models), canonical(dict(judging.prompts)))
    connection.execute("INSERT INTO judgings (name, models, prompts) VALUES (?, ?, ?)", row)


def _insert_outcome(connection: sqlite3.Connection, texts: Texts, position: int, outcome: Outcome) -> None:
    messages = canonical([[line.role, texts.id_of(connection, line.content)] for line in outcome.messages])
    details = canonical(dict(outcome.details)) if outcome.details else None
    row = (position, outcome.ended_by, canonical(dict(outcome.counts)), messages, details)
    connection.execute(
        "INSERT INTO outcomes (scenario, ended_by, counts, messages, details) VALUES (?, ?, ?, ?, ?)", row
    )


def _replace_unparsed(connection: sqlite3.Connection, work: Work, judgements: Iterable[Judgement]) -> None:
    """Put what was judged again in the place of the unparsed judgement of the same thing."""
    made = {(each.metric, each.target, each.turn): each for each in judgements}
    which = "scenario = ? AND judging = ? AND status = 'unparsed'"
    query = f"SELECT ordinal, metric, target, turn FROM judgements WHERE {which}"
    update = (
        "UPDATE judgements SET score = ?, is_verdict = ?, status = ?, explanation = ? "
        "WHERE scenario = ? AND judging = ? AND ordinal = ?"
    )
    for ordinal, *thing in connection.execute(query, (work.position, work.judging)).fetchall():
        if (judgement := made.get((thing[0], thing[1], thing[2]))) is not None:
            where = (work.position, work.judging, ordinal)
            connection.execute(update, (*_scored(judgement), *where))


def _end_rejudging(connection: sqlite3.Connection, work: Work, state: str) -> None:
    update = "UPDATE rejudgings SET state = ? WHERE scenario = ? AND judging = ?"
    connection.execute(update, (state, work.position, work.judging))


def _scored(judgement: Judgement) -> tuple[float | None, bool, str, str]:
    """The columns that hold a judge's word."""
    score = judgement.score
    return None if score is None else float(score), isinstance(score, bool), judgement.status, judgement.explanation


def _insert_judgements(connection: sqlite3.Connection, work: Work, judgements: Iterable[Judgement]) -> None:
    rows = [
        (
            work.position,
            work.judging,
            ordinal,
            judgement.metric,
            judgement.target,
            judgement.turn,
            *_scored(judgement),
        )
        for ordinal, judgement in enumerate(judgements)
    ]
    connection.executemany(f"INSERT INTO judgements VALUES ({', '.join('?' * 10)})", rows)
