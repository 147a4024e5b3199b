"""Runs as pandas DataFrames and Hugging Face datasets. Both libraries are optional dependencies."""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from dialoom.graphs import Estimate
from dialoom.graphs.built_in_environments import decode_snapshot
from dialoom.graphs.outcome import ENVIRONMENT, count_dialogue_faults
from dialoom.runs.errors import RunError, TrustError
from dialoom.runs.export import ExportRequest, Soundness, write_export
from dialoom.runs.export.rows import episode_columns
from dialoom.runs.reading.conversations import find_faulty_calls
from dialoom.runs.reading.scenarios import mean_scores, select_episodes
from dialoom.runs.report.labelled_runs import OFFLINE_COLUMN, offline_roles
from dialoom.runs.store import RunFile

if TYPE_CHECKING:
    import pandas

FrameKind = Literal["episodes", "lines", "judgements", "faults", "calls", "calibrated"]
_SINGLE_PART = "all"


def build_frame(
    run: RunFile, kind: str, judging: str | None, where: str | None = None, labels: Path | None = None
) -> pandas.DataFrame:
    """Return a run as a DataFrame; see `Run.frame`."""
    if kind not in get_args(FrameKind):
        raise RunError(f"kind must be one of {', '.join(get_args(FrameKind))}, got {kind!r}", setting="kind")
    library = _import_library("pandas", "frames")
    is_calibrated = kind == "calibrated"
    rows = list(
        _iter_calibrated(run, labels, judging, where) if is_calibrated else _ROW_ITERATORS[kind](run, judging, where)
    )
    unmatched = _ROW_ITERATORS[kind](run, judging, None) if where and not rows and not is_calibrated else ()
    columns = dict.fromkeys(name for row in unmatched for name in row) or _FIXED_COLUMNS[kind]
    result: pandas.DataFrame = library.DataFrame(rows or None, columns=None if rows else [*columns])
    return result


def build_dataset(
    run: RunFile,
    format_: str,
    judging: str | None,
    test_share: float | None,
    options: Mapping[str, Any],
    where: str | None = None,
    include: Collection[str] = (),
    only: Soundness | None = None,
    without: Collection[str] = (),
) -> Any:
    """Return an export as a Hugging Face dataset; see `Run.dataset`."""
    datasets = _import_library("datasets", "datasets")
    tables = _import_library("pyarrow.parquet", "datasets")
    request = ExportRequest(
        format_, judging, "parquet", test_share, options, where, include, only=only, without=without
    )
    with tempfile.TemporaryDirectory(prefix="dialoom-") as folder:
        target = Path(folder) / "rows"
        parts = write_export(run, request, target)
        if list(parts) == [_SINGLE_PART]:
            return datasets.Dataset(tables.read_table(target, memory_map=False))
        return datasets.DatasetDict(
            {part: datasets.Dataset(tables.read_table(target / f"{part}.parquet", memory_map=False)) for part in parts}
        )


