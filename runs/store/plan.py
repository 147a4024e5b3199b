"""The plan of a run: functions that write the plan and read its scenarios, and the queue of open work."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dialoom.errors import Advice
from dialoom.graphs import Outcome, Recipe, Scenario
from dialoom.graphs.outcome import TRIAL_SEPARATOR, USER_MODEL, episode_id
from dialoom.graphs.scenario import ByHash, SharedValueCache
from dialoom.runs.errors import StoreError
from dialoom.runs.store import references

from .episodes import read_episode, read_outcome
from .judgement_sets import OWN_JUDGEMENTS
from .ledger import Booking
from .references import DocumentPacker, encode_canonical


def insert_plan(
    connection: sqlite3.Connection,
    scenarios: Iterable[Scenario],
    sequence: str | None = None,
    users: Sequence[str] = (),
) -> int:
    """Insert scenarios in order, mark the planning as finished, and return the number of rows.

    Args:
        connection: The connection that writes the file.
        scenarios: The scenarios.
        sequence: A facet; scenarios with the same value are played one after another. The column `after` then has the
            position of the previous scenario in this sequence, and `session` the scenario's number in it.
        users: The user models, if there are several: all scenarios are inserted with the first one, then all with the
            second, and so on.

    Raises:
        StoreError: If two scenarios have the same id, or if scenarios have a facet with the name that is used for user
            models.
    """
    rows = _Rows(connection)
    columns = "position, id, facets, content, state, after, session"
    insert = f"INSERT INTO scenarios ({columns}) VALUES (?, ?, ?, ?, 'pending', ?, ?)"
    last: dict[str, tuple[int, int]] = {}
    count = 0
    for count, scenario in enumerate(scenarios, start=1):
        id_, facets, content = rows.of(scenario)
        after: tuple[int | None, int | None] = (None, None)
        if sequence is not None:
            value = encode_canonical(facets.get(sequence))
            before, number = last.get(value, (None, 0))
            last[value] = count - 1, number + 1
            after = before, number + 1
        if users:
            if USER_MODEL in facets:
                raise StoreError(
                    f"the recipe has a facet {USER_MODEL!r}, a reserved name, so its runs can have only one user model"
                )
            facets = {**facets, USER_MODEL: users[0]}
        row = (count - 1, id_, encode_canonical(facets), content(), *after)
        try:
            connection.execute(insert, row)
        except sqlite3.IntegrityError:
            raise StoreError(
                f"scenario {scenario.id!r} is planned twice; scenarios must differ in at least one field"
            ) from None
    for number, user in enumerate(users[1:], start=2):
        connection.execute(
            f"INSERT INTO scenarios ({columns}) SELECT position + ?1, id || ?2, "
            f"json_set(facets, '$.{USER_MODEL}', ?3), content, state, after + ?1, session FROM scenarios "
            "WHERE position < ?4",
            (count * (number - 1), episode_id("", user=number), user, count),
        )
    count *= max(1, len(users))
    connection.execute("INSERT INTO run VALUES ('planned', ?)", (str(count),))
    return count


class _Rows:
    """The values of the plan's columns for scenarios. Long parts are stored as shared documents.

    Args:
        connection: The connection that writes the file.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._shared: set[str] = set()
        self._packing = DocumentPacker(self._keep)
        self._by_hash = ByHash(self._keep_shared)

    def of(self, scenario: Scenario) -> tuple[str, dict[str, Any], Callable[[], str]]:
        """Return a scenario's id, its facets, and a function that stores its documents and returns its content."""
        values = scenario.model_dump(mode="json", context=self._by_hash)
        return scenario.id_of(values), scenario.facets(), lambda: self._packing.pack(values)

    def _keep(self, hash_: bytes, content: str) -> None:
        if self._connection.execute("SELECT 1 FROM documents WHERE hash = ?", (hash_,)).fetchone() is None:
            self._connection.execute("INSERT INTO documents VALUES (?, ?)", (hash_, content))

    def _keep_shared(self, hash_: str, content: str) -> None:
        if hash_ not in self._shared:
            self._keep(bytes.fromhex(hash_), self._packing.pack(json.loads(content)))
            self._shared.add(hash_)


def insert_recorded(connection: sqlite3.Connection, scenarios: Sequence[Scenario]) -> list[int | None]:
    """Append scenarios that are already finished to the plan, without their outcomes.

    Returns:
        The position of each scenario; `None` if the plan already has the scenario.
    """
    rows, places = _Rows(connection), list[int | None]()
    (count,) = connection.execute("SELECT count(*) FROM scenarios").fetchone()
    insert = "INSERT INTO scenarios (position, id, facets, content, state) VALUES (?, ?, ?, ?, 'done')"
    for scenario in scenarios:
        id_, facets, content = rows.of(scenario)
        if connection.execute("SELECT 1 FROM scenarios WHERE id = ?", (id_,)).fetchone() is not None:
            places.append(None)
            continue
        connection.execute(insert, (count, id_, encode_canonical(facets), content()))
        places.append(count)
        count += 1
    connection.execute("UPDATE run SET value = ? WHERE key = 'planned'", (str(count),))
    return places


