"""The work that a run has left, and the work that is under way."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterator

from dialoom.graphs import Recipe

from .episodes import read_episode, read_outcome
from .judgement_sets import OWN_JUDGEMENTS
from .ledger import Booking
from .scenarios import ScenarioTable, thread_of
from .work import JudgeWork, PlayWork, RejudgeWork, Work


class WorkQueue:
    """What is to be done in a run: always read from the file, in plan order, page by page as it is asked for.

    Args:
        reader: Reads the file.
        scenarios: Its scenarios.
        bookings: On what the calls of each thread under way are booked; the ledger reads it.
    """

    def __init__(self, reader: sqlite3.Connection, scenarios: ScenarioTable, bookings: dict[str, Booking]) -> None:
        self._reader = reader
        self._scenarios = scenarios
        self._bookings = bookings

    def pending(
        self, recipe: Recipe, only: Container[int] | None = None, longest_first: str | None = None
    ) -> Iterator[PlayWork]:
        """Scenarios to play.

        Args:
            recipe: Whose they are.
            only: Their positions, if not all are wanted.
            longest_first: A facet; those of which it is greatest come first then, and not those of the plan.
        """
        if longest_first is not None:
            query = "SELECT position FROM scenarios WHERE state = 'pending' ORDER BY facets ->> ? DESC, position"
            for (position,) in self._reader.execute(query, (longest_first,)).fetchall():
                if only is None or position in only:
                    yield self.work_of(recipe, position)
            return
        query = (
            "SELECT position, content, take, sample FROM scenarios WHERE state = 'pending' AND position > ? "
            "ORDER BY position LIMIT ?"
        )
        for row in self._scenarios.rows(query):
            if only is None or row["position"] in only:
                yield self._play_work(recipe, row)

    def work_of(self, recipe: Recipe, position: int) -> PlayWork:
        """A scenario as it is to be played (or was), whatever has become of it."""
        query = "SELECT position, content, take, sample FROM scenarios WHERE position = ?"
        return self._play_work(recipe, self._reader.execute(query, (position,)).fetchone())

    def to_judge(self, recipe: Recipe, name: str, only: Container[int] | None = None) -> Iterator[JudgeWork]:
        """Finished scenarios that a set has no judgements of yet.

        Args:
            recipe: Whose they are.
            name: The set's name.
            only: Their positions, if not all are wanted.
        """
        query = (
            "SELECT position, content, take FROM scenarios WHERE state = 'done' AND position > ?1 AND NOT EXISTS "
            "(SELECT 1 FROM judged WHERE judging = ?3 AND scenario = position) ORDER BY position LIMIT ?2"
        )
        for row in self._scenarios.rows(query, name):
            if only is not None and row["position"] not in only:
                continue
            scenario = self._scenarios.scenario(recipe, row["content"])
            thread = f"{thread_of(scenario.id, row['take'])}#{name}"
            yield JudgeWork(row["position"], scenario, thread, name, read_outcome(self._reader, row["position"]))

    def count_to_judge(self, name: str, only: Container[int] | None = None) -> int:
        """How many finished scenarios a set has no judgements of yet: of all, or of some positions."""
        query = (
            "SELECT position FROM scenarios WHERE state = 'done' AND NOT EXISTS "
            "(SELECT 1 FROM judged WHERE judging = ? AND scenario = position)"
        )
        return sum(only is None or position in only for (position,) in self._reader.execute(query, (name,)))

    def to_rejudge(self, recipe: Recipe, name: str, only: Container[int] | None = None) -> Iterator[RejudgeWork]:
        """Finished scenarios whose unparsed judgements in a set are to be made again (see `Retries.unparsed`).

        Args:
            recipe: Whose they are.
            name: The set's name.
            only: Their positions, if not all are wanted.
        """
        query = (
            "SELECT position, content, take, rejudgings.sample FROM scenarios JOIN rejudgings ON scenario = position "
            "WHERE rejudgings.state = 'pending' AND position > ?1 AND judging = ?3 ORDER BY position LIMIT ?2"
        )
        for row in self._scenarios.rows(query, name):
            if only is not None and row["position"] not in only:
                continue
            position, sample = row["position"], row["sample"]
            scenario = self._scenarios.scenario(recipe, row["content"])
            thread = f"{thread_of(scenario.id, row['take'])}#{name}#{sample}"
            episode = read_episode(self._reader, (name,), position)
            assert episode is not None, "what is judged again is done"
            parsed = tuple(each for each in episode.outcome.judgements if each.status != "unparsed")
            outcome = episode.outcome.model_copy(update={"judgements": parsed})
            yield RejudgeWork(position, scenario, thread, name, sample, outcome)

    def begin(self, work: Work, branch: str | None = None) -> None:
        """Say that work is under way, so that its calls are booked on its scenario.

        Args:
            work: The work.
            branch: The branch of the scenario that the calls belong to, if it is not its own line.
        """
        match work:
            case PlayWork():
                judging = None
            case JudgeWork(judgement_set=name) | RejudgeWork(judgement_set=name):
                judging = None if name == OWN_JUDGEMENTS else name
        self._bookings[work.thread] = Booking(work.position, judging, branch)

    def end(self, work: Work) -> None:
        """Say that work is not under way any more, whatever came of it."""
        self._bookings.pop(work.thread, None)

    def _play_work(self, recipe: Recipe, row: sqlite3.Row) -> PlayWork:
        scenario = self._scenarios.scenario(recipe, row["content"])
        return PlayWork(row["position"], scenario, thread_of(scenario.id, row["take"]), row["sample"])
