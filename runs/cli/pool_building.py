"""`dialoom personas build`: a run beside a pool's file; the pool is written from what the run comes to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from dialoom.graphs import Recipe
from dialoom.personas import PoolEntry, read_pool, write_pool
from dialoom.prompts import PromptLibrary
from dialoom.roles.binding import bindings
from dialoom.runs import session
from dialoom.runs.config import DEFAULT_MODEL, RunConfig
from dialoom.runs.errors import EXIT_DONE, EXIT_SOME_FAILED, RunError
from dialoom.runs.limits import RunLimits
from dialoom.runs.recipes import load_recipe
from dialoom.runs.store import RunFile, RunStore
from dialoom.runs.store.connections import Synchronous

from .conduct import conduct_of, synchronous_of
from .play import keep_limits, options_of, played

_CONCURRENCY = 4
"""Calls at once: one scenario asks for one text after another, so this is never reached."""


def build_pool(
    name: str,
    given: dict[str, Any],
    calling: Mapping[str, Any],
    out: Path,
    prompts: Path | None,
    **common: Any,
) -> int:
    """Carry out `dialoom personas build`; returns the exit code.

    Args:
        name: The recipe's.
        given: Its options.
        calling: How calls are made: budget, prices, rates and the like.
        out: The pool's file.
        prompts: A folder of overrides.
        common: `seed`, and lists of `model`, `temperature` and `api_base` options.
    """
    recipe = load_recipe(name)
    config = _configured(name, recipe, given, **common)
    run = out.with_suffix(".run.db")
    if out == run:
        raise RunError(f"-o {out}: a pool is a JSONL file, such as pool.jsonl; its run is kept as {run.name} beside it")
    again = run.exists()
    if not again and out.exists():
        raise RunError(f"{out} exists, and no run of it ({run.name}) is beside it; give another file with -o")
    # What is wrong with these is to be said before anything is made.
    conduct_of(RunLimits(), calling).limits.check_prices(config.model_names.values())
    if config.offline_roles:
        typer.echo(
            f"{', '.join(config.offline_roles)}: played by an offline model, a scripted stand-in; "
            "--model MODEL names another"
        )
    synchronous = synchronous_of(calling)
    if again:
        store = _reopened(run, config, recipe, prompts, synchronous)
    else:
        store = session.start(run, config, prompts, typer.echo, synchronous)
    code = _played(store, calling, resuming=again)
    if code != EXIT_DONE:
        typer.echo(f"{out} is not written yet: the same 'dialoom personas build' goes on as well, and then writes it")
        return code
    return _written(run, out)


def _configured(
    name: str,
    recipe: Recipe,
    given: dict[str, Any],
    seed: int,
    model: list[str] | None,
    temperature: list[str] | None,
    api_base: list[str] | None,
) -> RunConfig:
    options = options_of(recipe, given)
    named = [f"{role}={each}" for role, each in recipe.models_named(options).items()]
    models = bindings(
        recipe.roles_used(options), [*named, *(model or [])], temperature or [], DEFAULT_MODEL, api_base or []
    )
    return RunConfig(recipe=name, options=options.model_dump(mode="json"), models=models, seed=seed)


def _played(store: RunStore, calling: Mapping[str, Any], resuming: bool) -> int:
    try:
        conduct = conduct_of(RunLimits.of(store), calling)
        keep_limits(store, conduct)
    except BaseException:
        store.close()
        raise
    return played(store, _CONCURRENCY, conduct, resuming, calling.get("log_format"))


def _reopened(run: Path, config: RunConfig, recipe: Recipe, prompts: Path | None, synchronous: Synchronous) -> RunStore:
    """The run beside the pool, if it is the same one."""
    store = session.reopen(run, typer.echo, synchronous)
    try:
        differing = _differences(store, config, recipe, prompts)
        if differing:
            raise RunError(
                f"{run} was made with another configuration ({'; '.join(differing)}); "
                "give the same one to go on with it, or another file with -o"
            )
        store.retries.failed()
    except BaseException:
        store.close()
        raise
    return store


def _differences(store: RunStore, config: RunConfig, recipe: Recipe, prompts: Path | None) -> list[str]:
    """What a run was told otherwise than it is now, as `key: then, now`."""
    then, now = (_flat(each) for each in (store.config, config))
    keys = [key for key in now | then if then.get(key) != now.get(key)]
    found = [f"{key}: {then.get(key)!r} then, {now.get(key)!r} now" for key in keys]
    if prompts is not None:
        theirs, ours = store.prompts, PromptLibrary.load(recipe.prompts, prompts, recipe.templates)
        found += [f"prompt {id_}: another text" for id_ in ours if theirs[id_].hash != ours[id_].hash]
    return found


def _flat(config: RunConfig) -> dict[str, Any]:
    plain = config.model_dump(mode="json")
    roles = {f"{role} {key}": value for role, each in plain["models"].items() for key, value in each.items()}
    return {"recipe": config.recipe, **plain["options"], **roles, "seed": config.seed}


def _written(run: Path, out: Path) -> int:
    """Write the pool from what its run came to."""
    with RunFile(run) as file:
        episode = file.episode(0)
        failed = file.status().failed
    if episode is None or failed:
        typer.echo(f"dialoom: no pool was written: {episode.error if episode else 'the run is not over'}", err=True)
        return EXIT_SOME_FAILED
    outcome = episode.outcome
    entries = [PoolEntry.model_validate(each) for each in outcome.details["entries"]]
    if not entries:
        raise RunError("no pool was written: it is empty, as the writer's every text was left out")
    if out.exists() and read_pool(out) != entries:
        raise RunError(f"{out} is no longer what its run made, so it is left alone; remove it to have it written again")
    write_pool(out, entries)
    rounds, too_near = outcome.counts["rounds"], outcome.counts["too_near"]
    why = "the target is reached" if outcome.ended_by == "target" else "further rounds kept next to nothing"
    typer.echo(
        f"wrote {len(entries):,} texts to {out} after {rounds:,} rounds: {why}; {too_near:,} were too near to others"
    )
    return EXIT_DONE
