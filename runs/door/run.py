"""A run as a library user holds it: a light handle on a file, open only while something is read."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, Unpack

from dialoom.graphs import DialogueFault, Recipe, Scenario
from dialoom.roles.binding import ModelLike, Players
from dialoom.runs.branch_taken import RecordedEpisode
from dialoom.runs.config import RunConfig
from dialoom.runs.errors import RunError
from dialoom.runs.events import Ended, Event
from dialoom.runs.recipes import find_recipe
from dialoom.runs.report import Report
from dialoom.runs.selection import selected
from dialoom.runs.store import Choices, JudgementSet, Neighbours, RunFile, ScenarioPage, ScenarioQuery, Status
from dialoom.runs.trust import Trust

from .settings import CallSettings, PathLike, RecipeLike

if TYPE_CHECKING:  # heavy, or an extra
    import datasets
    import pandas

    from dialoom.runs.agreement import Agreement
    from dialoom.runs.export import Encoding, Soundness
    from dialoom.runs.progress import RunProgress
    from dialoom.runs.stepping import Looking, Session
    from dialoom.runs.viewing import Conversation, RequestShown

    from .frames import Kind


_ALL = ScenarioQuery()


class Run:
    """A run's file. Reading it is possible at any time, also while another process plays it.

    Args:
        path: The file.
        recipe: The recipe, if it was given as an object when the run was made.
        models: Functions and graphs that were given as objects, by role: going on needs not be told of them again.
        ended: How the work ended that this handle comes from.
        trust: Use the code and the addresses that the file names, whoever made it. Without it, only what this user has
            given on this machine when the run was made, which is known from a private list.

    Attributes:
        path: The file.
        ended: How the work ended that this handle comes from; `None` if it comes from none. `ended.stopped` says why,
            if it was stopped by its budget or by failures.

    Raises:
        StoreError: If there is no such file, or it is no run.
        RunError: If its recipe is not to be had, as soon as the recipe is needed; if another recipe made it.
        TrustError: If the recipe is a file that only the run's author has named, as soon as it is needed.
    """

    def __init__(
        self,
        path: PathLike,
        recipe: RecipeLike | None = None,
        *,
        models: Mapping[str, ModelLike] | None = None,
        ended: Ended | None = None,
        trust: bool = False,
    ) -> None:
        self._trust = trust
        self.path = Path(path)
        self.ended = ended
        self._given = None if recipe is None else find_recipe(recipe)[1]
        self._models = dict(models or {})
        with self._opened():
            pass

    def __repr__(self) -> str:
        with self._opened() as file:
            status = file.status()
            text = (
                f"{str(self.path)!r}: {file.config.recipe}, {status.done:,} of {status.total:,} scenarios done, "
                f"{status.failed:,} failed"
            )
        if self.ended is not None and self.ended.stopped is not None:
            text += f", stopped: {self.ended.stopped.reason}"
        return f"<Run {text}>"

    def __len__(self) -> int:
        """How many scenarios are planned."""
        return self.status().total

    @property
    def config(self) -> RunConfig:
        """All that decides what the run does: recipe, options, models, seed."""
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
        """What a set of judgements (by default the oldest) judges, in the recipe's order."""
        with self._opened() as file:
            chosen = file.judgement_set(judging)
            return [] if chosen is None else file.metrics_of(chosen.name, file.recipe)

    def status(self) -> Status:
        """How far the run is, and what its calls have taken."""
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
        """A page of scenarios, finished or not, with their figures; quick however many there are, unless by `where`.

        Args:
            query: Which, and in which order; by default all, in plan order.
            where: Of these, those that an expression holds of; see `episodes`.
            said: Of these, those in which something was said: words of one message, in any order; `"in quotes"` beside
                each other; `begin*` for what begins so. They are looked up in an index in the user's folder for caches,
                which is made when it is first needed; see `dialoom.runs.spoken`.
            offset: How many of them are passed over.
            limit: How many there are on a page.
            on_progress: Is told what is being done, how much of it and of how much, while an expression is asked about
                every scenario, or the index is made; what it raises ends that.

        Raises:
            RunError: If the expression cannot be told, or there is no word in `said`.
            StoreError: If the query cannot be told, or there is no such set of judgements.
            OutputError: If the index cannot be kept.
        """
        from dialoom.runs.listed import listed, unheard

        with self._opened() as file:
            return listed(file, query, where, said, offset, limit, on_progress or unheard)

    def neighbours(
        self, scenario: str | int, query: ScenarioQuery = _ALL, *, where: str | None = None, said: str | None = None
    ) -> Neighbours | None:
        """What stands beside a scenario in the list that `scenarios` gives for the same; `None` if it is not in it.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            query: Which scenarios, and in which order; by default all, in plan order.
            where: As for `scenarios`.
            said: As for `scenarios`.

        Raises:
            RunError, StoreError, OutputError: As `scenarios`; also if there is no such scenario.
        """
        from dialoom.runs.listed import neighbours

        with self._opened() as file:
            return neighbours(file, scenario, query, where, said)

    def choices(self) -> Choices:
        """What scenarios can be chosen by in a `ScenarioQuery`, with how many have each value."""
        with self._opened() as file:
            return file.choices()

    def progress(self) -> RunProgress:
        """How it gets on, also while another process plays it: status, budget, calls by model, what failed of what."""
        from dialoom.runs.progress import RunProgress

        with self._opened() as file:
            return RunProgress.of(file)

    def episodes(self, judging: str | None = None, *, where: str | None = None) -> Iterator[RecordedEpisode]:
        """What came of each finished scenario (done or failed), in plan order, read a page at a time.

        Args:
            judging: The set of judgements that they are given with; by default the oldest.
            where: Only those that this expression holds of: over the recipe's facets, counts and metrics by their
                names, and `state`, `ended_by`, `changed`, `unparsed` and others; e.g. `personalization >= 3 and
                ended_by == 'user_terminated'`. No comparison with a score that was not had holds.

        Raises:
            StoreError: If there is no such set.
            RunError: If the expression is wrong.
        """
        with self._opened() as file:
            yield from selected(file, judging, where)

    def episode(self, scenario: str | int, judging: str | None = None) -> RecordedEpisode | None:
        """What came of one scenario; `None` while it is pending.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            judging: The set of judgements; by default the oldest.

        Raises:
            StoreError: If there is no such scenario or set.
        """
        with self._opened() as file:
            return file.episode(file.resolve(str(scenario)), judging)

    def so_far(self, scenario: str | int, judging: str | None = None) -> RecordedEpisode:
        """As `episode`; of a scenario that is pending, what it has come to by its last step (`ended_by` is empty)."""
        with self._opened() as file:
            position = file.resolve(str(scenario))
            return file.episode(position, judging) or file.so_far(position)

    def conversation(self, scenario: str | int, judging: str | None = None) -> Conversation:
        """What has come of a scenario, finished or not: each message with its faults, judgements and call.

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
        """What a call asked, message by message, and what of it is new.

        Args:
            call: The call's row in the ledger.
            before: The row of the call that it is compared with.

        Raises:
            RunError: If there is no such call.
        """
        from dialoom.runs.viewing import request_shown

        with self._opened() as file:
            return request_shown(file, call, before)

    def label(
        self, scenario: str | int, item: str, annotator: str, label: str, *, path: PathLike | None = None
    ) -> None:
        """Write down what a person says of a judgement, in the file from which kappas are made.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            item: The judgement's id, as `conversation` has it.
            annotator: Who says it.
            label: A value of the metric's scale (`yes`, `4`); empty to take it back.
            path: The labels file, made if it is not there; by default `NAME.labels.csv` beside the run.

        Raises:
            RunError: If there is no such judgement, or the label is none of its scale.
            DataError: If the file cannot be read.
            OutputError: If it cannot be written.
        """
        from dialoom.runs.agreement import LabelFile, labels_beside

        labels = LabelFile(labels_beside(self.path) if path is None else Path(path))
        with self._opened() as file:
            labels.put(file, file.resolve(str(scenario)), item, annotator, label)

    def labels(self, annotator: str, *, path: PathLike | None = None) -> dict[str, str]:
        """What a person has said of judgements, by their ids; see `label`."""
        from dialoom.runs.agreement import LabelFile, labels_beside

        return LabelFile(labels_beside(self.path) if path is None else Path(path)).labels(annotator)

    def agreement(self, *, path: PathLike | None = None, judging: str | None = None) -> Agreement:
        """How far people agree with a judge, by the labels that they have given; needs the extra `agree`.

        Args:
            path: The labels file; by default that of `label`.
            judging: The set of judgements; by default the oldest.

        Raises:
            RunError: If statsmodels is not installed.
            DataError: If the file cannot be read, or holds what is no label of this run.
            StoreError: If there is no such set.
        """
        from dialoom.runs.agreement import agreement, labels_beside, read_labels

        labels = read_labels(labels_beside(self.path) if path is None else Path(path))
        with self._opened() as file:
            return agreement(file, labels, judging=judging)

    def scenario(self, scenario: str | int) -> Scenario:
        """A scenario as it was planned, finished or not; named as for `episode`."""
        with self._opened() as file:
            return file.scenario(file.recipe, file.resolve(str(scenario)))

    def faults(
        self, judging: str | None = None, *, where: str | None = None
    ) -> Iterator[tuple[RecordedEpisode, DialogueFault]]:
        """What is wrong with the conversations, fault by fault with the scenario that it belongs to, in plan order.

        Args:
            judging: The set of judgements whose judges' faults are among them; by default the oldest.
            where: Only those of scenarios that this expression holds of, such as `faults.user > 0`; see `episodes`.

        Raises:
            StoreError: If there is no such set.
            RunError: If the expression is wrong.
        """
        for episode in self.episodes(judging, where=where):
            for fault in episode.outcome.faults or ():
                yield episode, fault

    def report(self, judging: str | None = None, tables: Sequence[str] = (), *, where: str | None = None) -> Report:
        """The recipe's tables and charts. Printed, it is Markdown; a notebook shows it as such.

        Args:
            judging: One set of judgements; by default all, compared.
            tables: Only these, by name; by default all.
            where: Only scenarios that this expression holds of, such as `not changed`; see `episodes`.

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
        """What is in the dialogues: lengths, endings, variety, copies, languages, personal data, coverage, faults.

        Args:
            against: Runs or files of rows (JSON Lines, Parquet) in which copies are looked for, such as test data.
            where: Only scenarios that this expression holds of; see `episodes`.
            embedder: Look for texts that mean nearly the same as well, by `lexical` or `st:MODEL`.
            alike: The cosine from which they do (0.9).

        Raises:
            RunError: If a file is missing or of another kind, a library is missing (extra `describe`), there is no such
                embedder, or nothing is finished.
            DataError: Naming the line that cannot be read.
        """
        from dialoom.runs.describe import Alike, describe_run

        told = Alike.wanted(embedder, alike)
        with self._opened() as file:
            others = [Path(each) for each in against]
            return describe_run(file, others, where=where, trust=Trust(self._trust), alike=told)

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
        """Write finished scenarios in plan order; nothing is left half-written.

        Args:
            format: `dialogues`, or one of the recipe's own.
            path: A file; a folder for formats of files, and for a split. It is replaced when the new one is whole. Or
                an open text file, such as `sys.stdout`, for JSON lines.
            judging: The set of judgements; by default the oldest.
            encoding: How rows are written.
            test_share: The share of people (or what the recipe splits by) whose rows become a test split.
            options: The format's own.
            where: Only scenarios that this expression holds of; see `episodes`.
            include: What each row has besides its format's columns and its scenario's `id`: `facets`, `scores`.
            only: `sound`: only dialogues in which the gate found no fault; `faulty`: only the others.
            without: Kinds of faults whose dialogues are left out.
            license: What the data's card states, by the hub's name of it; by default that it is unknown.
            card: Describe what was written, and put the figures into its card; see `describe`.

        Returns:
            How many rows (or files) were written, by part: `all`, or `train` and `test`.

        Raises:
            RunError: If the format is not there or cannot do that.
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
            if isinstance(path, str | os.PathLike):
                return (write_described if card else write)(file, request, Path(path))
            if card:
                raise RunError("card: an open file has none; give a path", setting="card")
            return write(file, request, path)

    def frame(
        self, kind: Kind = "episodes", judging: str | None = None, *, where: str | None = None
    ) -> pandas.DataFrame:
        """The run as a pandas DataFrame; needs the extra `frames`.

        Args:
            kind: `episodes`: a row for each finished scenario, with its facets (one whose name is taken is called
                `facet.NAME`), counts and mean score by metric;
                `lines`: a row for each line that was said; `judgements`: a row for each judge's word; `faults`: a row
                for each fault that the gate found; `calls`: a row for each call of a model, with tokens, cost, latency
                and the kinds of faults in what it said, rejected lines of simulated users among them.
            judging: The set of judgements; by default the oldest. Not of use for `lines` and `calls`.
            where: Only what belongs to scenarios that this expression holds of; see `episodes`.

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
        """An export as a Hugging Face `Dataset`, or with `test_share` a `DatasetDict` of train and test.

        Needs the extra `datasets`. The arguments are those of `export`.

        Raises:
            RunError: If datasets is not installed, or the format's rows are not of one shape.
        """
        from .frames import dataset

        with self._opened() as file:
            return dataset(file, format, judging, test_share, options or {}, where, include, only, without)

    def step(
        self,
        scenario: str | int,
        *,
        branch: str = "main",
        models: Mapping[str, ModelLike] | None = None,
        **calls: Unpack[CallSettings],
    ) -> AbstractAsyncContextManager[Session]:
        """One conversation step by step: `async with run.step(1) as session`.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            branch: The branch to stand on.
            models: Functions and graphs that were given as objects, by role; those that this handle was made with are
                known.
            **calls: How calls are made; see `CallSettings`.

        Raises:
            StoreError: If another process writes the run, or there is no such scenario.
            SteppingError: If there is no such branch.
        """
        from .operations import step

        trusting = self._trusting(calls)
        return step(self.path, scenario, branch=branch, recipe=self._given, models=self._known(models), **trusting)

    @asynccontextmanager
    async def look(
        self, scenario: str | int, *, branch: str = "main", checkpoint: str | int | None = None
    ) -> AsyncIterator[Looking]:
        """One conversation step by step, to look at, also while another process plays it: nothing is written.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            branch: The branch to look at.
            checkpoint: A checkpoint's number or id; by default where the branch stands.

        Raises:
            StoreError: If there is no such scenario.
            SteppingError: If there is no such branch or checkpoint; as its `NotBegunError` if none of it was played.
        """
        from dialoom.runs.stepping import Looking

        with self._opened() as file:
            async with Looking.open(file, scenario, branch=branch, checkpoint=checkpoint) as looking:
                yield looking

    def resume(
        self,
        *,
        models: Mapping[str, ModelLike] | None = None,
        retry_failed: bool = False,
        **calls: Unpack[CallSettings],
    ) -> Run:
        """Go on with it where it stopped; see `dialoom.resume`."""
        from .operations import resume

        known, trusting = self._known(models), self._trusting(calls)
        return resume(self.path, recipe=self._given, models=known, retry_failed=retry_failed, **trusting)

    def judge(
        self,
        model: Players | None = None,
        *,
        models: Mapping[str, Players] | None = None,
        name: str | None = None,
        repeat: int = 1,
        sample: int | None = None,
        where: str | None = None,
        **calls: Unpack[CallSettings],
    ) -> Run:
        """Judge it once more; see `dialoom.judge`."""
        from .operations import judge

        which: dict[str, Any] = {"name": name, "repeat": repeat, "sample": sample, "where": where}
        judged = judge(self.path, model=model, models=models, recipe=self._given, **which, **self._trusting(calls))
        return Run(self.path, self._given, models=self._models, ended=judged.ended, trust=self._trust)

    def stream(
        self, *, models: Mapping[str, ModelLike] | None = None, **calls: Unpack[CallSettings]
    ) -> AsyncGenerator[Event, None]:
        """Go on with it, and give what happens; see `dialoom.stream`."""
        from .operations import stream

        trusting = self._trusting(calls)
        return stream(self._given, path=self.path, is_new=False, models=self._known(models), **trusting)

    def _trusting(self, calls: CallSettings) -> CallSettings:
        """How calls are made, with the trust of this handle unless another is given now."""
        return {"trust": self._trust, **calls}

    def _known(self, models: Mapping[str, ModelLike] | None) -> Mapping[str, ModelLike]:
        """The functions and graphs that this handle keeps, and those that are given now, which win."""
        return {**self._models, **(models or {})}

    @contextmanager
    def _opened(self) -> Iterator[RunFile]:
        with RunFile(self.path, recipe=self._given, trust=Trust(self._trust)) as file:
            yield file


