"""Trial of a judge on labelled conversations, before a run is paid for: its health, and its agreement with people."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from dialoom.graphs import Table, WithJudging
from dialoom.graphs.transcript import read_labelled_rows
from dialoom.graphs.transcript_rows import LABEL_PREFIX
from dialoom.grouping import group_pairs
from dialoom.inputs import DataError, is_sqlite
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.errors import RunError
from dialoom.runs.reading.conversations import iter_items
from dialoom.runs.report.health import assess_health, health_table
from dialoom.runs.report.labelled_runs import add_offline_column, label_runs
from dialoom.runs.report.report import render_markdown
from dialoom.runs.store import RunFile
from dialoom.runs.store.connections import copy_run
from dialoom.settings import PathLike, Players, PlayerSettings, select_settings

from .blocking import blocking
from .importing import aimport_transcripts
from .judges import bind_judges, name_judgement_sets
from .operation_settings import JudgeSettings
from .operations import ajudge

if TYPE_CHECKING:
    from dialoom.runs.agreement import Labels

_MISSING = (None, "")
"""The values of a missing label."""


@dataclass(frozen=True, slots=True, repr=False)
class JudgeTrial:
    """The result of a trial of a judge.

    Example:
        >>> trial = dialoom.try_judge("labelled.jsonl", "offline/placeholder", judges="judges.toml")
        >>> [table.name for table in trial.tables]
        ['judge-health', 'agreement']

    Attributes:
        tables: The health of each judge and its agreement with the labels.
        is_complete: False if the trial was stopped.
    """

    tables: Sequence[Table]
    is_complete: bool

    def __repr__(self) -> str:
        return f"<JudgeTrial: {', '.join(table.name for table in self.tables)}>"

    def __str__(self) -> str:
        return render_markdown(self.tables, "Trial of a judge")

    _repr_markdown_ = __str__


async def atry_judge(
    source: PathLike,
    model: Players | None = None,
    *,
    judges: PathLike | None = None,
    labels: PathLike | None = None,
    path: PathLike | None = None,
    repeat: int = 1,
    retry_failed: bool = False,
    **settings: Unpack[JudgeSettings],
) -> JudgeTrial:
    """Let a judge score labelled conversations, and return its health and its agreement with the labels.

    Only the judge is called, and nothing is stored unless `path` is given. Needs the extra `agree`.

    Example:
        >>> trial = dialoom.try_judge("labelled.jsonl", "offline/placeholder", judges="judges.toml")
        >>> trial.tables[0].rows[0][0]
        'resolved (assistant)'

    Args:
        source: Conversations in a format of `import_transcripts`, or a run. All conversations are scored by the study's
            judges. In a run, only the labelled scenarios are scored, by its recipe's judges.
        model: The judge, as for `judge`; several, in a list, are tried one after the other.
        judges: The study with the judges; required for conversations, not for a run.
        labels: A labels file; by default the labels are in the rows (`"label:anna": {"resolved": "yes"}`), or in the
            labels file of the run.
        path: A file to store the judged run in; a repeated trial continues it.
        repeat: How often all conversations are judged, to see how far the judge agrees with itself.
        retry_failed: Whether to repeat judgings that failed in an earlier trial with the same `path`.
        **settings: As for `judge`.

    Raises:
        DataError: If conversations or labels cannot be read, or there are no labels.
        RunError: If a setting is wrong, or no conversation was judged.
        StoreError: If `path` cannot be written, or `source` is a file that is not a run.
    """
    from dialoom.runs.agreement.results import LabelledItems  # deferred: imports numpy
    from dialoom.runs.report.rater_agreement import require_statistics

    require_statistics()
    source_path = Path(source)
    is_run = is_sqlite(source_path)
    given_labels = _read_given_labels(source_path, is_run, judges, labels)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if path is None else ""
        target = Path(folder, f"{source_path.stem}.db") if path is None else Path(path)
        where = _select_labelled(source_path, given_labels) if is_run and given_labels is not None else None
        if not is_run:
            await aimport_transcripts(source_path, path=target, study=judges, control=settings.get("control"))
        elif not target.exists():
            copy_run(source_path, target)
        with RunFile(target, trust=Trust(settings.get("trust", False))) as file:
            if given_labels is None:
                _check_labels(source_path, file)
            else:
                LabelledItems(file, given_labels, None, None).check_labels()
        run = await ajudge(
            target, model, judges=judges, repeat=repeat, where=where, retry_failed=retry_failed, **settings
        )
        assert run.ended is not None
        with RunFile(target, trust=Trust(settings.get("trust", False))) as file:
            bindings = bind_judges(file.recipe, model, select_settings(PlayerSettings, settings))
            names = [name for _, name in name_judgement_sets(bindings, None, 1)]
            all_labels = _collect_row_labels(source_path, file, names[0]) if given_labels is None else given_labels
            return JudgeTrial([*_build_tables(file, names, all_labels)], run.ended.is_complete)


try_judge = blocking("try_judge", atry_judge)


def _read_given_labels(source: Path, is_run: bool, judges: PathLike | None, labels: PathLike | None) -> Labels | None:
    """Return the labels of a run or of a labels file; `None` if the labels are in the rows of the conversations.

    Raises:
        RunError: If a study is missing, or given for a run.
        DataError: If the labels cannot be read, or there are none.
    """
    from dialoom.runs.agreement import default_labels_path, read_labels  # deferred: imports numpy

    if is_run and judges is not None:
        raise RunError(f"judges: {source} is a run, whose own recipe has the judges; omit judges", setting="judges")
    if not is_run and judges is None:
        raise RunError("judges is missing: give the study whose judges are to be tried", setting="judges")
    if labels is not None or is_run:
        return read_labels(default_labels_path(source) if labels is None else Path(labels))
    if next(read_labelled_rows(source), None) is None:
        raise DataError(
            source, f'no row has a label; add labels to the rows under "{LABEL_PREFIX}NAME", or give a labels file'
        )
    return None


def _select_labelled(path: Path, labels: Labels) -> str:
    """Return an expression that selects the scenarios that have a label."""
    from dialoom.runs.agreement.items import find_scenario

    with RunFile(path) as file:
        ids = {found[1] for row in labels.rows if (found := find_scenario(file, row.item)) is not None}
    if not ids:
        raise DataError(labels.path, "no label belongs to a scenario of the run")
    return f"id in {sorted(ids)!r}"


def _check_labels(source: Path, run: RunFile) -> None:
    """Check, before the first call, that labels in rows are on the scales of the judges' metrics.

    Raises:
        DataError: If a label is wrong.
    """
    from dialoom.runs.agreement import Scales

    scales = Scales(WithJudging.of(run.recipe).scales)
    subjects = _list_subjects(run)
    metrics = [*dict.fromkeys(subjects.values())]
    for row in read_labelled_rows(source):
        for name, given in row.labels.items():
            if not isinstance(given, Mapping) and given not in _MISSING and len(subjects) > 1:
                unique_metrics = [metric for metric in metrics if [*subjects.values()].count(metric) == 1]
                raise _unclear_label_error(source, row.line, name, given, [*unique_metrics, *subjects])
            labels = given if isinstance(given, Mapping) else dict.fromkeys(subjects, given)
            for key, label in labels.items():
                if (metric := key.partition("/")[0]) not in metrics:
                    problem = f"{LABEL_PREFIX}{name}: {key!r:.60} names no metric of the judges; they have"
                    raise DataError(source, f"{problem} {', '.join(metrics)}", row.line)
                try:
                    if label not in _MISSING:
                        scales.get(metric).parse(str(label))
                except ValueError as error:
                    raise DataError(source, f"label of {name}: {error}", row.line) from error


def _list_subjects(run: RunFile) -> dict[str, str]:
    """Return the metric of each of the judges' `METRIC/TARGET`."""
    return {
        f"{metric}/{judge.target}": metric for judge in WithJudging.of(run.recipe).judges for metric in judge.metrics
    }


