"""The read handle of a run: its plan, conversations, judgements, labels, usage, reports and exports."""

from __future__ import annotations

import itertools
import os
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from dialoom.graphs import DialogueFault, Recipe, Scenario
from dialoom.graphs.capabilities import WithPrompts
from dialoom.runs.configuration.config import RunConfig, config_diff
from dialoom.runs.configuration.recipes import find_recipe
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.errors import RunError, TrustError
from dialoom.runs.reading.scenarios import (
    all_scenarios,
    ignore_progress,
    neighbours,
    scenario_page,
    search_messages,
    selected,
)
from dialoom.runs.report import Report
from dialoom.runs.store import Choices, JudgementSet, Neighbours, RunFile, ScenarioPage, ScenarioQuery, Status
from dialoom.runs.store.episodes import PromotedBranch, RecordedEpisode
from dialoom.runs.store.ledger import CommonCall
from dialoom.settings import PathLike

from .settings import RecipeLike

if TYPE_CHECKING:  # heavy, or an extra
    import datasets
    import pandas

    from dialoom.runs.agreement import Agreement, GivenLabel, Labelled, Sample
    from dialoom.runs.export import Encoding, Soundness
    from dialoom.runs.progress import RunProgress
    from dialoom.runs.reading.conversations import Conversation, RequestDiff
    from dialoom.runs.stepping import ReadOnlyStepper

    from .frames import Kind


_ALL = ScenarioQuery()


