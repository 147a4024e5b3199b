"""`run`, `resume` and `judge`: everything that makes calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import typer
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from dialoom.graphs import Recipe, RecipeOptions
from dialoom.roles.binding import bindings
from dialoom.runs import session
from dialoom.runs.config import DEFAULT_CONCURRENCY, DEFAULT_MODEL, RunConfig
from dialoom.runs.errors import EXIT_DONE, EXIT_SOME_FAILED, EXIT_STOPPED, Fault, RunError
from dialoom.runs.estimate import estimate
from dialoom.runs.limits import RunLimits
from dialoom.runs.session import Conduct
from dialoom.runs.store import RunFile, RunStore
from dialoom.runs.store.connections import Synchronous

from .conduct import KEPT, REPLAY_ONLY, SITTING, conduct_of, synchronous_of
from .dry_run import print_estimate
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
    max_cost: float | str | None = None
    max_tokens: int | str | None = None
    max_calls: int | str | None = None
    price: list[str] | str | dict[str, str | list[float]] | None = None
    rpm: list[str] | int | str | dict[str, int] | None = None
    tpm: list[str] | int | str | dict[str, int] | None = None
    api_base: list[str] | str | dict[str, str] | None = None
    env_file: Path | None = None
    fail_on_error: int | str | None = None
    cache: Path | None = None
    otel: bool = False
    log_format: Literal["text", "json"] = "text"


def start_run(spec: str, recipe: Recipe, given: dict[str, Any], config: Path | None, **common: Any) -> int:
    """Carry out `dialoom run`; returns the exit code."""
    begun = begin_run(spec, recipe, given, config, common, typer.echo)
    if begun is None:
        return EXIT_DONE
    store, conduct, chosen = begun
    concurrency = chosen.concurrency or DEFAULT_CONCURRENCY
    return played(store, concurrency, conduct, resuming=False, log_format=chosen.log_format)


def begin_run(
    spec: str,
    recipe: Recipe,
    given: dict[str, Any],
    config: Path | None,
    common: Mapping[str, Any],
    tell: Callable[[str], None],
) -> tuple[RunStore, Conduct, _Common] | None:
    """Plan a new run as its flags say; `None` if it was only to be estimated.

    Args:
        spec: The recipe's name or file.
        recipe: It.
        given: Its own options.
        config: A file of options.
        common: The options of every run.
        tell: Takes what there is to say on the way.
    """
    file_common, file_options = _config_file(config, recipe)
    chosen = _Common.model_validate(
        {**file_common, **{key: value for key, value in common.items() if value and key in _Common.model_fields}}
    )
    if common.get("seed") is not None:
        chosen.seed = common["seed"]
    if chosen.out is None and not common.get("dry_run"):
        raise RunError("-o RUN is missing: give the file in which the run is to be kept, such as -o run.db")
    options = options_of(recipe, {**file_options, **given})
    models = bindings(
        recipe.roles_used(options),
        [
            *_assignments(dict(recipe.models_named(options))),
            *_assignments(file_common.get("model")),
            *_assignments(common.get("model")),
        ],
        _assignments(file_common.get("temperature")) + _assignments(common.get("temperature")),
        DEFAULT_MODEL,
        _assignments(file_common.get("api_base")) + _assignments(common.get("api_base")),
    )
    conduct = conduct_of(
        RunLimits().changed(file_common),
        {**chosen.model_dump(include={*SITTING}), **{name: common.get(name) for name in (*KEPT, *REPLAY_ONLY)}},
    )
    conduct.limits.check_prices(binding.model for binding in models.values())
    if offline := [role for role, binding in models.items() if binding.model == DEFAULT_MODEL]:
        tell(
            f"{', '.join(offline)}: played by {DEFAULT_MODEL}, a scripted stand-in; --model [ROLE=]MODEL names another"
        )
    run_config = RunConfig(recipe=spec, options=options.model_dump(mode="json"), models=models, seed=chosen.seed or 0)
    if chosen.out is None or common.get("dry_run"):
        print_estimate(estimate(run_config, chosen.prompts, conduct.limits, tell), conduct.limits)
        return None
    store = session.start(chosen.out, run_config, chosen.prompts, tell, chosen.synchronous)
    keep_limits(store, conduct)
    tell(f"planned {store.status().total:,} scenarios in {chosen.out}")
    return store, conduct, chosen


def resume_run(path: Path, concurrency: int, retry_failed: bool, given: Mapping[str, Any]) -> int:
    """Carry out `dialoom resume`; returns the exit code."""
    store = session.reopen(path, typer.echo, synchronous_of(given))
    try:
        conduct = conduct_of(RunLimits.of(store), given)
        conduct.limits.check_prices(store.config.model_names.values())
        keep_limits(store, conduct)
        if retry_failed:
            typer.echo(f"{store.retries.failed():,} failed scenarios are tried again")
    except BaseException:
        store.close()
        raise
    return played(store, concurrency, conduct, resuming=True, log_format=given.get("log_format"))


def keep_limits(store: RunStore, conduct: Conduct) -> None:
    """Keep budget, prices and rates in the run's file, if they are other ones than before."""
    if conduct.limits != RunLimits.of(store):
        store.keep_limits(conduct.limits.model_dump_json())


