"""`run`, `resume` and `judge`: everything that makes calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import typer
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from dialoom.graphs import Recipe, RecipeOptions
from dialoom.roles.binding import bindings
from dialoom.runs import session
from dialoom.runs.config import DEFAULT_CONCURRENCY, DEFAULT_MODEL, RunConfig
from dialoom.runs.errors import EXIT_DONE, EXIT_SOME_FAILED, EXIT_STOPPED, RunError
from dialoom.runs.store import RunFile, RunStore
from dialoom.runs.store.connections import Synchronous

from .progress import Watcher


class _Common(BaseModel):
    """The options of every run, as flags and `--config` files give them."""

    model_config = ConfigDict(extra="forbid")
    out: Path | None = None
    model: list[str] | str | dict[str, str] | None = None
    temperature: list[str] | float | str | dict[str, float] | None = None
    seed: int | None = None
    concurrency: int | None = None
    prompts: Path | None = None
    synchronous: Synchronous = "normal"


def start_run(spec: str, recipe: Recipe, given: dict[str, Any], config: Path | None, **common: Any) -> int:
    """Carry out `dialoom run`; returns the exit code."""
    file_common, file_options = _config_file(config, recipe)
    chosen = _Common.model_validate({**file_common, **{key: value for key, value in common.items() if value}})
    if common.get("seed") is not None:
        chosen.seed = common["seed"]
    if chosen.out is None:
        raise RunError("-o RUN is missing: give the file in which the run is to be kept, such as -o run.db")
    options = _options(recipe, {**file_options, **given})
    models = bindings(
        recipe.roles_used(options),
        _assignments(file_common.get("model")) + _assignments(common.get("model")),
        _assignments(file_common.get("temperature")) + _assignments(common.get("temperature")),
        DEFAULT_MODEL,
    )
    if offline := [role for role, binding in models.items() if binding.model == DEFAULT_MODEL]:
        typer.echo(
            f"{', '.join(offline)}: played by {DEFAULT_MODEL}, a scripted stand-in; --model [ROLE=]MODEL names another"
        )
    run_config = RunConfig(recipe=spec, options=options.model_dump(mode="json"), models=models, seed=chosen.seed or 0)
    store = session.start(chosen.out, run_config, chosen.prompts, typer.echo, chosen.synchronous)
    typer.echo(f"planned {store.status().total:,} scenarios in {chosen.out}")
    concurrency = chosen.concurrency or DEFAULT_CONCURRENCY
    return _played(store, lambda watcher: session.play(store, concurrency, watcher, resuming=False))


def resume_run(path: Path, concurrency: int, retry_failed: bool, synchronous: Synchronous) -> int:
    """Carry out `dialoom resume`; returns the exit code."""
    store = session.reopen(path, typer.echo, synchronous)
    if retry_failed:
        typer.echo(f"{store.retry():,} failed scenarios are tried again")
    return _played(store, lambda watcher: session.play(store, concurrency, watcher, resuming=True))


def judge_run(
    path: Path, name: str | None, models: list[str], temperatures: list[str], concurrency: int, retry_failed: bool
) -> int:
    """Carry out `dialoom judge`; returns the exit code."""
    store = RunStore(path)
    try:
        judging, bound = session.open_judging(store, name, models, temperatures)
        if retry_failed:
            typer.echo(f"{store.retry(judging.name):,} failed judgings are tried again")
        todo = store.count_to_judge(judging.name)
    except BaseException:
        store.close()
        raise
    again = f"dialoom judge {path} --name {judging.name!r} " + " ".join(f"--model {model}" for model in models)
    watcher = Watcher(store, todo, f"judging as {judging.name!r}", again)
    return _watched(store, watcher, lambda: session.judge(store, judging, bound, concurrency, watcher))


def _played(store: RunStore, work: Callable[[Watcher], Awaitable[bool]]) -> int:
    watcher = Watcher(store, store.status().pending, "playing", f"dialoom resume {store.path}")
    code = _watched(store, watcher, lambda: work(watcher))
    if code == EXIT_DONE:
        with RunFile(store.path) as run:
            return EXIT_SOME_FAILED if run.status().failed else EXIT_DONE
    return code


def _watched(store: RunStore, watcher: Watcher, work: Callable[[], Awaitable[bool]]) -> int:
    """Do the work under a progress display, close the file, and say how it went."""

    async def run() -> bool:
        return await work()

    try:
        with watcher:
            complete = asyncio.run(run())
        watcher.summary(complete)
    finally:
        store.close()
    if not complete:
        return EXIT_STOPPED
    return EXIT_SOME_FAILED if watcher.errors else EXIT_DONE


def _config_file(path: Path | None, recipe: Recipe) -> tuple[dict[str, Any], dict[str, Any]]:
    """A YAML file's options: those of every run, and the recipe's by the names of their fields."""
    if path is None:
        return {}, {}
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RunError(f"--config {path} cannot be read as YAML: {error}") from error
    if not isinstance(values, dict):
        raise RunError(f"--config {path} holds {type(values).__name__}; options are 'name: value' lines")
    names = {field.alias or name: name for name, field in recipe.options_type.model_fields.items()}
    common: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for key, value in values.items():
        plain = str(key).replace("-", "_")
        if plain in _Common.model_fields:
            common[plain] = value
        elif plain in names or plain in names.values():
            own[names.get(plain, plain)] = value
        else:
            known = ", ".join(sorted({*_Common.model_fields, *names}))
            raise RunError(f"--config {path}: unknown option {key!r}; there are {known}")
    try:
        _Common.model_validate(common)
    except ValidationError as error:
        raise RunError(f"--config {path}: {_first(error)}") from error
    return common, own


def _options(recipe: Recipe, values: dict[str, Any]) -> RecipeOptions:
    fields = recipe.options_type.model_fields
    for name, value in values.items():
        if name in fields and isinstance(value, str) and str(fields[name].annotation).startswith("tuple"):
            values[name] = [value]
    try:
        return recipe.options_type.model_validate(values)
    except ValidationError as error:
        raise RunError(_first(error)) from error


def _first(error: ValidationError) -> str:
    """The first complaint, in terms of flags."""
    first = error.errors()[0]
    flag = str(first["loc"][0]).replace("_", "-") if first["loc"] else "options"
    return f"--{flag} {first['input']!r}: {first['msg']}"


def _assignments(value: Any) -> list[str]:
    """`ROLE=VALUE` texts from what a flag or a YAML file gives."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [f"{role}={each}" for role, each in value.items()]
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]