class RunReader:
    """A handle that reads a run's file at any time, also while another process plays it.

    The file is open while something is read. In a `with` block it stays open, so that all reads share the connection,
    the recipe and the trust.

    Args:
        path: The file.
        recipe: The recipe, if it was given as an object when the run was made.
        trust: Use the code and the addresses that the file names, whoever made it; a `Trust` also reports what it
            allows. Without it, only what this user has given on this machine when the run was made, which is known
            from a private list.

    Attributes:
        path: The file.

    Raises:
        StoreError: If there is no such file, or it is no run.
        RunError: If its recipe cannot be loaded, as soon as it is needed; if another recipe made it.
        TrustError: If the recipe is a file that only the run's author has named, as soon as it is needed.
    """

    def __init__(self, path: PathLike, recipe: RecipeLike | None = None, *, trust: bool | Trust = False) -> None:
        self._trust = trust if isinstance(trust, Trust) else Trust(trust)
        self.path = Path(path)
        self._given = None if recipe is None else find_recipe(recipe)[1]
        self._file: RunFile | None = None
        with self._opened():
            pass

    def __enter__(self) -> Self:
        self._file = self._open()
        return self

    def __exit__(self, _type: object, error: BaseException | None, trace: TracebackType | None) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.__exit__(_type, error, trace)

    def __len__(self) -> int:
        """Return the number of planned scenarios."""
        with self._opened() as file:
            return file.planned

    @property
    def config(self) -> RunConfig:
        """The run's configuration: recipe, options, models, seed."""
        with self._opened() as file:
            return file.config

    def config_diff(self, config: RunConfig, recipe: Recipe, prompts: Path | None = None) -> list[str]:
        """Return the differences from another configuration, as `key: then, now`.

        Args:
            config: The requested configuration.
            recipe: The recipe.
            prompts: A folder of overrides; without one, the run's prompts are not compared.
        """
        with self._opened() as file:
            found = config_diff(file.config, config)
            if prompts is not None:
                stored, requested = file.prompts, WithPrompts.of(recipe).library(prompts)
                found += [f"prompt {id_}: another text" for id_ in requested if stored[id_].hash != requested[id_].hash]
            return found

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
        """Return the metrics of a set of judgements (by default the oldest), in the recipe's order if it is trusted."""
        with self._opened() as file:
            chosen, recipe = file.judgement_set(judging), None
            with suppress(TrustError):
                recipe = file.recipe
            return [] if chosen is None else file.metrics_of(chosen.name, recipe)

    def models(self, judging: str | None = None) -> dict[str, str]:
        """Return the models by role; those of judging roles are of a set of judgements (by default the oldest)."""
        with self._opened() as file:
            chosen = file.judgement_set(judging)
            return {**file.config.model_names, **({} if chosen is None else chosen.model_names)}

    @property
    def is_gated(self) -> bool:
        """Whether the faults of any conversation are known."""
        with self._opened() as file:
            return file.is_gated

    @property
    def promoted_branches(self) -> list[tuple[str, PromotedBranch]]:
        """The scenarios, by id, whose outcome comes from a branch of the step debugger."""
        with self._opened() as file:
            return file.promoted_branches()

    def unparsed(self, judging: str | None = None) -> int:
        """Return the number of unparsed judgements of a set (by default the oldest)."""
        with self._opened() as file:
            chosen = file.judgement_set(judging)
            return 0 if chosen is None else file.unparsed(chosen.name)

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
                which is made when it is first needed; see `dialoom.runs.reading.search_index`.
            offset: Number of scenarios to skip.
            limit: Number of scenarios on a page.
            on_progress: Called with the task, the count done and the total while an expression is evaluated for
                every scenario, or the index is built; an exception that it raises ends that.

        Raises:
            RunError: If the expression cannot be evaluated, or there is no word in `said`.
            StoreError: If the query is invalid, or there is no such set of judgements.
            OutputError: If the index cannot be written.
        """
        with self._opened() as file:
            return scenario_page(file, query, where, said, offset, limit, on_progress or ignore_progress)

    def figures(
        self,
        judging: str | None = None,
        *,
        where: str | None = None,
        sort: str | None = None,
        is_descending: bool = False,
    ) -> Iterator[tuple[int, RecordedEpisode]]:
        """Yield the position and the figures of every scenario, finished or not; memory does not grow without `sort`.

        Args:
            judging: The set of judgements; by default the oldest.
            where: Only scenarios that match this expression; see `episodes`.
            sort: An expression to sort by; scenarios without a value come last. By default in plan order.
            is_descending: Return the highest first.

        Raises:
            RunError: If an expression is wrong.
            StoreError: If there is no such set.
        """
        with self._opened() as file:
            yield from all_scenarios(file, judging, where, sort, is_descending)

    def search(self, words: str, on_progress: Callable[[str, int, int], None] | None = None) -> dict[int, str]:
        """Return the first message that contains the words, by the scenario's position; see `said` of `scenarios`.

        Raises:
            RunError: If there is no word.
            OutputError: If the index cannot be written.
        """
        with self._opened() as file:
            return search_messages(file, words, on_progress or ignore_progress)

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
        from dialoom.runs.reading.conversations import conversation

        with self._opened() as file:
            return conversation(file, scenario, judging)

    def dialogue(self, scenario: str | int, judging: str | None = None) -> dict[str, Any]:
        """Return a scenario's row of the `dialogues` export with its `state`, finished or not; see `episode`."""
        from dialoom.runs.export import dialogue, provenance

        with self._opened() as file:
            position = file.resolve(str(scenario))
            episode = file.episode(position, judging) or file.so_far(position)
            models, prompts = provenance(file, file.judgement_set(judging))
            row = dialogue(episode, file.scenario(file.recipe, position), file.recipe, models, prompts)
        return {**row, "state": episode.state}

    def calls(self, scenario: str | int) -> list[dict[str, Any]]:
        """Return the calls of a scenario in the order in which they began; named as for `episode`.

        Each has the columns of the ledger, `faults` (those that the gate found in its reply) and `rejected` (whether
        its line was requested again because of one).
        """
        from dialoom.runs.reading.conversations import faulty_calls

        with self._opened() as file:
            position = file.resolve(str(scenario))
            calls, episode = file.calls_of(position), file.episode(position) or file.so_far(position)
            found = faulty_calls(file, position, calls, episode.outcome)
        return [
            {**call, "rejected": call["call"] in found.rejected, "faults": found.faults.get(call["call"], [])}
            for call in calls
        ]

    def common_calls(self, scenario: str | int) -> list[CommonCall]:
        """Return the calls that a scenario shares with others; named as for `episode`."""
        with self._opened() as file:
            return file.common_calls(file.resolve(str(scenario)))

    def request(self, call: int, before: int | None = None) -> RequestDiff:
        """Return the request of a call, message by message, with what is new in it.

        Args:
            call: The call's row in the ledger.
            before: The row of the call to compare with.

        Raises:
            RunError: If there is no such call.
        """
        from dialoom.runs.reading.conversations import request_diff

        with self._opened() as file:
            return request_diff(file, call, before)

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

    def sample_to_label(
        self,
        path: PathLike,
        size: int,
        annotators: Sequence[str],
        *,
        seed: int | None = None,
        judging: str | None = None,
        metrics: Collection[str] = (),
        scales: Iterable[str] = (),
        where: str | None = None,
    ) -> Sample:
        """Draw judgements with a score, and write them as a CSV file for people to label.

        Args:
            path: The file; it must not exist.
            size: Number of judgements, divided evenly between metrics, targets, and whole conversations and turns.
            annotators: Names, each of which gets a column.
            seed: The seed of the draw; by default the run's.
            judging: The set of judgements; by default the oldest.
            metrics: Only these; by default all.
            scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not state.
            where: Only scenarios that match this expression; see `episodes`.

        Raises:
            RunError: If there is nothing to draw from, a scale is unknown, or the file exists.
            OutputError: If it cannot be written.
            StoreError: If there is no such set.
        """
        from dialoom.runs.agreement import write_sample

        chosen: dict[str, Any] = {"seed": seed, "judging": judging, "metrics": metrics, "scales": scales}
        with self._opened() as file:
            return write_sample(file, Path(path), size, annotators, where=where, **chosen)

    def agreement(
        self,
        *,
        path: PathLike | None = None,
        annotators: Sequence[str] = (),
        judging: str | None = None,
        metrics: Collection[str] = (),
        scales: Iterable[str] = (),
        where: str | None = None,
    ) -> Agreement:
        """Return the agreement of people with a judge, from their labels; needs the extra `agree`.

        Args:
            path: The labels file; by default that of `label`.
            annotators: The columns of the file to read; by default all.
            judging: The set of judgements; by default the oldest.
            metrics: Only these; by default all that are in the file.
            scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not state.
            where: Only judgements of scenarios that match this expression; see `episodes`.

        Raises:
            RunError: If statsmodels is not installed, or a metric or scale is unknown.
            DataError: If the file cannot be read, or holds labels of another run.
            StoreError: If there is no such set.
        """
        from dialoom.runs.agreement import agreement, labels_beside, read_labels

        labels = read_labels(labels_beside(self.path) if path is None else Path(path), annotators)
        with self._opened() as file:
            return agreement(file, labels, judging=judging, metrics=metrics, scales=scales, where=where)

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

    def report(self, judging: str | None = None, tables: Sequence[str] = (), *, where: str | None = None) -> Report:
        """Return the recipe's tables and charts. Printed, the report is Markdown; a notebook renders it.

        Args:
            judging: One set of judgements; by default all, compared.
            tables: Only these, by name; by default all.
            where: Only scenarios that match this expression, such as `not changed`; see `episodes`.

        Raises:
            RunError: If a table is not there, or the expression is wrong.
            StoreError: If there is no such set.
        """
        with self._opened() as file:
            return Report.of([file], judging, tables, where)

    def describe(
        self,
        against: Sequence[PathLike] = (),
        *,
        where: str | None = None,
        embedder: str | None = None,
        alike: float | None = None,
    ) -> Report:
        """Return statistics of the dialogues: lengths, endings, variety, duplicates, languages, coverage, faults.

        Args:
            against: Runs or files of rows (JSON Lines, Parquet) in which copies are looked for, such as test data.
            where: Only scenarios that match this expression; see `episodes`.
            embedder: Also find texts of nearly the same meaning, by `lexical` or `st:MODEL`.
            alike: The least cosine similarity of such texts (0.9).

        Raises:
            RunError: If a file is missing or of another kind, a library is missing (extra `describe`), there is no such
                embedder, or nothing is finished.
            DataError: Naming the line that cannot be read.
        """
        from dialoom.runs.describe import SimilarTexts, describe_run

        told = SimilarTexts.wanted(embedder, alike)
        with self._opened() as file:
            others = [Path(each) for each in against]
            return describe_run(file, others, where=where, trust=self._trust, alike=told)

    def export(
        self,
        format: str = "dialogues",
        path: PathLike | TextIO | None = None,
        *,
        judging: str | None = None,
        encoding: Encoding = "jsonl",
        test_share: float | None = None,
        options: Mapping[str, Any] | None = None,
        where: str | None = None,
        include: Collection[str] = (),
        license: str | None = None,
        only: Soundness | None = None,
        without: Collection[str] = (),
        card: bool = False,
    ) -> dict[str, int]:
        """Write finished scenarios in plan order; no incomplete file is left.

        Args:
            format: `dialogues`, `sharegpt`, `sft` (of dialogues and studies), or one of the recipe's own.
            path: A file; a folder for formats of files, and for a split. It is replaced when the new one is whole. Or
                an open text file, such as `sys.stdout`, for JSON lines.
            judging: The set of judgements; by default the oldest.
            encoding: How rows are written.
            test_share: The share of people (or what the recipe splits by) whose rows become a test split.
            options: The format's own.
            where: Only scenarios that match this expression; see `episodes`.
            include: What each row has besides its format's columns and its scenario's `id`: `facets`, `scores`.
            only: `sound`: only dialogues in which the gate found no fault; `faulty`: only the others.
            without: Kinds of faults whose dialogues are left out.
            license: The license in the data's card, by the hub's identifier; by default `unknown`.
            card: Describe what was written, and put the figures into its card; see `describe`.

        Returns:
            How many rows (or files) were written, by part: `all`, or `train` and `test`.

        Raises:
            RunError: If there is no such format, or it does not support an option.
            OutputError: If the path is a run or another SQLite file, or cannot be written.
            StoreError: If there is no such set.
        """
        from dialoom.runs.describe import write_described
        from dialoom.runs.export import ExportRequest, write

        if path is None:
            raise RunError("path is missing: where the export is to be written, such as 'out.jsonl'", setting="path")
        request = ExportRequest(
            format, judging, encoding, test_share, options or {}, where, include, license, only, without
        )
        with self._opened() as file:
            if str(path).endswith(("/", os.sep)) and not request.makes_folder(file.recipe):
                example = f"{Path(str(path))}.{encoding}"
                raise RunError(
                    f"path {path} means a folder, and this export is one file, such as {example}", setting="path"
                )
            if isinstance(path, str | os.PathLike):
                return (write_described if card else write)(file, request, Path(path))
            if card:
                raise RunError("card: an open file has none; give a path", setting="card")
            return write(file, request, path)

    def frame(
        self, kind: Kind = "episodes", judging: str | None = None, *, where: str | None = None
    ) -> pandas.DataFrame:
        """Return the run as a pandas DataFrame; needs the extra `frames`.

        Args:
            kind: `episodes`: a row for each finished scenario, with its facets (one whose name is taken is called
                `facet.NAME`), counts and mean score by metric;
                `lines`: a row for each line that was said; `judgements`: a row for each judge's word; `faults`: a row
                for each fault that the gate found; `calls`: a row for each call of a model, with tokens, cost, latency
                and the kinds of faults in what it said, rejected lines of simulated users among them.
            judging: The set of judgements; by default the oldest. Ignored for `lines` and `calls`.
            where: Only what belongs to scenarios that match this expression; see `episodes`.

        Raises:
            RunError: If pandas is not installed, or there is no such kind.
            StoreError: If there is no such set.
        """
        from .frames import frame

        with self._opened() as file:
            return frame(file, kind, judging, where)

    def dataset(
        self,
        format: str = "dialogues",
        *,
        judging: str | None = None,
        test_share: float | None = None,
        options: Mapping[str, Any] | None = None,
        where: str | None = None,
        include: Collection[str] = (),
        only: Soundness | None = None,
        without: Collection[str] = (),
    ) -> datasets.Dataset | datasets.DatasetDict:
        """Return an export as a Hugging Face `Dataset`, or with `test_share` as a `DatasetDict` of train and test.

        Needs the extra `datasets`. The arguments are those of `export`.

        Raises:
            RunError: If datasets is not installed, or the format's rows are not of one shape.
        """
        from .frames import dataset

        with self._opened() as file:
            return dataset(file, format, judging, test_share, options or {}, where, include, only, without)

    @asynccontextmanager
    async def look(
        self, scenario: str | int, *, branch: str = "main", checkpoint: str | int | None = None
    ) -> AsyncIterator[ReadOnlyStepper]:
        """Open one conversation's steps for reading, also while another process plays it; nothing is written.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            branch: The branch to look at.
            checkpoint: A checkpoint's number or id; by default where the branch stands.

        Raises:
            StoreError: If there is no such scenario.
            SteppingError: If there is no such branch or checkpoint; as its `NotBegunError` if none of it was played.
        """
        from dialoom.runs.stepping import ReadOnlyStepper

        own: Exception | None = None
        with self._opened() as file:
            async with ReadOnlyStepper.open(file, scenario, branch=branch, checkpoint=checkpoint) as looking:
                try:
                    yield looking
                except Exception as error:
                    if _is_of_dialoom(error):
                        raise
                    own = error  # raised by the caller's code, not by reading the file
        if own is not None:
            raise own

    def _open(self) -> RunFile:
        return RunFile(self.path, recipe=self._given, trust=self._trust)

    @contextmanager
    def _opened(self) -> Iterator[RunFile]:
        """Open the file for one read, unless it is open already."""
        if self._file is not None:
            yield self._file
            return
        with self._open() as file:
            yield file


