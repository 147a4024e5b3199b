"""The handle that reads a run: its plan, conversations, judgements, labels, usage, reports and exports."""

from __future__ import annotations

import itertools
import os
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO, TypeVar

from dialoom.graphs import DialogueFault, Recipe, Scenario, Table, WithPrompts
from dialoom.runs.configuration.config import RunConfig, config_diff
from dialoom.runs.configuration.recipes import find_recipe
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.control import RunProgress
from dialoom.runs.errors import RunError, TrustError
from dialoom.runs.reading.conversations import (
    Conversation,
    RequestDiff,
    diff_requests,
    find_faulty_calls,
    load_conversation,
)
from dialoom.runs.reading.scenarios import (
    check_selection,
    find_neighbours,
    iter_scenarios,
    load_page,
    search_messages,
    select_episodes,
)
from dialoom.runs.reading.search_index import ignore_progress
from dialoom.runs.report import Report
from dialoom.runs.report.health import Health, assess_health
from dialoom.runs.report.labelled_runs import label_runs
from dialoom.runs.report.requirements import Requirement, RequirementResult, check_requirements
from dialoom.runs.store import (
    CheckErrors,
    Choices,
    CommonCall,
    JudgementSet,
    Neighbours,
    PromotedBranch,
    RecordedEpisode,
    RunFile,
    ScenarioPage,
    ScenarioQuery,
    Status,
)
from dialoom.settings import PathLike, PlayerObject, check_lists

from .operation_settings import RecipeLike

if TYPE_CHECKING:  # heavy, or an extra
    import datasets
    import pandas

    from dialoom.runs.agreement import Agreement, LabelProgress, Sample, StoredLabel
    from dialoom.runs.export import Encoding, ExportResult, Soundness
    from dialoom.runs.stepping import ReadOnlyStepper

    from .frames import FrameKind


Result = TypeVar("Result")
_DEFAULT_QUERY = ScenarioQuery()