def open_run(path: PathLike, recipe: RecipeLike | None = None, *, trust: bool = False) -> Run:
    """A run's file, for reading, and as a handle for what is done with it.

    Args:
        path: The file.
        recipe: The recipe, if it was given as an object when the run was made.
        trust: Use the code and the addresses that the file names, whoever made it; see `Run`.

    Raises:
        StoreError: If there is no such file, or it is no run.
    """
    return Run(path, recipe, trust=trust)


def describe(
    path: PathLike,
    against: Sequence[PathLike] = (),
    *,
    where: str | None = None,
    embedder: str | None = None,
    alike: float | None = None,
    trust: bool = False,
) -> Report:
    """What is in a dataset; of a run as `Run.describe`, of a release tables 1 and 6 to 10 of PersonaLens.

    Args:
        path: A run, an exported folder, a file of rows (JSON Lines, Parquet), or a folder in the PersonaLens release's
            layout.
        against: As for `Run.describe`.
        where: Only scenarios of a run that this expression holds of.
        embedder: Look for texts that mean nearly the same as well, by `lexical` or `st:MODEL`.
        alike: The cosine from which they do (0.9).
        trust: As of `Run`.

    Raises:
        RunError: If it is none of these, a library is missing (extra `describe`), or there is nothing in it.
        DataError: Naming the file and line that cannot be read.
    """
    from dialoom.runs.describe import Alike, describe_path

    others = [Path(each) for each in against]
    return describe_path(Path(path), others, where=where, trust=Trust(trust), alike=Alike.wanted(embedder, alike))


def report(
    *runs: Run | PathLike | Sequence[Run | PathLike],
    judging: str | None = None,
    tables: Sequence[str] = (),
    where: str | None = None,
    trust: bool = False,
) -> Report:
    """The report of one run, or of several side by side.

    Args:
        *runs: Runs of one recipe, one by one or as a list.
        judging: The set of judgements, in each of them.
        tables: Only these, by name.
        where: Only scenarios that this expression holds of; see `Run.episodes`.
        trust: As of `Run`, for those that are given as paths.

    Raises:
        RunError: If they are not of one recipe, one is named twice, a table is not there, or the expression is wrong.
        StoreError: If a run has no such set.
    """
    from contextlib import ExitStack

    named = [each for given in runs for each in ([given] if isinstance(given, Run | str | os.PathLike) else given)]
    if not named:
        raise RunError("runs: give at least one", setting="runs")
    with ExitStack() as opened:
        handles = [run if isinstance(run, Run) else Run(run, trust=trust) for run in named]
        return Report.of([opened.enter_context(handle._opened()) for handle in handles], judging, tables, where)