def _is_of_dialoom(error: Exception) -> bool:
    """Return whether an exception raised in a caller's block passed through a function of dialoom's."""
    within = list(traceback.walk_tb(error.__traceback__))[1:]  # the first frame is the one that had the block
    return any(str(frame.f_globals.get("__name__")).startswith("dialoom.") for frame, _ in within)


def describe(
    path: PathLike,
    against: Sequence[PathLike] = (),
    *,
    where: str | None = None,
    embedder: str | None = None,
    alike: float | None = None,
    trust: bool = False,
) -> Report:
    """Return statistics of a dataset; of a run as `Run.describe`, of a release tables 1 and 6 to 10 of PersonaLens.

    Args:
        path: A run, a file of rows (JSON Lines, JSON, Parquet), a folder of such files, or one in the PersonaLens
            release's layout.
        against: As for `Run.describe`.
        where: Only scenarios of a run that match this expression.
        embedder: Also find texts of nearly the same meaning, by `lexical` or `st:MODEL`.
        alike: The least cosine similarity of such texts (0.9).
        trust: As of `RunReader`.

    Raises:
        RunError: If it is none of these, a library is missing (extra `describe`), or there is nothing in it.
        DataError: Naming the file and line that cannot be read.
    """
    from dialoom.runs.describe import SimilarTexts, describe_path

    others = [Path(each) for each in against]
    return describe_path(
        Path(path), others, where=where, trust=Trust(trust), alike=SimilarTexts.wanted(embedder, alike)
    )


