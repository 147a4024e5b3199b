"""The handle on a run for library users; its file is open only while something is read."""

from __future__ import annotations

import itertools
import os
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, Unpack

from dialoom.runs.errors import RunError
from dialoom.runs.progress import Ended, Event
from dialoom.runs.report import Report
from dialoom.runs.trust import Trust
from dialoom.settings import ModelLike, PathLike, Players

from .recorded import RecordedRun
from .settings import CallSettings, RecipeLike

if TYPE_CHECKING:  # heavy, or an extra
    import datasets
    import pandas

    from dialoom.runs.export import Encoding, Soundness
    from dialoom.runs.stepping import Looking, Stepper

    from .frames import Kind


class Run(RecordedRun):
    """A handle on a run's file. It can be read at any time, also while another process plays it.

    Args:
        path: The file.
        recipe: The recipe, if it was given as an object when the run was made.
        models: Functions and graphs that were given as objects, by role, kept for resuming.
        ended: The result of the work that returned this handle.
        trust: Use the code and the addresses that the file names, whoever made it. Without it, only what this user has
            given on this machine when the run was made, which is known from a private list.

    Attributes:
        path: The file.
        ended: The result of the work that returned this handle; `None` without any. `ended.stopped` is the reason
            if it was stopped by its budget or by failures.

    Raises:
        StoreError: If there is no such file, or it is no run.
        RunError: If its recipe cannot be loaded, as soon as it is needed; if another recipe made it.
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
        super().__init__(path, recipe, trust=trust)
        self.ended = ended
        self._models = dict(models or {})

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
        """Write finished scenarios in plan order; no incomplete file is left.

        Args:
            format: `dialogues`, or one of the recipe's formats.
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

    def step(
        self,
        scenario: str | int,
        *,
        branch: str = "main",
        models: Mapping[str, ModelLike] | None = None,
        **calls: Unpack[CallSettings],
    ) -> AbstractAsyncContextManager[Stepper]:
        """Open one conversation for stepping: `async with run.step(1) as stepper`.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            branch: The branch to open.
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
        """Open one conversation's steps for reading, also while another process plays it; nothing is written.

        Args:
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            branch: The branch to look at.
            checkpoint: A checkpoint's number or id; by default where the branch stands.

        Raises:
            StoreError: If there is no such scenario.
            SteppingError: If there is no such branch or checkpoint; as its `NotBegunError` if none of it was played.
        """
        from dialoom.runs.stepping import Looking

        own: Exception | None = None
        with self._opened() as file:
            async with Looking.open(file, scenario, branch=branch, checkpoint=checkpoint) as looking:
                try:
                    yield looking
                except Exception as error:
                    if _is_of_dialoom(error):
                        raise
                    own = error  # raised by the caller's code, not by reading the file
        if own is not None:
            raise own

    def resume(
        self,
        *,
        models: Mapping[str, ModelLike] | None = None,
        retry_failed: bool = False,
        **calls: Unpack[CallSettings],
    ) -> Run:
        """Resume the run where it stopped; see `dialoom.resume`."""
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
        """Judge the run once more; see `dialoom.judge`."""
        from .operations import judge

        which: dict[str, Any] = {"name": name, "repeat": repeat, "sample": sample, "where": where}
        judged = judge(self.path, model=model, models=models, recipe=self._given, **which, **self._trusting(calls))
        return Run(self.path, self._given, models=self._models, ended=judged.ended, trust=self._trust)

    def stream(
        self, *, models: Mapping[str, ModelLike] | None = None, **calls: Unpack[CallSettings]
    ) -> AsyncGenerator[Event, None]:
        """Resume the run, and yield its events; see `dialoom.stream`."""
        from .operations import stream

        trusting = self._trusting(calls)
        return stream(self._given, path=self.path, is_new=False, models=self._known(models), **trusting)

    def _trusting(self, calls: CallSettings) -> CallSettings:
        """Return the call settings, with the trust of this handle unless they set another."""
        return {"trust": self._trust, **calls}

    def _known(self, models: Mapping[str, ModelLike] | None) -> Mapping[str, ModelLike]:
        """Return the functions and graphs that this handle keeps, overridden by those given now."""
        return {**self._models, **(models or {})}


def _is_of_dialoom(error: Exception) -> bool:
    """Return whether an exception raised in a caller's block passed through a function of dialoom's."""
    within = list(traceback.walk_tb(error.__traceback__))[1:]  # the first frame is the one that had the block
    return any(str(frame.f_globals.get("__name__")).startswith("dialoom.") for frame, _ in within)


def open_run(path: PathLike, recipe: RecipeLike | None = None, *, trust: bool = False) -> Run:
    """Open a run's file for reading, and as a handle for the operations on it.

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
    """Return statistics of a dataset; of a run as `Run.describe`, of a release tables 1 and 6 to 10 of PersonaLens.

    Args:
        path: A run, a file of rows (JSON Lines, JSON, Parquet), a folder of such files, or one in the PersonaLens
            release's layout.
        against: As for `Run.describe`.
        where: Only scenarios of a run that match this expression.
        embedder: Also find texts of nearly the same meaning, by `lexical` or `st:MODEL`.
        alike: The least cosine similarity of such texts (0.9).
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
    on_progress: Callable[[int], None] | None = None,
) -> Report:
    """Return the report of one run, or of several side by side.

    Args:
        *runs: Runs of one recipe, one by one or as a list.
        judging: The set of judgements, in each of them.
        tables: Only these, by name.
        where: Only scenarios that match this expression; see `Run.episodes`.
        trust: As of `Run`, for those that are given as paths.
        on_progress: Called with the number of scenarios read so far, each time one is read (every one is read several
            times); an exception that it raises ends the work.

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
        files = [opened.enter_context(handle._opened()) for handle in handles]
        if on_progress is not None:
            counter = itertools.count(1)
            for file in files:
                file.on_read = lambda: on_progress(next(counter))
        return Report.of(files, judging, tables, where)
