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
from dialoom.runs.export import ExportRequest, Soundness, write
from dialoom.runs.export.rows import named
from dialoom.runs.reading.conversations import find_faulty_calls
from dialoom.runs.reading.scenarios import mean_scores, select_episodes
from dialoom.runs.report.reported import OFFLINE_COLUMN, offline_roles
from dialoom.runs.store import RunFile

if TYPE_CHECKING:
    import pandas

Kind = Literal["episodes", "lines", "judgements", "faults", "calls", "calibrated"]
_ONE = "all"


def frame(
    run: RunFile, kind: str, judging: str | None, where: str | None = None, labels: Path | None = None
) -> pandas.DataFrame:
    """Return a run as a DataFrame; see `Run.frame`."""
    if kind not in get_args(Kind):
        raise RunError(f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}", setting="kind")
    library = _imported("pandas", "frames")
    is_calibrated = kind == "calibrated"
    rows = list(_calibrated(run, labels, judging, where) if is_calibrated else _ROWS[kind](run, judging, where))
    unmatched = _ROWS[kind](run, judging, None) if where and not rows and not is_calibrated else ()
    columns = dict.fromkeys(name for row in unmatched for name in row) or _ALWAYS[kind]
    made: pandas.DataFrame = library.DataFrame(rows or None, columns=None if rows else [*columns])
    return made


def dataset(
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
    datasets = _imported("datasets", "datasets")
    tables = _imported("pyarrow.parquet", "datasets")
    request = ExportRequest(
        format_, judging, "parquet", test_share, options, where, include, only=only, without=without
    )
    with tempfile.TemporaryDirectory(prefix="dialoom-") as folder:
        target = Path(folder) / "rows"
        parts = write(run, request, target)
        if list(parts) == [_ONE]:
            return datasets.Dataset(tables.read_table(target, memory_map=False))
        return datasets.DatasetDict(
            {part: datasets.Dataset(tables.read_table(target / f"{part}.parquet", memory_map=False)) for part in parts}
        )


def _imported(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RunError(f"{name.partition('.')[0]} is not installed: pip install 'dialoom[{extra}]'") from error


def _episodes(run: RunFile, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    offline, read = _offline(run, judging), []
    for number, episode in _numbered(run, judging, where):
        world = episode.outcome.environment
        own = {
            "number": number,
            **named(episode),
            "state": episode.state,
            "ended_by": episode.outcome.ended_by,
            "error": episode.error,
            "branch": episode.branch.name if episode.branch else None,
            "lines": len(episode.outcome.messages),
            OFFLINE_COLUMN: offline,
            "faults": None if episode.outcome.faults is None else count_dialogue_faults(episode.outcome.faults),
        }
        last = {} if world is None else {ENVIRONMENT: json.dumps(decode_snapshot(world), ensure_ascii=False)}
        read.append((own, episode.facets, episode.outcome.counts, {**mean_scores(episode), **last}))
    scored = {name for *_, scores in read for name in scores}
    facets = {name for _, each, *_ in read for name in each}
    for own, each, counts, scores in read:
        columns = _beside((*_ALWAYS["episodes"], *scored), "facet", each)
        yield {**own, **columns, **_beside((*_ALWAYS["episodes"], *facets), "count", counts), **scores}


def _lines(run: RunFile, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    for number, episode in _numbered(run, judging, where):
        for place, line in enumerate(episode.outcome.messages):
            yield {"number": number, **named(episode), "line": place, "role": line.role, "content": line.spoken}


def _judgements(run: RunFile, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    offline = _offline(run, judging)
    for number, episode in _numbered(run, judging, where):
        for judgement in episode.outcome.judgements:
            score = None if judgement.score is None else float(judgement.score)
            facets = _beside(_ALWAYS["judgements"], "facet", episode.facets)
            own = {**judgement.model_dump(), "score": score, OFFLINE_COLUMN: offline}
            yield {"number": number, **named(episode), **facets, **own}


def _faults(run: RunFile, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    for number, episode in _numbered(run, judging, where):
        facets = _beside(_ALWAYS["faults"], "facet", episode.facets)
        for fault in episode.outcome.faults or ():
            yield {"number": number, **named(episode), **facets, **fault.model_dump()}


def _calls(run: RunFile, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    numbers = None if where is None else {number for number, _ in _numbered(run, judging, where)}
    faults = _faults_by_call(run)
    for call in run.calls():
        if numbers is None or call["number"] in numbers:
            yield {**call, "faults": faults.get(call["call"])}


def _calibrated(run: RunFile, labels: Path | None, judging: str | None, where: str | None) -> Iterator[dict[str, Any]]:
    from dialoom.runs.agreement import calibrate_scores

    for each in calibrate_scores(run, labels, judging, where):
        alone = {"alone": each.labels_only.mean, "alone_low": each.labels_only.low, "alone_high": each.labels_only.high}
        own = {"mean": each.mean.mean, "low": each.mean.low, "high": each.mean.high, "n": each.mean.n}
        counts = {
            "effective": each.effective_labels,
            "more": each.additional_labels,
            OFFLINE_COLUMN: _offline(run, judging),
        }
        judge = each.judge.mean if isinstance(each.judge, Estimate) else each.judge
        yield {**each.group._asdict(), "labels": each.labels, "judge": judge, **own, **alone, **counts}


def _faults_by_call(run: RunFile) -> dict[int, str]:
    """Return the kinds of faults in each call's reply, by call; empty if the recipe is not trusted."""
    found: dict[int, str] = {}
    with suppress(TrustError):
        for position in run.find_faulty():
            joined = find_faulty_calls(run, position, run.calls_of(position), run.outcome(position))
            found |= {row: ", ".join(fault.kind for fault in faults) for row, faults in joined.faults.items()}
    return found


def _offline(run: RunFile, judging: str | None) -> str | None:
    """Return, as text, the roles (including judges) that an offline model played; `None` if there are none."""
    judges = run.judgement_set(judging)
    return offline_roles(run.config.role_bindings(judges.models if judges else None)) or None


def _beside(taken: Collection[str], kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe's values by column. If a name is taken, the kind is put in front of it, as in `facet.number`."""
    taken = {*taken, "trial", ENVIRONMENT}
    return {f"{kind}.{name}" if name in taken else name: value for name, value in values.items()}


def _numbered(run: RunFile, judging: str | None, where: str | None) -> Iterator[tuple[int, Any]]:
    for episode in select_episodes(run, judging, where):
        yield run.resolve(episode.id) + 1, episode


_ROWS = {"episodes": _episodes, "lines": _lines, "judgements": _judgements, "faults": _faults, "calls": _calls}
_ALWAYS = {
    "episodes": ("number", "id", "state", "ended_by", "error", "branch", "lines", "offline", "faults"),
    "lines": ("number", "id", "line", "role", "content"),
    "judgements": ("number", "id", "metric", "target", "turn", "score", "status", "explanation", "offline"),
    "faults": ("number", "id", "who", "kind", "message", "where", "words", "sureness"),
    "calls": ("number", "node", "step", "role", "model", "reply", "faults"),
    "calibrated": ("metric", "target", "by_turn", "labels", "judge", "mean", "low", "high", "n"),
}