def report(
    *runs: RunReader | PathLike | Sequence[RunReader | PathLike],
    judging: str | None = None,
    tables: Sequence[str] = (),
    where: str | None = None,
    trust: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Report:
    """Return the report of one run, or of several side by side.

    Args:
        *runs: Runs of one recipe, one by one or as a list.
        judging: The set of judgements, in each of them.
        tables: Only these, by name.
        where: Only scenarios that match this expression; see `Run.episodes`.
        trust: As of `RunReader`, for those that are given as paths.
        on_progress: Called with the number of scenarios read so far, each time one is read (every one is read several
            times); an exception that it raises ends the work.

    Raises:
        RunError: If they are not of one recipe, one is named twice, a table is not there, or the expression is wrong.
        StoreError: If a run has no such set.
    """
    named = [
        each for given in runs for each in ([given] if isinstance(given, RunReader | str | os.PathLike) else given)
    ]
    if not named:
        raise RunError("runs: give at least one", setting="runs")
    with ExitStack() as opened:
        handles = [run if isinstance(run, RunReader) else RunReader(run, trust=trust) for run in named]
        files = [opened.enter_context(handle._opened()) for handle in handles]
        if on_progress is not None:
            counter = itertools.count(1)
            for file in files:
                file.on_read = lambda: on_progress(next(counter))
        return Report.of(files, judging, tables, where)
