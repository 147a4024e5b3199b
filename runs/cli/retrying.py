"""`dialoom retry`: failed scenarios go on, unparsed judgements are made again, chosen scenarios start anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from dialoom.roles import ModelBinding
from dialoom.runs import session
from dialoom.runs.errors import EXIT_DONE, RunError
from dialoom.runs.limits import RunLimits
from dialoom.runs.session import Conduct
from dialoom.runs.store import JudgementSet, RunFile, RunStore

from .conduct import conduct_of, synchronous_of
from .play import keep_limits, played, watched
from .progress import Watcher


def retry_run(
    path: Path,
    failed: bool,
    unparsed: bool,
    scenarios: Sequence[str],
    judging: str | None,
    concurrency: int,
    given: Mapping[str, Any],
) -> int:
    """Carry out `dialoom retry`; returns the exit code."""
    if judging is not None and not unparsed:
        raise RunError("--judging names the set whose --unparsed judgements are made again; give that too")
    code = EXIT_DONE
    if unparsed:
        code = _rejudged(path, judging, concurrency, given)
    if code == EXIT_DONE and (failed or scenarios or not unparsed):
        code = _replayed(path, failed or not scenarios, scenarios, concurrency, given)
    return code


def _replayed(path: Path, failed: bool, scenarios: Sequence[str], concurrency: int, given: Mapping[str, Any]) -> int:
    store = session.reopen(path, typer.echo, synchronous_of(given))
    try:
        positions = [store.resolve(name) for name in scenarios]
        conduct = _conduct(store, store.config.model_names.values(), given)
        if failed:
            typer.echo(f"{store.retries.failed():,} failed scenarios are tried again")
        for position in dict.fromkeys(positions):
            store.retries.scenario(position)
        if positions:
            typer.echo(f"scenarios played anew: {len(set(positions)):,}; what was judged of them is dropped")
    except BaseException:
        store.close()
        raise
    return played(store, concurrency, conduct, resuming=True, log_format=given.get("log_format"))


def _rejudged(path: Path, name: str | None, concurrency: int, given: Mapping[str, Any]) -> int:
    store = RunStore(path, synchronous_of(given))
    try:
        judging = store.judgement_set(name)
        if judging is None:
            raise RunError(f"{path} has no judgements; 'dialoom judge {path} --model MODEL' makes some")
        models = _judges(store, judging)
        conduct = _conduct(store, [binding.model for binding in models.values()], given)
        count = store.retries.unparsed(judging.name)
        typer.echo(f"scenarios with unparsed judgements in {judging.name!r}: {count:,}; these are made again")
    except BaseException:
        store.close()
        raise
    again = f"dialoom retry {path} --unparsed --judging {judging.name!r}"
    watcher = Watcher(store, count, "judging again", again, again, given.get("log_format") or "text")
    code = watched(
        store, watcher, lambda: session.judge(store, judging, models, concurrency, watcher, conduct, again=True)
    )
    if code == EXIT_DONE and count:
        _say_what_is_left(path, judging.name, again)
    return code


def _judges(store: RunStore, judging: JudgementSet) -> dict[str, ModelBinding]:
    """The models of a set, for the recipe's judging graph."""
    recipe = store.recipe
    if recipe.judging() is None:
        raise RunError(
            f"recipe {recipe.name!r} has no judging of its own, so its judgements cannot be made again alone; "
            f"play a scenario anew with: dialoom retry {store.path} --scenario ID"
        )
    return {role: judging.models[role] for role in recipe.judging_roles()}


def _conduct(store: RunStore, models: Any, given: Mapping[str, Any]) -> Conduct:
    conduct = conduct_of(RunLimits.of(store), given)
    conduct.limits.check_prices(models)
    keep_limits(store, conduct)
    return conduct


def _say_what_is_left(path: Path, name: str, again: str) -> None:
    with RunFile(path) as run:
        left = run.unparsed(name)
    if left:
        typer.echo(
            f"{left:,} judgements are unparsed still: their replies could not be read again, or the recipe judges "
            f"these things only while it plays (dialoom retry {path} --scenario ID). Once more: {again}"
        )