def judge_run(
    path: Path,
    name: str | None,
    models: list[str],
    temperatures: list[str],
    concurrency: int,
    retry_failed: bool,
    given: Mapping[str, Any],
) -> int:
    """Carry out `dialoom judge`; returns the exit code."""
    store = RunStore(path, synchronous_of(given))
    try:
        conduct = conduct_of(RunLimits.of(store), given)
        judging, bound = session.open_judging(store, name, models, temperatures)
        conduct.limits.check_prices(judging.model_names.values())
        keep_limits(store, conduct)
        if retry_failed:
            typer.echo(f"{store.retries.failed(judging.name):,} failed judgings are tried again")
        todo = store.queue.count_to_judge(judging.name)
    except BaseException:
        store.close()
        raise
    again = f"dialoom judge {path} --name {judging.name!r} " + " ".join(f"--model {model}" for model in models)
    watcher = Watcher(store, todo, f"judging as {judging.name!r}", again, log_format=given.get("log_format") or "text")
    return watched(store, watcher, lambda: session.judge(store, judging, bound, concurrency, watcher, conduct))


def played(store: RunStore, concurrency: int, conduct: Conduct, resuming: bool, log_format: str | None = None) -> int:
    """Play what is pending, close the file, and say how it went; returns the exit code."""
    watcher = Watcher(
        store,
        store.status().pending,
        "playing",
        f"dialoom resume {store.path}",
        log_format=log_format or "text",
    )
    code = watched(store, watcher, lambda: session.play(store, concurrency, watcher, resuming, conduct))
    if code == EXIT_DONE:
        with RunFile(store.path) as run:
            return EXIT_SOME_FAILED if run.status().failed else EXIT_DONE
    return code


def watched(store: RunStore, watcher: Watcher, work: Callable[[], Awaitable[bool]]) -> int:
    """Do the work under a progress display, close the file, and say how it went; returns the exit code."""

    async def run() -> bool:
        showing = asyncio.create_task(watcher.watch())
        try:
            return await work()
        finally:
            showing.cancel()

    try:
        with watcher:
            complete = asyncio.run(run())
        watcher.summary(complete)
    finally:
        store.close()
    if watcher.stopped is not None:
        fault, _ = watcher.stopped
        return EXIT_STOPPED if fault is Fault.BUDGET else EXIT_SOME_FAILED
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


def options_of(recipe: Recipe, values: dict[str, Any]) -> RecipeOptions:
    """A recipe's options from what flags give.

    Raises:
        RunError: Naming the flag and the value that is wrong.
    """
    fields = recipe.options_type.model_fields
    for name, value in values.items():
        if name in fields and isinstance(value, str) and str(fields[name].annotation).startswith("tuple"):
            values[name] = [value]
    try:
        return recipe.options_type.model_validate(values)
    except ValidationError as error:
        raise RunError(_first(error, recipe.options_type)) from error


def _first(error: ValidationError, options: type[BaseModel] = _Common) -> str:
    """The first complaint, in terms of flags."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else "options"
    field = options.model_fields.get(name)
    flag = ((field and field.alias) or name).replace("_", "-")
    return f"--{flag} {first['input']!r}: {first['msg']}"


def _assignments(value: Any) -> list[str]:
    """`ROLE=VALUE` texts from what a flag or a YAML file gives."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [f"{role}={each}" for role, each in value.items()]
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]