class RunReader:
    """A handle that reads a run's file at any time, also while another process plays it.

    The file is opened for each read. In a `with` block it stays open, so that all reads of this thread share the
    connection, the recipe and the trust. Several threads may use one handle.

    Args:
        path: The file.
        recipe: The recipe, if the run was made with a recipe object.
        trust: Whether to use the code and the addresses that the file refers to, whoever made it; a `Trust` also
            reports what it allows. By default, only code and addresses are used that this user specified on this
            machine when the run was made; they are recorded in a private list.

    Attributes:
        path: The file.

    Raises:
        StoreError: If there is no such file, or it is not a run.
        RunError: If the run was made by another recipe; or, once the recipe is needed, if it cannot be loaded.
        TrustError: Once the recipe is needed, if it is in a file that was not specified on this machine.
    """

    def __init__(self, path: PathLike, recipe: RecipeLike | None = None, *, trust: bool | Trust = False) -> None:
        self._trust = trust if isinstance(trust, Trust) else Trust(trust)
        self.path = Path(path)
        self._given_recipe = None if recipe is None else find_recipe(recipe)[1]
        self._files: dict[int, RunFile] = {}  # by thread, because a connection has only one transaction at a time
        self._players: dict[str, PlayerObject] = {}
        with self._open_file():
            pass

    def __enter__(self) -> Self:
        self._files[get_ident()] = self._new_file()
        return self

    def __exit__(self, _type: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if (file := self._files.pop(get_ident(), None)) is not None:
            file.__exit__(_type, error, trace)

    def __len__(self) -> int:
        """Return the number of planned scenarios."""
        return self._read(lambda file: file.planned)

    @property
    def config(self) -> RunConfig:
        """The run's configuration: recipe, options, models, seed."""
        return self._read(lambda file: file.config)

    def config_diff(self, config: RunConfig, recipe: Recipe) -> list[str]:
        """Return the differences from another configuration, as `key: OLD then, NEW now`.

        Prompts are compared only if the configuration has sets of prompts.

        Args:
            config: The requested configuration.
            recipe: The recipe.
        """
        with self._open_file() as file:
            differences = config_diff(file.config, config)
            if config.prompts:
                stored, requested = file.prompts, WithPrompts.of(recipe).library(config.prompts)
                differences += [
                    f"prompt {id_}: the text differs" for id_ in requested if stored[id_].hash != requested[id_].hash
                ]
            return differences

    @property
    def recipe(self) -> Recipe:
        """The run's recipe."""
        return self._read(lambda file: file.recipe)

    @property
    def judgement_sets(self) -> list[JudgementSet]:
        """The sets of judgements, oldest first."""
        return self._read(RunFile.judgement_sets)

    def metrics(self, judging: str | None = None) -> dict[str, list[str]]:
        """Return the targets of each metric of a set of judgements (by default the oldest).

        The metrics are in the recipe's order if the recipe is trusted.
        """
        with self._open_file() as file:
            chosen, recipe = file.judgement_set(judging), None
            with suppress(TrustError):
                recipe = file.recipe
            return {} if chosen is None else file.metrics_of(chosen.name, recipe)

    def models(self, judging: str | None = None) -> dict[str, str]:
        """Return the models by role; for judging roles, those of a set of judgements (by default the oldest)."""
        with self._open_file() as file:
            chosen = file.judgement_set(judging)
            return {**file.config.model_names, **({} if chosen is None else chosen.model_names)}

    @property
    def is_gated(self) -> bool:
        """Return whether any conversation was checked for faults."""
        return self._read(lambda file: file.is_gated)

    @property
    def promoted_branches(self) -> list[tuple[str, PromotedBranch]]:
        """The ids of scenarios whose outcome comes from a branch of the step debugger, each with that branch."""
        return self._read(RunFile.promoted_branches)

    def unparsed(self, judging: str | None = None) -> int:
        """Return the number of unparsed judgements of a set (by default the oldest); of a panel, of all its judges."""
        with self._open_file() as file:
            chosen = file.judgement_set(judging)
            return 0 if chosen is None else file.unparsed(chosen.name)

    def unjudged(self, judging: str | None = None) -> int:
        """Return the number of finished scenarios that a set (by default the oldest) lacks; a panel, of any judge."""
        with self._open_file() as file:
            chosen = file.judgement_set(judging)
            return 0 if chosen is None else len(file.unjudged(chosen))

    def check_errors(self) -> list[CheckErrors]:
        """Return the errors of checks that raised an exception or returned no score, by metric."""
        return self._read(RunFile.check_errors)

    def status(self) -> Status:
        """Return the number of scenarios by state, and the usage of the calls."""
        return self._read(RunFile.status)

    def changes(self) -> dict[str, dict[str, int]]:
        """Return the number of calls that were not sent as configured, by role and by what was changed and why."""
        return self._read(RunFile.changes)

    def scenarios(
        self,
        query: ScenarioQuery = _DEFAULT_QUERY,
        *,
        where: str | None = None,
        search: str | None = None,
        offset: int = 0,
        limit: int = 50,
        on_progress: Callable[[str, int, int], None] | None = None,
    ) -> ScenarioPage:
        """Return a page of scenarios, finished or not, with their figures.

        Without `where`, this is fast for any number of scenarios.

        Args:
            query: Which scenarios, and in which order; by default all, in plan order.
            where: Of these, only scenarios that match an expression; see `episodes`.
            search: Of these, only scenarios with a message that contains all of these words, in any order; `"in
                quotes"` is a phrase, `begin*` a prefix. The search uses an index in the user's cache folder, which is
                built when it is first needed; see `dialoom.runs.reading.search_index`.
            offset: Number of scenarios to skip.
            limit: Number of scenarios on a page.
            on_progress: Called with the task, the count done and the total while an expression is evaluated for every
                scenario or the index is built. An exception that it raises ends the work.

        Raises:
            RunError: If the expression cannot be evaluated, or `search` contains no word.
            StoreError: If the query is invalid, or there is no such set of judgements.
            OutputError: If the index cannot be written.
        """
        return self._read(
            lambda file: load_page(file, query, where, search, offset, limit, on_progress or ignore_progress)
        )

    def figures(
        self,
        judging: str | None = None,
        *,
        where: str | None = None,
        sort: str | None = None,
        is_descending: bool = False,
    ) -> Iterator[tuple[int, RecordedEpisode]]:
        """Yield the position and the figures of every scenario, finished or not.

        The memory use is constant unless `sort` is given.

        Args:
            judging: The set of judgements; by default the oldest.
            where: Only scenarios that match this expression; see `episodes`.
            sort: An expression to sort by; scenarios without a value come last. By default in plan order.
            is_descending: Whether the highest values come first.

        Raises:
            RunError: If an expression is wrong.
            StoreError: If there is no such set.
        """
        with self._open_file() as file:
            yield from iter_scenarios(file, judging, where, sort, is_descending)

    def search(self, words: str, on_progress: Callable[[str, int, int], None] | None = None) -> dict[int, str]:
        """Return each scenario's first message that contains the words, by position; see `search` of `scenarios`.

        Raises:
            RunError: If `words` contains no word.
            OutputError: If the index cannot be written.
        """
        return self._read(lambda file: search_messages(file, words, on_progress or ignore_progress))

    def neighbours(
        self,
        scenario: str | int,
        query: ScenarioQuery = _DEFAULT_QUERY,
        *,
        where: str | None = None,
        search: str | None = None,
    ) -> Neighbours | None:
        """Return a scenario's neighbours in the list that `scenarios` returns; `None` if the list does not contain it.

        Args:
            scenario: Its id, the beginning of its id, or its number in the plan (from 1).
            query: Which scenarios, and in which order; by default all, in plan order.
            where: As for `scenarios`.
            search: As for `scenarios`.

        Raises:
            RunError, StoreError, OutputError: In the same cases as `scenarios`, or if there is no such scenario.
        """
        return self._read(lambda file: find_neighbours(file, scenario, query, where, search))

    def choices(self) -> Choices:
        """Return the values by which a `ScenarioQuery` can filter, with the number of scenarios that have each."""
        return self._read(RunFile.choices)

    def progress(self) -> RunProgress:
        """Return the run's progress, also while another process plays it: status, budget, usage by model, failures."""
        return self._read(RunProgress.of)

    def episodes(self, judging: str | None = None, *, where: str | None = None) -> Iterator[RecordedEpisode]:
        """Yield the result of each finished scenario (done or failed), in plan order, read a page at a time.

        Args:
            judging: The set of judgements to return with them; by default the oldest.
            where: Only scenarios that match this expression. It may use the names of the recipe's facets, counts and
                metrics, and `state`, `ended_by`, `changed`, `unparsed` and others, as in `personalization >= 3 and
                ended_by == 'user_terminated'`. Comparisons with a missing score are false.

        Raises:
            StoreError: If there is no such set.
            RunError: If the expression is wrong.
        """
        with self._open_file() as file:
            yield from select_episodes(file, judging, where)

    def episode(self, scenario: str | int, judging: str | None = None) -> RecordedEpisode | None:
        """Return the result of one scenario; `None` while it is pending.

        Args:
            scenario: Its id, the beginning of its id, or its number in the plan (from 1).
            judging: The set of judgements; by default the oldest.

        Raises:
            StoreError: If there is no such scenario or set.
        """
        return self._read(lambda file: file.episode(file.resolve(str(scenario)), judging))

    def so_far(self, scenario: str | int, judging: str | None = None) -> RecordedEpisode:
        """Return a result as `episode` does or, for a pending scenario, its state so far (with an empty `ended_by`)."""
        with self._open_file() as file:
            position = file.resolve(str(scenario))
            return file.episode(position, judging) or file.so_far(position)

    def conversation(self, scenario: str | int, judging: str | None = None) -> Conversation:
        """Return a scenario's conversation, finished or not: each message with its faults, judgements and call.

        Args:
            scenario: Its id, the beginning of its id, or its number in the plan (from 1).
            judging: The set of judgements; by default the oldest.

        Raises:
            StoreError: If there is no such scenario or set.
        """
        return self._read(lambda file: load_conversation(file, scenario, judging))

    def dialogue(self, scenario: str | int, judging: str | None = None) -> dict[str, Any]:
        """Return a scenario's row of the `dialogues` export with its `state`, finished or not; see `episode`."""
        from dialoom.runs.export import dialogue_row, prompt_hashes, resolve_models

        with self._open_file() as file:
            position = file.resolve(str(scenario))
            episode = file.episode(position, judging) or file.so_far(position)
            chosen = file.judgement_set(judging)
            models, prompts = resolve_models(file, chosen, episode), prompt_hashes(file, chosen)
            row = dialogue_row(episode, file.scenario(file.recipe, position), file.recipe, models, prompts)
        return {**row, "state": episode.state}

    def calls(self, scenario: str | int) -> list[dict[str, Any]]:
        """Return the calls of a scenario in the order in which they began; `scenario` is as for `episode`.

        Each call has the columns of the ledger, `faults` (found by the gate in its reply) and `rejected` (whether the
        reply was requested again because of a fault).
        """
        with self._open_file() as file:
            position = file.resolve(str(scenario))
            calls, episode = file.calls_of(position), file.episode(position) or file.so_far(position)
            faulty = find_faulty_calls(file, position, calls, episode.outcome)
        return [
            {**call, "rejected": call["call"] in faulty.rejected, "faults": faulty.faults.get(call["call"], [])}
            for call in calls
        ]

    def common_calls(self, scenario: str | int) -> list[CommonCall]:
        """Return the calls that a scenario shares with other scenarios; `scenario` is as for `episode`."""
        return self._read(lambda file: file.common_calls(file.resolve(str(scenario))))

    def request(self, call: int, before: int | None = None) -> RequestDiff:
        """Return the messages of a call's request, and which of them are new.

        Args:
            call: The call's row in the ledger.
            before: The row of an earlier call; messages that its request does not contain are new. By default, none are
                marked.

        Raises:
            RunError: If there is no such call.
        """
        return self._read(lambda file: diff_requests(file, call, before))

    def label(
        self, scenario: str | int, item: str, annotator: str, label: str | float, *, path: PathLike | None = None
    ) -> None:
        """Write a person's label of a judgement to the labels file, from which kappas are computed.

        Args:
            scenario: Its id, the beginning of its id, or its number in the plan (from 1).
            item: The judgement's id, as in the result of `conversation`.
            annotator: The person's name.
            label: A value of the metric's scale (`yes`, `4`), as a text or not; an empty text removes the label.
            path: The labels file, which is created if it does not exist; by default `NAME.labels.csv` beside the run.

        Raises:
            RunError: If there is no such judgement, or the label is not on its scale.
            DataError: If the file cannot be read.
            OutputError: If it cannot be written.
        """
        from dialoom.runs.agreement import LabelFile, default_labels_path

        labels = LabelFile(default_labels_path(self.path) if path is None else Path(path))
        with self._open_file() as file:
            labels.put(file, file.resolve(str(scenario)), item, annotator, str(label))

    def labels(self, annotator: str, *, path: PathLike | None = None) -> dict[str, str]:
        """Return a person's labels of judgements of the current conversations, by the judgements' ids; see `label`."""
        return {each.item: each.label for each in self.given_labels(annotator, path=path) if not each.is_earlier}

    def given_labels(
        self, annotator: str, scenario: str | int | None = None, *, path: PathLike | None = None
    ) -> list[StoredLabel]:
        """Return all labels of a person, and for each whether it was given to an earlier conversation of the scenario.

        A label belongs to the conversation that the person read. When another branch becomes the scenario's outcome, or
        the scenario is played again, the label does not count until that conversation is the outcome again.

        Args:
            annotator: The person's name.
            scenario: Only labels of this scenario; by default of all.
            path: The labels file; by default that of `label`.

        Raises:
            DataError: If the file cannot be read.
        """
        from dialoom.runs.agreement import LabelFile, default_labels_path

        labels = LabelFile(default_labels_path(self.path) if path is None else Path(path))
        return self._read(
            lambda file: list(
                labels.iter_labels(file, annotator, None if scenario is None else file.resolve(str(scenario)))
            )
        )

    def labelled(
        self,
        annotator: str,
        *,
        metrics: Sequence[str] = (),
        judging: str | None = None,
        path: PathLike | None = None,
    ) -> dict[int, LabelProgress]:
        """Return how many judgements of each scenario's conversation a person has labelled, by the scenario's position.

        Args:
            annotator: The person's name.
            metrics: The metrics that are to be labelled; by default all of the set.
            judging: The set of judgements; by default the oldest.
            path: The labels file; by default that of `label`.

        Returns:
            The number of labels and the number of judgements to label, for scenarios with at least one label.
        """
        from dialoom.runs.agreement import count_labels, default_labels_path

        with self._open_file() as file:
            labels = default_labels_path(self.path) if path is None else Path(path)
            return count_labels(file, labels, annotator, metrics, judging)

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
            metrics: Only these metrics; by default all that judges score, and none that checks compute.
            scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not state.
            where: Only scenarios that match this expression; see `episodes`.

        Raises:
            RunError: If there is nothing to draw from, a scale is unknown, or the file exists.
            OutputError: If it cannot be written.
            StoreError: If there is no such set.
        """
        from dialoom.runs.agreement import write_sample

        chosen: dict[str, Any] = {"seed": seed, "judging": judging, "metrics": metrics, "scales": scales}
        return self._read(lambda file: write_sample(file, Path(path), size, annotators, where=where, **chosen))

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
            metrics: Only these metrics; by default all in the file.
            scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not state.
            where: Only judgements of scenarios that match this expression; see `episodes`.

        Raises:
            RunError: If statsmodels is not installed, or a metric or scale is unknown.
            DataError: If the file cannot be read, or holds labels of another run.
            StoreError: If there is no such set.
        """
        from dialoom.runs.agreement import compute_agreement, default_labels_path, read_labels

        labels = read_labels(default_labels_path(self.path) if path is None else Path(path), annotators)
        return self._read(
            lambda file: compute_agreement(file, labels, judging=judging, metrics=metrics, scales=scales, where=where)
        )

    def judge_health(self, judging: str | None = None, *, limit: int | None = None) -> list[Health]:
        """Return the health of a judge in each of its metrics; reports contain it as the table `judge-health`.

        Args:
            judging: The set of judgements; by default the oldest.
            limit: The maximum number of scenarios to read, in plan order; by default all.

        Raises:
            StoreError: If there is no such set.
        """
        return self._read(lambda file: assess_health(label_runs([file], file.recipe, judging)[0], None, limit))

    def position(self, scenario: str | int) -> int:
        """Return the position of a scenario in the plan, from 0; `scenario` is as for `episode`.

        Raises:
            StoreError: If there is no such scenario.
        """
        return self._read(lambda file: file.resolve(str(scenario)))

    def scenario(self, scenario: str | int) -> Scenario:
        """Return a planned scenario, finished or not; `scenario` is as for `episode`."""
        return self._read(lambda file: file.scenario(file.recipe, file.resolve(str(scenario))))

    def faults(
        self, judging: str | None = None, *, where: str | None = None
    ) -> Iterator[tuple[RecordedEpisode, DialogueFault]]:
        """Yield each fault of a conversation with its scenario, in plan order.

        Args:
            judging: The set of judgements; the faults that its judges found are included. By default the oldest.
            where: Only faults of scenarios that match this expression, such as `faults.user > 0`; see `episodes`.

        Raises:
            StoreError: If there is no such set.
            RunError: If the expression is wrong.
        """
        for episode in self.episodes(judging, where=where):
            for fault in episode.outcome.faults or ():
                yield episode, fault

    def report(
        self,
        judging: str | None = None,
        tables: Sequence[str] = (),
        *,
        where: str | None = None,
        labels: PathLike | Literal[True] | None = None,
    ) -> Report:
        """Return a report with the recipe's tables and charts. It prints as Markdown, and notebooks render it.

        Args:
            judging: One set of judgements; by default all sets are compared.
            tables: Only these tables, by name; by default all.
            where: Only scenarios that match this expression, such as `not changed`; see `episodes`.
            labels: A labels file; scores calibrated with it are shown in an additional table. `True` for the file of
                `label`.

        Raises:
            RunError: If there is no such table, or the expression is wrong.
            DataError: If the labels file cannot be read, or holds labels of another run.
            StoreError: If there is no such set.
        """
        return report(self, judging=judging, tables=tables, where=where, labels=labels)

    def require(
        self,
        *requirements: str | Requirement,
        is_confident: bool = False,
        not_worse_than: RunReader | PathLike | None = None,
        metrics: Sequence[str] = (),
        allow: Sequence[str] = (),
        allow_different_users: bool = False,
        judging: str | None = None,
        where: str | None = None,
    ) -> list[RequirementResult]:
        """Check requirements on the scores, and return for each whether it is met, with value, interval and reasons.

        Args:
            *requirements: Texts such as `resolved >= 80%`, `tone >= 3.5` or `pass^3(resolved) >= 60%`.
            is_confident: Whether the whole 95 % interval must meet a requirement, not only the mean.
            not_worse_than: Another run to compare with, by the paired test of reports: no required metric (without
                requirements, no metric at all) may be significantly worse than in that run. The runs may differ only in
                the role under evaluation.
            metrics: Metrics to compare with the other run besides those of the requirements.
            allow: Conditions to accept, which otherwise fail a requirement: `offline` (an offline model affects the
                scores), `missing` (scores are missing), `constant` (a judge's scores are all equal), `unfinished`
                (scenarios failed or were not played), `unhealthy` (the judge fails another check of its health).
            allow_different_users: Whether the user's model and prompt may also differ between the runs.
            judging: The set of judgements; by default the oldest.
            where: Only scenarios that match this expression.

        Raises:
            RunError: If nothing is required, a requirement is malformed or its metric is unknown, or the runs cannot be
                compared.
            StoreError: If there is no such set.
        """
        check_lists(metrics=metrics)
        with ExitStack() as stack:
            file, other = stack.enter_context(self._open_file()), None
            if isinstance(not_worse_than, RunReader):
                other = stack.enter_context(not_worse_than._open_file())
            elif not_worse_than is not None:
                other = stack.enter_context(RunReader(not_worse_than, trust=self._trust)._open_file())
            for each in filter(None, (file, other)):
                stack.enter_context(each.snapshot())
            arguments = metrics, judging, where, is_confident, allow, allow_different_users
            return check_requirements(file, requirements, other, *arguments)

    def describe(
        self,
        against: Sequence[PathLike] = (),
        *,
        where: str | None = None,
        embedder: str | None = None,
        alike: float | None = None,
        like: PathLike | None = None,
    ) -> Report:
        """Return statistics of the dialogues: lengths, endings, variety, duplicates, languages, coverage and faults.

        Args:
            against: Runs or files of rows (JSON Lines, Parquet), such as test data, that are searched for copies of the
                dialogues.
            where: Only scenarios that match this expression; see `episodes`.
            embedder: Also find texts with nearly the same meaning, with the embedder `lexical` or `st:MODEL`.
            alike: The minimum cosine similarity of the texts that `embedder` finds; by default 0.9.
            like: A run or a file of real conversations; the statistics then include distances from their users.

        Raises:
            RunError: If a file is missing or of another kind, a library is missing (extra `describe`), there is no such
                embedder, or no scenario is finished.
            DataError: If a line cannot be read; the message names it.
        """
        from dialoom.runs.describe import describe_run

        with self._open_file() as file:
            return describe_run(
                file, against, where=where, trust=self._trust, embedder=embedder, alike=alike, like=like
            )

    def export(
        self,
        format: str = "dialogues",
        path: PathLike | TextIO | None = None,
        *,
        judging: str | None = None,
        encoding: Encoding | None = None,
        test_share: float | None = None,
        options: Mapping[str, Any] | None = None,
        where: str | None = None,
        include: Collection[str] = (),
        license: str | None = None,
        only: Soundness | None = None,
        without: Collection[str] = (),
        card: bool = False,
    ) -> ExportResult:
        """Write the finished scenarios in plan order; an interrupted export leaves no incomplete file.

        Args:
            format: `dialogues`, `sharegpt`, `sft` (of dialogues and studies), or one of the recipe's own.
            path: A file; or a folder, for a split and for formats that write several files; or an open text file, such
                as `sys.stdout`, for JSON lines. An existing path is replaced when the new one is complete.
            judging: The set of judgements; by default the oldest.
            encoding: How rows are written; by default Parquet if the path ends in `.parquet`, otherwise JSON lines.
            test_share: The share of people (or of the other units by which the recipe splits) whose rows become a test
                split.
            options: The options of the format.
            where: Only scenarios that match this expression; see `episodes`.
            include: Additional columns of each row, besides those of its format and the scenario's `id`: `facets`,
                `scores`.
            only: `sound`: only dialogues in which the gate found no fault; `faulty`: only dialogues with faults.
            without: Kinds of faults; dialogues with such a fault are left out.
            license: The license that the dataset card states, as an identifier of the Hugging Face hub; by default
                `unknown`.
            card: Whether the dataset card contains statistics of the written rows; see `describe`.

        Returns:
            The number of rows (or files) written, by part: `all`, or `train` and `test`. The attribute `notices` states
            how many scenarios have no row, and why.

        Raises:
            RunError: If there is no such format, or it does not support an option.
            OutputError: If the path is a run or another SQLite file, or cannot be written.
            StoreError: If there is no such set.
        """
        from dialoom.runs.describe import write_described_export
        from dialoom.runs.export import ExportRequest, write_export

        if path is None:
            raise RunError("path is missing: where the export is to be written, such as 'out.jsonl'", setting="path")
        if encoding is None:
            encoding = "parquet" if str(path).endswith(".parquet") else "jsonl"
        request = ExportRequest(
            format, judging, encoding, test_share, options or {}, where, include, license, only, without
        )
        with self._open_file() as file, file.snapshot():
            if str(path).endswith(("/", os.sep)) and not request.makes_folder(file.recipe):
                example = f"{Path(str(path))}.{encoding}"
                raise RunError(
                    f"path {path} is a folder, but this export is a single file, such as {example}", setting="path"
                )
            if isinstance(path, str | os.PathLike):
                return (write_described_export if card else write_export)(file, request, Path(path))
            if card:
                raise RunError("card: an open file cannot have a card; give a path", setting="card")
            return write_export(file, request, path)

    def frame(
        self,
        kind: FrameKind = "episodes",
        judging: str | None = None,
        *,
        where: str | None = None,
        labels: PathLike | None = None,
    ) -> pandas.DataFrame:
        """Return the run as a pandas DataFrame; needs the extra `frames`.

        Args:
            kind: `episodes`: a row for each finished scenario, with its facets (`facet.NAME` if another column has the
                name), counts and mean score by metric; `lines`: a row for each message; `judgements`: a row for each
                judgement; `faults`: a row for each fault that the gate found; `calls`: a row for each call of a model,
                with tokens, cost, latency and the kinds of faults in its reply (rejected replies of simulated users
                included); `calibrated`: a row for each mean score calibrated with people's labels.
            judging: The set of judgements; by default the oldest. Ignored for `lines` and `calls`.
            where: Only rows of scenarios that match this expression; see `episodes`.
            labels: The labels file for `calibrated`; by default that of `label`.

        Raises:
            RunError: If pandas is not installed, or there is no such kind.
            StoreError: If there is no such set.
        """
        from .frames import build_frame

        return self._read(
            lambda file: build_frame(file, kind, judging, where, None if labels is None else Path(labels))
        )

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
        """Return an export as a Hugging Face `Dataset` or, with `test_share`, as a `DatasetDict` of train and test.

        Needs the extra `datasets`. The arguments are those of `export`.

        Raises:
            RunError: If datasets is not installed, or the format's rows have different columns.
        """
        from .frames import build_dataset

        return self._read(
            lambda file: build_dataset(file, format, judging, test_share, options or {}, where, include, only, without)
        )

    @asynccontextmanager
    async def look(
        self, scenario: str | int, *, branch: str = "main", checkpoint: str | int | None = None
    ) -> AsyncIterator[ReadOnlyStepper]:
        """Open one conversation's steps for reading, also while another process plays it; nothing is written.

        Args:
            scenario: Its id, the beginning of its id, or its number in the plan (from 1).
            branch: The branch to look at.
            checkpoint: A checkpoint's number or id; by default the branch's current one.

        Raises:
            StoreError: If there is no such scenario.
            SteppingError: If there is no such branch or checkpoint; `NotBegunError`, a subclass, if the scenario has
                not begun.
        """
        from dialoom.runs.stepping import ReadOnlyStepper

        caller_error: Exception | None = None
        with self._open_file() as file:
            async with ReadOnlyStepper.open(
                file, scenario, branch=branch, checkpoint=checkpoint, players=self._get_stateful_players(file)
            ) as stepper:
                try:
                    yield stepper
                except Exception as error:
                    if _is_raised_by_dialoom(error):
                        raise
                    caller_error = error  # raised by the caller's code, not by reading the file
        if caller_error is not None:
            raise caller_error

    def _get_stateful_players(self, file: RunFile) -> dict[str, PlayerObject]:  # noqa: ARG002
        """Return the stateful players that this handle has loaded, by model."""
        return self._players

    def _new_file(self) -> RunFile:
        return RunFile(self.path, recipe=self._given_recipe, trust=self._trust)

    def _read(self, read: Callable[[RunFile], Result]) -> Result:
        with self._open_file() as file, file.snapshot():
            return read(file)

    @contextmanager
    def _open_file(self) -> Iterator[RunFile]:
        """Open the file for one read, unless it is open already in this thread."""
        if (file := self._files.get(get_ident())) is not None:
            yield file
            return
        with self._new_file() as file:
            yield file


def _is_raised_by_dialoom(error: Exception) -> bool:
    """Return whether an exception raised in a caller's block passed through a function of dialoom."""
    within = list(traceback.walk_tb(error.__traceback__))[1:]  # the first frame is the one with the caller's block
    return any(str(frame.f_globals.get("__name__")).startswith("dialoom.") for frame, _ in within)


def describe(
    path: PathLike,
    against: Sequence[PathLike] = (),
    *,
    where: str | None = None,
    embedder: str | None = None,
    alike: float | None = None,
    like: PathLike | None = None,
    trust: bool = False,
) -> Report:
    """Return statistics of a dataset: those of `Run.describe` or, for a PersonaLens release, its tables 1 and 6 to 10.

    Example:
        >>> dialoom.describe("run.db")["sizes"].columns[:3]
        ['of each dialogue', 'n', 'mean']

    Args:
        path: A run, a file of rows (JSON Lines, JSON, Parquet), a folder of such files, or a folder in the layout of
            the PersonaLens release.
        against: As for `Run.describe`.
        where: For a run, only scenarios that match this expression.
        embedder: Also find texts with nearly the same meaning, with the embedder `lexical` or `st:MODEL`.
        alike: The minimum cosine similarity of the texts that `embedder` finds; by default 0.9.
        like: As for `Run.describe`.
        trust: As for `RunReader`.

    Raises:
        RunError: If `path` is none of these or is empty, or a library is missing (extra `describe`).
        DataError: If a line cannot be read; the message names the file and the line.
    """
    from dialoom.runs.describe import describe_path

    return describe_path(
        Path(path), against, where=where, trust=Trust(trust), embedder=embedder, alike=alike, like=like
    )


def report(
    *runs: RunReader | PathLike | Sequence[RunReader | PathLike],
    judging: str | None = None,
    tables: Sequence[str] = (),
    where: str | None = None,
    labels: PathLike | Sequence[PathLike] | Literal[True] | None = None,
    allow_different_users: bool = False,
    trust: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Report:
    """Return the report of one run, or of several side by side.

    Example:
        >>> report = dialoom.report("run.db")
        >>> report["scores"].columns[:2]
        ['setting', 'tasks']

    Args:
        *runs: Runs of one recipe, one by one or as a list.
        judging: The name of the set of judgements in each run; by default all sets of a single run, or the oldest of
            each run.
        tables: Only these tables, by name; by default all.
        where: Only scenarios that match this expression; see `Run.episodes`.
        labels: A labels file for each run; scores calibrated with it are shown in additional tables. `True` for the
            files of `Run.label`.
        allow_different_users: Whether differences are also computed between runs whose user model, user prompt or
            source of personas differs; the table's title then states it.
        trust: As for `RunReader`, for runs that are given as paths.
        on_progress: Called with the number of scenarios read so far, each time one is read (each is read several
            times). An exception that it raises ends the work.

    Raises:
        RunError: If the runs are of different recipes, one is given twice, there is no such table, or the expression is
            wrong or matches no finished scenario.
        StoreError: If a run has no such set.
    """
    check_lists(tables=tables)
    given_runs = [
        each for value in runs for each in ([value] if isinstance(value, RunReader | str | os.PathLike) else value)
    ]
    if not given_runs:
        raise RunError("runs: give at least one run", setting="runs")
    with ExitStack() as stack:
        handles = [run if isinstance(run, RunReader) else RunReader(run, trust=trust) for run in given_runs]
        files = [stack.enter_context(handle._open_file()) for handle in handles]
        for file in files:
            stack.enter_context(file.snapshot())
        if on_progress is not None:
            counter = itertools.count(1)
            for file in files:
                file.on_read = lambda: on_progress(next(counter))
        check_selection(files, judging, where)
        calibrated: Sequence[Table] = ()
        if labels is not None:
            from dialoom.runs.agreement import calibration_tables

            label_files = [] if labels is True else [labels] if isinstance(labels, str | os.PathLike) else labels
            label_paths = [Path(each) for each in label_files]
            calibrated = calibration_tables(files, label_paths, judging, where, (), allow_different_users)
        return Report.of(files, judging, tables, where, calibrated, allow_different_users)