def _unclear_label_error(source: Path, line: int, name: str, given: object, known: Sequence[str]) -> DataError:
    problem = f"{LABEL_PREFIX}{name}: {given!r:.60} does not state which judgement it labels; give an object"
    return DataError(source, f"{problem} with keys from: {', '.join(known)}", line)


def _collect_row_labels(source: Path, run: RunFile, judging: str) -> Labels:
    """Return the labels in the rows of a file of conversations; rows of one conversation are merged.

    Labels of conversations that a judge has not judged are returned, too.

    Raises:
        DataError: If a row has a label for something that is not judged, or another label than an earlier row.
    """
    from dialoom.runs.agreement.labels import LabelRow, Labels

    rows = [*read_labelled_rows(source)]
    annotators = tuple(dict.fromkeys(name for row in rows for name in row.labels))
    checks = {check.metric for check in WithJudging.of(run.recipe).checks}
    subjects = _list_subjects(run)
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    lines: dict[str, int] = {}
    for row in rows:
        episode = run.episode(run.resolve(row.id), judging)
        items = iter_items(episode, run.recipe) if episode is not None else ()
        judged = [each for each in items if each.judgement.metric not in checks]
        keys = [each.id.removeprefix(f"{row.id}/") for each in judged]
        unjudged = [each for each in subjects if not any(f"{key}/".startswith(f"{each}/") for key in keys)]
        conversation_items = [
            (item.judgement.metric, key) for item, key in zip(judged, keys, strict=True) if not item.group.by_turn
        ]
        by_metric = group_pairs([*conversation_items, *((subjects[each], each) for each in unjudged)])
        for name, given in row.labels.items():
            labels = given if isinstance(given, Mapping) else dict.fromkeys(keys or unjudged, given)
            for key, label in labels.items():
                item, *alternatives = by_metric.get(key, [key])
                is_known = item in keys or any(f"{item}/".startswith(f"{each}/") for each in unjudged)
                is_ambiguous = labels is not given and given not in _MISSING and len(labels) > 1
                if alternatives or not is_known or is_ambiguous:
                    unique_metrics = [metric for metric, items in by_metric.items() if len(items) == 1]
                    raise _unclear_label_error(source, row.line, name, given, [*unique_metrics, *keys, *unjudged])
                line = lines.setdefault(id_ := f"{row.id}/{item}", row.line)
                text = "" if label is None else str(label)
                if text and (known := cells[id_].get(name) or text) != text:
                    problem = f"{LABEL_PREFIX}{name}: {text!r} for {key!r}, but line {line} has {known!r}"
                    raise DataError(source, f"{problem} for the same conversation; keep one of them", row.line)
                cells[id_][name] = text or cells[id_].get(name, "")
    label_rows = [
        LabelRow(id_, "", lines[id_], tuple(by_name.get(name, "") for name in annotators))
        for id_, by_name in cells.items()
    ]
    return Labels(source, annotators, label_rows)


def _build_tables(run: RunFile, names: Sequence[str], labels: Labels) -> Iterator[Table]:
    """Yield the health of each judge and its agreement with the labels."""
    from dialoom.runs.agreement import compute_agreement, kappa_table

    has_several = len(names) > 1
    for name in names:
        reported = label_runs([run], run.recipe, name)
        if not (health := assess_health(reported[0], None)):
            raise RunError(f"{name} judged no labelled conversation, so there is nothing to compare")
        tables = [*health_table(health, several=False), kappa_table(compute_agreement(run, labels, judging=name))]
        for table in tables:
            table.title += f" ({name})" if has_several else ""
        yield from add_offline_column(tables, reported)