def _import_library(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RunError(f"{name.partition('.')[0]} is not installed: pip install 'dialoom[{extra}]'") from error


def _iter_episodes(run: RunFile, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    offline, rows = _format_offline_roles(run, judging), []
    for number, episode in _iter_numbered(run, judging, where):
        environment = episode.outcome.environment
        fixed = {
            "number": number,
            **episode_columns(episode),
            "state": episode.state,
            "ended_by": episode.outcome.ended_by,
            "error": episode.error,
            "branch": episode.branch.name if episode.branch else None,
            "lines": len(episode.outcome.messages),
            OFFLINE_COLUMN: offline,
            "faults": None if episode.outcome.faults is None else count_dialogue_faults(episode.outcome.faults),
        }
        state = (
            {} if environment is None else {ENVIRONMENT: json.dumps(decode_snapshot(environment), ensure_ascii=False)}
        )
        rows.append((fixed, episode.facets, episode.outcome.counts, {**mean_scores(episode), **state}))
    metrics = {name for *_, scores in rows for name in scores}
    facets = {name for _, each, *_ in rows for name in each}
    for fixed, each, counts, scores in rows:
        columns = _name_columns((*_FIXED_COLUMNS["episodes"], *metrics), "facet", each)
        yield {**fixed, **columns, **_name_columns((*_FIXED_COLUMNS["episodes"], *facets), "count", counts), **scores}


def _iter_lines(run: RunFile, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    for number, episode in _iter_numbered(run, judging, where):
        for index, line in enumerate(episode.outcome.messages):
            yield {
                "number": number,
                **episode_columns(episode),
                "line": index,
                "role": line.role,
                "content": line.spoken,
            }


def _iter_judgements(run: RunFile, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    offline = _format_offline_roles(run, judging)
    for number, episode in _iter_numbered(run, judging, where):
        for judgement in episode.outcome.judgements:
            score = None if judgement.score is None else float(judgement.score)
            facets = _name_columns(_FIXED_COLUMNS["judgements"], "facet", episode.facets)
            values = {**judgement.model_dump(), "score": score, OFFLINE_COLUMN: offline}
            yield {"number": number, **episode_columns(episode), **facets, **values}


def _iter_faults(run: RunFile, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    for number, episode in _iter_numbered(run, judging, where):
        facets = _name_columns(_FIXED_COLUMNS["faults"], "facet", episode.facets)
        for fault in episode.outcome.faults or ():
            yield {"number": number, **episode_columns(episode), **facets, **fault.model_dump()}


def _iter_calls(run: RunFile, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    numbers = None if where is None else {number for number, _ in _iter_numbered(run, judging, where)}
    faults = _find_faults_by_call(run)
    for call in run.calls():
        if numbers is None or call["number"] in numbers:
            yield {**call, "faults": faults.get(call["call"])}


def _iter_calibrated(
    run: RunFile, labels: Path | None, judging: str | None, where: str | None
) -> Iterator[dict[str, Any]]:
    from dialoom.runs.agreement import calibrate_scores

    for each in calibrate_scores(run, labels, judging, where):
        labels_only = {
            "alone": each.labels_only.mean,
            "alone_low": each.labels_only.low,
            "alone_high": each.labels_only.high,
        }
        mean = {"mean": each.mean.mean, "low": each.mean.low, "high": each.mean.high, "n": each.mean.n}
        counts = {
            "effective": each.effective_labels,
            "more": each.additional_labels,
            OFFLINE_COLUMN: _format_offline_roles(run, judging),
        }
        judge = each.judge.mean if isinstance(each.judge, Estimate) else each.judge
        yield {**each.group._asdict(), "labels": each.labels, "judge": judge, **mean, **labels_only, **counts}


def _find_faults_by_call(run: RunFile) -> dict[int, str]:
    """Return the kinds of faults in each call's reply, by call; empty if the recipe is not trusted."""
    kinds: dict[int, str] = {}
    with suppress(TrustError):
        for position in run.find_faulty():
            faulty = find_faulty_calls(run, position, run.calls_of(position), run.outcome(position))
            kinds |= {row: ", ".join(fault.kind for fault in faults) for row, faults in faulty.faults.items()}
    return kinds


def _format_offline_roles(run: RunFile, judging: str | None) -> str | None:
    """Return, as text, the roles (including judges) that an offline model played; `None` if there are none."""
    judges = run.judgement_set(judging)
    return offline_roles(run.config.role_bindings(judges.models if judges else None)) or None


def _name_columns(reserved: Collection[str], kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe's values by column. If a name is taken, the kind is put in front of it, as in `facet.number`."""
    reserved = {*reserved, "trial", ENVIRONMENT}
    return {f"{kind}.{name}" if name in reserved else name: value for name, value in values.items()}


def _iter_numbered(run: RunFile, judging: str | None, where: str | None) -> Iterator[tuple[int, Any]]:
    for episode in select_episodes(run, judging, where):
        yield run.resolve(episode.id) + 1, episode


_ROW_ITERATORS = {
    "episodes": _iter_episodes,
    "lines": _iter_lines,
    "judgements": _iter_judgements,
    "faults": _iter_faults,
    "calls": _iter_calls,
}
_FIXED_COLUMNS = {
    "episodes": ("number", "id", "state", "ended_by", "error", "branch", "lines", "offline", "faults"),
    "lines": ("number", "id", "line", "role", "content"),
    "judgements": ("number", "id", "metric", "target", "turn", "score", "status", "explanation", "offline"),
    "faults": ("number", "id", "role", "kind", "message", "where", "excerpt", "confidence"),
    "calls": ("number", "node", "step", "role", "model", "reply", "faults"),
    "calibrated": ("metric", "target", "by_turn", "labels", "judge", "mean", "low", "high", "n"),
}
