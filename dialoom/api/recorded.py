"""Reading a run's file: its plan, conversations, judgements, labels and usage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dialoom.graphs import DialogueFault, Recipe, Scenario
from dialoom.runs.config import RunConfig
from dialoom.runs.recipes import find_recipe
from dialoom.runs.scenario_pages import selected
from dialoom.runs.store import Choices, JudgementSet, Neighbours, RunFile, ScenarioPage, ScenarioQuery, Status
from dialoom.runs.store.episodes import RecordedEpisode
from dialoom.runs.trust import Trust
from dialoom.settings import PathLike

from .settings import RecipeLike

if TYPE_CHECKING:  # heavy, or an extra
    from dialoom.runs.agreement import Agreement, GivenLabel, Labelled
    from dialoom.runs.progress import RunProgress
    from dialoom.runs.viewing import Conversation, RequestShown


_ALL = ScenarioQuery()


class RecordedRun:
    """A handle for reading a run's file at any time, also while another process plays it; `Run` can resume it, too.

    Args:
        path: The file.
        recipe: The recipe, if it was given as an object when the run was made.
        trust: Use the code and the addresses that the file names, whoever made it. Without it, only what this user has
            given on this machine when the run was made, which is known from a private list.

    Attributes:
        path: The file.

    Raises:
        StoreError: If there is no such file, or it is no run.
        RunError: If its recipe cannot be loaded, as soon as it is needed; if another recipe made it.
        TrustError: If the recipe is a file that only the run's author has named, as soon as it is needed.
    """

    def __init__(self, path: PathLike, recipe: RecipeLike | None = None, *, trust: bool = False) -> None:
        self._trust = trust
        self.path = Path(path)
        self._given = None if recipe is None else find_recipe(recipe)[1]
        with self._opened():
            pass

    def __len__(self) -> int:
        """Return the number of planned scenarios."""
        with self._opened() as file:
            return file.planned

    @property
    def config(self) -> RunConfig:
        """The run's configuration: recipe, options, models, seed."""
        with self._opened() as file:
            return file.config

    @property
    def recipe(self) -> Recipe:
        """The run's recipe."""
        with self._opened() as file:
            return file.recipe

    @property
    def judgement_sets(self) -> list[JudgementSet]:
        """The sets of judgements, oldest first."""
        with self._opened() as file:
            return file.judgement_sets()

    def metrics(self, judging: str | None = None) -> list[str]:
        """Return the metrics of a set of judgements (by default the oldest), in the recipe's order."""
        with self._opened() as file:
            chosen = file.judgement_set(judging)
            return [] if chosen is None else file.metrics_of(chosen.name, file.recipe)

    def status(self) -> Status:
        """Return the number of scenarios by state, and the usage of the calls."""
        with self._opened() as file:
            return file.status()

    def scenarios(
        self,
        query: ScenarioQuery = _ALL,
        *,
        where: str | None = None,
        said: str | None = None,
        offset: int = 0,
        limit: int = 50,
        on_progress: Callable[[str, int, int], None] | None = None,
    ) -> ScenarioPage:
        """Return a page of scenarios, finished or not, with their figures; fast for any number of them without `where`.

        Args:
            query: Which, and in which order; by default all, in plan order.
            where: Of these, those that an expression holds of; see `episodes`.
            said: Of these, those in which something was said: words of one message, in any order; `"in quotes"` beside
                each other; `begin*` for what begins so. They are looked up in an index in the user's folder for caches,
                which is made when it is first needed; see `dialoom.runs.search_index`.
            offset: Number of scenarios to skip.
            limit: Number of scenarios on a page.
            on_progress: Called with the task, the count done and the total while an expression is evaluated for
                every scenario, or the index is built; an exception that it raises ends that.

        Raises:
            RunError: If the expression cannot be evaluated, or there is no word in `said`.
            StoreError: If the query is invalid, or there is no such set of judgements.
            OutputError: If the index cannot be written.
        """
        from dialoom.runs.scenario_pages import listed, unheard

        with self._opened() as file:
            return listed(file, query, where, said, offset, limit, on_progress or unheard)

    def neighbours(
        self, scenario: str | int, query: ScenarioQuery = _ALL, *, where: str | None = None, said: str | None = None
    ) -> Neighbours | None:
        """Return a scenario's neighbours in the list that `scenarios` returns for the query; `None` if it is not in it.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            query: Which scenarios, and in which order; by default all, in plan order.
            where: As for `scenarios`.
            said: As for `scenarios`.

        Raises:
            RunError, StoreError, OutputError: As `scenarios`; also if there is no such scenario.
        """
        from dialoom.runs.scenario_pages import neighbours

        with self._opened() as file:
            return neighbours(file, scenario, query, where, said)

    def choices(self) -> Choices:
        """Return the values by which a `ScenarioQuery` can filter, with the number of scenarios that have each."""
        with self._opened() as file:
            return file.choices()

    def progress(self) -> RunProgress:
        """Return the run's progress, also while another process plays it: status, budget, usage by model, failures."""
        from dialoom.runs.progress import RunProgress

        with self._opened() as file:
            return RunProgress.of(file)

    def episodes(self, judging: str | None = None, *, where: str | None = None) -> Iterator[RecordedEpisode]:
        """Yield the result of each finished scenario (done or failed), in plan order, read a page at a time.

        Args:
            judging: The set of judgements to return with them; by default the oldest.
            where: Only those that match this expression: over the recipe's facets, counts and metrics by their
                names, and `state`, `ended_by`, `changed`, `unparsed` and others; e.g. `personalization >= 3 and
                ended_by == 'user_terminated'`. No comparison with a missing score holds.

        Raises:
            StoreError: If there is no such set.
            RunError: If the expression is wrong.
        """
        with self._opened() as file:
            yield from selected(file, judging, where)

    def episode(self, scenario: str | int, judging: str | None = None) -> RecordedEpisode | None:
        """Return the result of one scenario; `None` while it is pending.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            judging: The set of judgements; by default the oldest.

        Raises:
            StoreError: If there is no such scenario or set.
        """
        with self._opened() as file:
            return file.episode(file.resolve(str(scenario)), judging)

    def so_far(self, scenario: str | int, judging: str | None = None) -> RecordedEpisode:
        """Return a result as `episode` does; of a pending scenario, its state so far (`ended_by` is empty)."""
        with self._opened() as file:
            position = file.resolve(str(scenario))
            return file.episode(position, judging) or file.so_far(position)

    def conversation(self, scenario: str | int, judging: str | None = None) -> Conversation:
        """Return a scenario's conversation, finished or not: each message with its faults, judgements and call.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            judging: The set of judgements; by default the oldest.

        Raises:
            StoreError: If there is no such scenario or set.
        """
        from dialoom.runs.viewing import conversation

        with self._opened() as file:
            return conversation(file, scenario, judging)

    def request(self, call: int, before: int | None = None) -> RequestShown:
        """Return the request of a call, message by message, with what is new in it.

        Args:
            call: The call's row in the ledger.
            before: The row of the call to compare with.

        Raises:
            RunError: If there is no such call.
        """
        from dialoom.runs.viewing import request_shown

        with self._opened() as file:
            return request_shown(file, call, before)

    def label(
        self, scenario: str | int, item: str, annotator: str, label: str, *, path: PathLike | None = None
    ) -> None:
        """Write a person's label of a judgement to the labels file, from which kappas are computed.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            item: The judgement's id, as `conversation` has it.
            annotator: The person's name.
            label: A value of the metric's scale (`yes`, `4`); empty to remove the label.
            path: The labels file, made if it is not there; by default `NAME.labels.csv` beside the run.

        Raises:
            RunError: If there is no such judgement, or the label is not on its scale.
            DataError: If the file cannot be read.
            OutputError: If it cannot be written.
        """
        from dialoom.runs.agreement import LabelFile, labels_beside

        labels = LabelFile(labels_beside(self.path) if path is None else Path(path))
        with self._opened() as file:
            labels.put(file, file.resolve(str(scenario)), item, annotator, label)

    def labels(self, annotator: str, *, path: PathLike | None = None) -> dict[str, str]:
        """Return a person's labels of judgements of the current conversations, by the judgements' ids; see `label`."""
        return {each.item: each.label for each in self.given_labels(annotator, path=path) if not each.is_earlier}

    def given_labels(
        self, annotator: str, scenario: str | int | None = None, *, path: PathLike | None = None
    ) -> list[GivenLabel]:
        """Return all labels of a person, each with whether it was given to an earlier conversation of the scenario.

        A label belongs to the conversation that was read: when another branch becomes the scenario's outcome, or it is
        played anew, its labels do not count until that conversation is the outcome again.

        Args:
            annotator: The person's name.
            scenario: Only labels of this scenario; by default of all.
            path: The labels file; by default that of `label`.

        Raises:
            DataError: If the file cannot be read.
        """
        from dialoom.runs.agreement import LabelFile, labels_beside

        labels = LabelFile(labels_beside(self.path) if path is None else Path(path))
        with self._opened() as file:
            position = None if scenario is None else file.resolve(str(scenario))
            return list(labels.given(file, annotator, position))

    def labelled(
        self,
        annotator: str,
        *,
        metrics: Sequence[str] = (),
        judging: str | None = None,
        path: PathLike | None = None,
    ) -> dict[int, Labelled]:
        """Return how much a person has labelled of each scenario's conversation, by the scenario's position.

        Args:
            annotator: The person's name.
            metrics: The metrics that are to be labelled; by default all of the set.
            judging: The set of judgements; by default the oldest.
            path: The labels file; by default that of `label`.

        Returns:
            The number of labels and of judgements to label, of scenarios with at least one label.
        """
        from dialoom.runs.agreement import labelled, labels_beside

        with self._opened() as file:
            labels = labels_beside(self.path) if path is None else Path(path)
            return labelled(file, labels, annotator, metrics, judging)

    def agreement(self, *, path: PathLike | None = None, judging: str | None = None) -> Agreement:
        """Return the agreement of people with a judge, from their labels; needs the extra `agree`.

        Args:
            path: The labels file; by default that of `label`.
            judging: The set of judgements; by default the oldest.

        Raises:
            RunError: If statsmodels is not installed.
            DataError: If the file cannot be read, or holds labels of another run.
            StoreError: If there is no such set.
        """
        from dialoom.runs.agreement import agreement, labels_beside, read_labels

        labels = read_labels(labels_beside(self.path) if path is None else Path(path))
        with self._opened() as file:
            return agreement(file, labels, judging=judging)

    def position(self, scenario: str | int) -> int:
        """Return the position of a scenario in the plan, from 0; named as for `episode`.

        Raises:
            StoreError: If there is no such scenario.
        """
        with self._opened() as file:
            return file.resolve(str(scenario))

    def scenario(self, scenario: str | int) -> Scenario:
        """Return a scenario as it was planned, finished or not; named as for `episode`."""
        with self._opened() as file:
            return file.scenario(file.recipe, file.resolve(str(scenario)))

    def faults(
        self, judging: str | None = None, *, where: str | None = None
    ) -> Iterator[tuple[RecordedEpisode, DialogueFault]]:
        """Yield each fault of the conversations with the scenario that it belongs to, in plan order.

        Args:
            judging: The set of judgements whose judges' faults are among them; by default the oldest.
            where: Only those of scenarios that match this expression, such as `faults.user > 0`; see `episodes`.

        Raises:
            StoreError: If there is no such set.
            RunError: If the expression is wrong.
        """
        for episode in self.episodes(judging, where=where):
            for fault in episode.outcome.faults or ():
                yield episode, fault

    @contextmanager
    def _opened(self) -> Iterator[RunFile]:
        with RunFile(self.path, recipe=self._given, trust=Trust(self._trust)) as file:
            yield file