def insert_trials(connection: sqlite3.Connection, trials: int) -> None:
    """Add trials of every scenario and user model at the end of a plan, so that existing positions stay the same.

    In a run that plays each scenario once, the column `trial` is empty.

    Args:
        connection: The connection that writes the file.
        trials: The number of trials that each scenario has afterwards.
    """
    planned, there = connection.execute("SELECT count(*), coalesce(max(trial), 1) FROM scenarios").fetchone()
    size = planned // there
    connection.execute("UPDATE scenarios SET trial = 1 WHERE trial IS NULL")
    insert = (
        "INSERT INTO scenarios (position, id, trial, facets, content, state, after, session) "
        "SELECT position + ?1, id || ?2, ?3, facets, content, 'pending', after + ?1, session FROM scenarios "
        "WHERE position < ?4"
    )
    for trial in range(there + 1, trials + 1):
        connection.execute(insert, (size * (trial - 1), episode_id("", trial), trial, size))
    connection.execute("UPDATE run SET value = ? WHERE key = 'planned'", (str(size * trials),))


_PAGE = 200
_MOST_PARTS = 10_000
"""The maximum number of documents in one scenario: in a crafted file, parts may refer to each other endlessly."""


class PlanReader:
    """The reader of a run's scenarios, in plan order.

    Args:
        path: The run's file.
        reader: The connection that reads the file.
    """

    def __init__(self, path: Path, reader: sqlite3.Connection) -> None:
        self.path = path
        self._reader = reader
        self._document = lru_cache(maxsize=512)(self._read_document)
        self._shared = SharedValueCache(lambda hash_: references.unpack_document(hash_, self._document))

    def rows(self, query: str, *values: Any) -> Iterator[sqlite3.Row]:
        """Yield a query's rows, read page by page on demand, so that no read transaction lasts long.

        Args:
            query: A query that selects `position` and is ordered by it. Its first two parameters are the last position
                that was read and the page size.
            values: The further parameters of the query.
        """
        after = -1
        while page := self._reader.execute(query, (after, _PAGE, *values)).fetchall():
            yield from page
            after = page[-1]["position"]

    def scenario(self, recipe: Recipe, position: int) -> Scenario:
        """Return the scenario at a position of the plan."""
        row = self._reader.execute("SELECT content FROM scenarios WHERE position = ?", (position,)).fetchone()
        return self.scenario_of(recipe, row["content"])

    def scenario_of(self, recipe: Recipe, content: str) -> Scenario:
        """Return a recipe's scenario, made from the column `content` of its row.

        Raises:
            StoreError: If a part of the scenario is missing in the file.
        """
        left = iter(range(_MOST_PARTS))

        def document(hash_: bytes) -> str:
            if next(left, None) is None:
                raise StoreError(f"{self.path} is damaged: a scenario has more than {_MOST_PARTS:,} parts")
            return self._document(hash_)

        return recipe.scenario_type.model_validate(references.unpack(content, document), context=self._shared)

    def resolve(self, name: str) -> int:
        """Return an episode's position, given its id, its number in the plan (from 1) or a prefix of its scenario's id.

        A prefix selects the first trial with the first user model, and `PREFIX~2` the second trial.

        Raises:
            StoreError: If no scenario or several match.
        """
        if name.isdecimal() and (position := self._position("position = ?", int(name) - 1)) is not None:
            return position
        if (position := self.position_of(name)) is not None:
            return position
        # Ids are sorted by their text, so those with a common prefix are adjacent in the index.
        prefix, separator, numbers = name.partition(TRIAL_SEPARATOR)
        query = (
            "SELECT position, id FROM scenarios WHERE id >= ? AND id < ? AND substr(id, instr(id || "
            f"'{TRIAL_SEPARATOR}', "
            f"'{TRIAL_SEPARATOR}')) = ? ORDER BY position LIMIT 4"
        )
        chosen = (prefix, prefix + "\U0010ffff", separator + numbers)
        rows = self._reader.execute(query, chosen).fetchall() if prefix else []
        if len(rows) == 1:
            return int(rows[0]["position"])
        if rows:
            some = ", ".join(row["id"] for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
            raise StoreError(f"{name!r} is the prefix of several scenarios' ids: {some}; give a longer prefix")
        raise StoreError(
            f"{self.path} has no scenario {name!r}; it has {self.planned:,}, numbered from 1",
            advice=Advice("list", "list its scenarios", {"path": self.path}),
        )

    def position_of(self, id_: str) -> int | None:
        """Return the position of a scenario by its full id; `None` if there is none."""
        return self._position("id = ?", id_)

    def listing(self) -> Iterator[tuple[int, str, str, str | None]]:
        """Yield every scenario's position, id, state and ending."""
        yield from (
            (row["position"], row["id"], row["state"], row["ended_by"])
            for row in self.rows(
                "SELECT position, id, state, ended_by FROM scenarios LEFT JOIN outcomes ON scenario = position "
                "WHERE position > ? ORDER BY position LIMIT ?"
            )
        )

    def planned_facets(self) -> Iterator[dict[str, Any]]:
        """Yield the facets of every scenario, whether it is finished or not."""
        yield from (
            json.loads(row["facets"])
            for row in self.rows("SELECT position, facets FROM scenarios WHERE position > ? ORDER BY position LIMIT ?")
        )

    @property
    def planned(self) -> int:
        """The number of scenarios in the plan."""
        return int(self._reader.execute("SELECT count(*) FROM scenarios").fetchone()[0])

    def _position(self, condition: str, value: Any) -> int | None:
        row = self._reader.execute(f"SELECT position FROM scenarios WHERE {condition}", (value,)).fetchone()
        return None if row is None else int(row["position"])

    def _read_document(self, hash_: bytes) -> str:
        row = self._reader.execute("SELECT content FROM documents WHERE hash = ?", (hash_,)).fetchone()
        if row is None:
            raise StoreError(f"{self.path} lacks the document {hash_.hex()}; the file is damaged")
        return str(row["content"])


def thread_of(id_: str, take: int) -> str:
    """Return the name of the thread for an episode's checkpoints.

    An episode that restarts from its beginning gets a new thread.
    """
    return f"{id_}@{take}" if take else id_


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work in a run.

    Attributes:
        position: The scenario's place in the plan, from 0.
        id: The episode's id.
        scenario: The scenario.
        thread: The thread of its checkpoints.
        sample: The sample number; recorded replies are reused only within one sample.
    """

    position: int
    id: str
    scenario: Scenario
    thread: str
    sample: int


@dataclass(frozen=True, slots=True)
class PlayWork(Work):
    """A scenario to play.

    Attributes:
        after: The position of the conversation that must be played first, if there is one.
        session: The number of the conversation in its sequence, from 1.
    """

    after: int | None = None
    session: int = 1


@dataclass(frozen=True, slots=True)
class JudgeWork(Work):
    """A finished scenario to judge.

    Attributes:
        judgement_set: The name of the set to which the judgements are added.
        outcome: The scenario's outcome; if it is judged again, with the parsed judgements of the set.
        is_repeated: Whether the scenario was judged before, and only its unparsed judgements are repeated.
    """

    judgement_set: str
    outcome: Outcome
    is_repeated: bool = False


_OF_WORK = "position, id, content, take, sample, after, session"


class WorkQueue:
    """The open work of a run, read from the file in plan order, page by page on demand.

    Args:
        reader: The connection that reads the file.
        plan: The file's scenarios.
        bookings: The bookings of the threads in progress, which the ledger reads.
    """

    def __init__(self, reader: sqlite3.Connection, plan: PlanReader, bookings: dict[str, Booking]) -> None:
        self._reader = reader
        self._plan = plan
        self._bookings = bookings

    def pending(
        self, recipe: Recipe, only: Container[int] | None = None, longest_first: str | None = None
    ) -> Iterator[PlayWork]:
        """Yield the scenarios to play.

        Args:
            recipe: Their recipe.
            only: The positions to include; by default all.
            longest_first: A facet to sort by in descending order, instead of the plan's order.
        """
        if longest_first is not None:
            query = "SELECT position FROM scenarios WHERE state = 'pending' ORDER BY facets ->> ? DESC, position"
            for (position,) in self._reader.execute(query, (longest_first,)).fetchall():
                if only is None or position in only:
                    yield self.work_of(recipe, position)
            return
        query = f"SELECT {_OF_WORK} FROM scenarios WHERE state = 'pending' AND position > ? ORDER BY position LIMIT ?"
        for row in self._plan.rows(query):
            if only is None or row["position"] in only:
                yield self._play_work(recipe, row)

    def work_of(self, recipe: Recipe, position: int) -> PlayWork:
        """Return the piece of work that plays a scenario, whatever state the scenario is in."""
        return self._play_work(
            recipe, self._reader.execute(f"SELECT {_OF_WORK} FROM scenarios WHERE position = ?", (position,)).fetchone()
        )

    def to_judge(self, recipe: Recipe, name: str, only: Container[int] | None = None) -> Iterator[JudgeWork]:
        """Yield the finished scenarios without judgements in a set.

        Args:
            recipe: Their recipe.
            name: The set's name.
            only: The positions to include; by default all.
        """
        for row in self._plan.rows(
            "SELECT position, id, content, take FROM scenarios WHERE state = 'done' AND position > ?1 AND NOT EXISTS "
            "(SELECT 1 FROM judged WHERE judging = ?3 AND scenario = position) ORDER BY position LIMIT ?2",
            name,
        ):
            if only is None or row["position"] in only:
                scenario = self._plan.scenario_of(recipe, row["content"])
                thread = f"{thread_of(row['id'], row['take'])}#{name}"
                outcome = read_outcome(self._reader, row["position"])
                yield JudgeWork(row["position"], row["id"], scenario, thread, 0, name, outcome)

    def continued(self) -> set[int]:
        """Return the positions of the pending scenarios that follow a finished one in sequence, or another of these."""
        query = (
            "SELECT position FROM scenarios WHERE state = 'pending' AND EXISTS "
            "(SELECT 1 FROM scenarios AS earlier WHERE earlier.position = scenarios.after AND earlier.state = 'done')"
        )
        first = {row["position"] for row in self._reader.execute(query)}
        return first | self.later(first)

    def later(self, positions: Collection[int]) -> set[int]:
        """Return the positions of the scenarios that are played after any of some scenarios, in sequence."""
        found = set(positions)
        query = "SELECT position, after FROM scenarios WHERE after IS NOT NULL ORDER BY position"
        for row in self._reader.execute(query):
            if row["after"] in found:
                found.add(row["position"])
        return found.difference(positions)

    def count_to_judge(self, name: str, only: Container[int] | None = None) -> int:
        """Return the number of finished scenarios without judgements in a set, among all or only some positions."""
        return sum(
            only is None or position in only
            for (position,) in self._reader.execute(
                "SELECT position FROM scenarios WHERE state = 'done' AND NOT EXISTS "
                "(SELECT 1 FROM judged WHERE judging = ? AND scenario = position)",
                (name,),
            )
        )

    def to_rejudge(self, recipe: Recipe, name: str, only: Container[int] | None = None) -> Iterator[JudgeWork]:
        """Yield the finished scenarios whose unparsed judgements in a set should be repeated (see `Retries.unparsed`).

        Args:
            recipe: Their recipe.
            name: The set's name.
            only: The positions to include; by default all.
        """
        for row in self._plan.rows(
            "SELECT position, id, content, take, rejudgings.sample FROM scenarios JOIN rejudgings "
            "ON scenario = position "
            "WHERE rejudgings.state = 'pending' AND position > ?1 AND judging = ?3 ORDER BY position LIMIT ?2",
            name,
        ):
            if only is not None and row["position"] not in only:
                continue
            position, sample = row["position"], row["sample"]
            scenario = self._plan.scenario_of(recipe, row["content"])
            thread = f"{thread_of(row['id'], row['take'])}#{name}#{sample}"
            episode = read_episode(self._reader, (name,), position)
            assert episode is not None, "a scenario that is judged again is finished"
            parsed = tuple(each for each in episode.outcome.judgements if each.status != "unparsed")
            outcome = episode.outcome.model_copy(update={"judgements": parsed})
            yield JudgeWork(position, row["id"], scenario, thread, sample, name, outcome, is_repeated=True)

    def begin(self, work: Work, branch: str | None = None, line: Sequence[str] = ()) -> None:
        """Mark a piece of work as in progress, so that its calls are recorded as calls of its scenario.

        Args:
            work: The work.
            branch: The branch to which the calls belong, if it is not the scenario's own line.
            line: The keys of the calls before them, as far as they are known.
        """
        name = work.judgement_set if isinstance(work, JudgeWork) else OWN_JUDGEMENTS
        self._bookings[work.thread] = Booking(work.position, None if name == OWN_JUDGEMENTS else name, branch, line)

    def end(self, work: Work) -> None:
        """Mark a piece of work as no longer in progress, whatever its result."""
        self._bookings.pop(work.thread, None)

    def _play_work(self, recipe: Recipe, row: sqlite3.Row) -> PlayWork:
        scenario = self._plan.scenario_of(recipe, row["content"])
        thread = thread_of(row["id"], row["take"])
        return PlayWork(row["position"], row["id"], scenario, thread, row["sample"], row["after"], row["session"] or 1)
