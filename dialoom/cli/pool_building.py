"""`dialoom personas build`: a run beside a pool's file; the pool is written from what the run comes to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialoom.api import CallSettings, aplay, aresume, resolve
from dialoom.graphs import Recipe
from dialoom.personas import PoolEntry, read_pool, write_pool
from dialoom.runs.config import RunConfig
from dialoom.runs.config_diff import told_otherwise
from dialoom.runs.errors import RunError
from dialoom.runs.recipes import load_recipe
from dialoom.runs.store import RunFile

from .exit_codes import EXIT_DONE, EXIT_SOME_FAILED
from .playing import carried_out
from .settings import merged
from .terminal import say
from .watcher import Watcher

_CONCURRENCY = 4
"""Calls at once: one scenario asks for one text after another, so this is never reached."""


def build_pool(
    name: str, given: dict[str, Any], calling: Mapping[str, Any], out: Path, prompts: Path | None, **common: Any
) -> int:
    """Carry out `dialoom personas build`; returns the exit code.

    Args:
        name: The recipe's.
        given: Its options.
        calling: How calls are made: budget, prices, rates and the like.
        out: The pool's file.
        prompts: A folder of overrides.
        common: `seed`, and lists of options that say who plays, and how they sample.
    """
    recipe = load_recipe(name)
    run = out.with_suffix(".run.db")
    if out == run:
        raise RunError(f"-o {out}: a pool is a JSONL file, such as pool.jsonl; its run is kept as {run.name} beside it")
    is_there = run.exists()
    if not is_there and out.exists():
        raise RunError(f"{out} exists, and no run of it ({run.name}) is beside it; give another file with -o")
    settings, log_format = merged(
        recipe, given, {**common, **calling, "prompts": prompts, "out": run, "concurrency": _CONCURRENCY}
    )
    path = settings.pop("path")
    watcher = Watcher(settings["control"], log_format=log_format)
    if is_there:
        new = resolve(name, **settings)
        _check_same(run, new.config, recipe, prompts)
        calls = {key: settings[key] for key in CallSettings.__annotations__ if key in settings}
        carried_out(lambda **watched: aresume(path, retry_failed=True, **{**calls, **watched}), watcher)
    else:
        carried_out(lambda **watched: aplay(name, path=path, **{**settings, **watched}), watcher)
    if (code := watcher.exit_code()) != EXIT_DONE:
        say(f"{out} is not written yet: the same 'dialoom personas build' goes on as well, and then writes it")
        return code
    return _written(run, out)


def _check_same(path: Path, config: RunConfig, recipe: Recipe, prompts: Path | None) -> None:
    """Go on only with a run that was told the same."""
    with RunFile(path) as run:
        differing = told_otherwise(run, config, recipe, prompts)
    if differing:
        raise RunError(
            f"{path} was made with another configuration ({'; '.join(differing)}); "
            "give the same one to go on with it, or another file with -o"
        )


def _written(run: Path, out: Path) -> int:
    """Write the pool from what its run came to."""
    with RunFile(run) as file:
        episode = file.episode(0)
        failed = file.status().failed
    if episode is None or failed:
        say(f"dialoom: no pool was written: {episode.error if episode else 'the run is not over'}", err=True)
        return EXIT_SOME_FAILED
    outcome = episode.outcome
    entries = [PoolEntry.model_validate(each) for each in outcome.details["entries"]]
    if not entries:
        raise RunError("no pool was written: it is empty, as the writer's every text was left out")
    if out.exists() and read_pool(out) != entries:
        raise RunError(f"{out} is no longer what its run made, so it is left alone; remove it to have it written again")
    write_pool(out, entries, (run,))
    rounds, too_near = outcome.counts["rounds"], outcome.counts["too_near"]
    why = "the target is reached" if outcome.ended_by == "target" else "further rounds kept next to nothing"
    say(f"wrote {len(entries):,} texts to {out} after {rounds:,} rounds: {why}; {too_near:,} were too near to others")
    return EXIT_DONE
