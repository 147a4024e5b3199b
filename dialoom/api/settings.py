"""The settings of the API's operations, declared once."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, cast

from dialoom.graphs import Recipe, RecipeOptions
from dialoom.roles.binding import ModelLike, PlayerSettings
from dialoom.roles.gateway.budget import Budget
from dialoom.roles.gateway.prices import Price
from dialoom.runs.config import DEFAULT_CONCURRENCY, DEFAULT_PATIENCE
from dialoom.runs.control import Control
from dialoom.runs.errors import RunError
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.limits import BudgetLike, Context, FailOnError, Rates, RunLimits, Timeouts
from dialoom.runs.progress import Event
from dialoom.runs.store.connections import Synchronous

PathLike: TypeAlias = "str | os.PathLike[str]"
RecipeLike: TypeAlias = "str | Recipe | type[Recipe]"
"""A registered name, `path/to/file.py:NAME`, a recipe, or its class."""

MOST_AT_ONCE = 10_000
"""The limit of concurrent scenarios: each is a task with its state, and no provider accepts as many calls."""

Options: TypeAlias = "Mapping[str, Any] | RecipeOptions"


class CallSettings(TypedDict, total=False):
    """Settings of how calls are made. None of them changes the content of a dialogue.

    Budget, prices, rates, time-outs and context windows are stored in the run's file for later resumes.

    Attributes:
        concurrency: Scenarios under way at once, and calls in flight for each model (16).
        budget: The most that the whole run may take, a `Budget` or its bounds by name; bounds that it does not name
            stay as they are.
        prices: Prices of models that LiteLLM has no price of.
        rpm: Requests per minute, for every model or by model.
        tpm: Tokens per minute, likewise.
        timeout: Seconds that one try of a call may take, for every role or by role (600 for models); what is not
            answered by then is tried again. 0 removes the bound.
        context: Tokens that models read, request and reply together, by model; a request that cannot fit is not sent,
            and its scenario fails by the fault `context`. By default LiteLLM's table says it, where it knows the model.
        fail_on_error: Stop after so many failed scenarios, or `"5%"` of 20 or more.
        patience: Seconds to wait for an unavailable provider before the work stops, resumable (600); 0 to let
            scenarios fail.
        cache: A file through which replies are shared with other runs of the same seed.
        otel: Send a span of each call to OpenTelemetry.
        replay_only: Make no call: every reply must be recorded.
        synchronous: What a commit survives: `normal` a crash, `full` a power cut too.
        trust: Use code and addresses that a run's file names though they were not given on this machine by this user.
        on_event: Called with each event, in the thread that plays.
        control: Stops the work from another thread.
        workers: Play on so many processes of this machine, or of the cluster at `ray` (by default one for each of
            its processors). `concurrency`, budget and rates hold for all of them together. Needs `dialoom[ray]`.
        ray: The address of a Ray cluster to play on, such as `auto` or `ray-head:6379`.
    """

    concurrency: int
    budget: BudgetLike
    prices: Mapping[str, Price] | None
    rpm: Rates
    tpm: Rates
    timeout: Timeouts
    context: Context
    fail_on_error: int | str | None
    patience: float
    cache: PathLike | None
    otel: bool
    replay_only: bool
    synchronous: Synchronous
    trust: bool
    on_event: Callable[[Event], None] | None
    control: Control | None
    workers: int | None
    ray: str | None


class JudgeSettings(PlayerSettings, CallSettings, total=False):
    """Settings of judges or reviewers, and of how calls are made; see `PlayerSettings` and `CallSettings`."""


class PlaySettings(PlayerSettings, CallSettings, total=False):
    """Settings of a new run, besides its recipe and its file; see `play`."""

    model: ModelLike | None
    options: Options | None
    seed: int
    sample: int | None
    on_user_fault: str
    prompts: PathLike | None


def players_of(settings: JudgeSettings | PlaySettings) -> PlayerSettings:
    """Return the settings that are about players."""
    players = {name: value for name, value in settings.items() if name in PlayerSettings.__annotations__}
    return cast(PlayerSettings, players)


def calls_of(settings: JudgeSettings | PlaySettings) -> CallSettings:
    """Return the other settings, including unknown ones."""
    others = {name: value for name, value in settings.items() if name not in PlayerSettings.__annotations__}
    return cast(CallSettings, others)


def call_policy(
    settings: CallSettings,
    kept: RunLimits,
    objects: Mapping[str, Any],
    roles: Collection[str],
    options: Collection[str] = (),
) -> CallPolicy:
    """Return how calls are made: what the run's file keeps, overridden by what is given now.

    Args:
        settings: What is given now.
        kept: What the run's file keeps.
        objects: Functions and graphs that play.
        roles: The recipe's roles.
        options: Names of the recipe's own options, for a hint if one is given in the wrong place.

    Raises:
        RunError, BindingError, CacheError: Naming the setting that is wrong or unknown.
    """
    for name in sorted(settings.keys() - CallSettings.__annotations__.keys()):
        raise RunError(f"{name}: there is no such argument; {_meant(name, options)}", setting=name)
    concurrency = settings.get("concurrency", DEFAULT_CONCURRENCY)
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or not (1 <= concurrency <= MOST_AT_ONCE):
        raise RunError(
            f"concurrency {concurrency!r} is no whole number from 1 to {MOST_AT_ONCE:,}", setting="concurrency"
        )
    cache = settings.get("cache")
    if cache is not None:
        from dialoom.roles.gateway.cache import check_cache

        check_cache(Path(cache))
    if settings.get("otel"):
        from dialoom.roles.gateway.tracing import check_tracing

        check_tracing()
    return CallPolicy(
        limits=kept.changed(
            budget=settings.get("budget"),
            prices=settings.get("prices"),
            rpm=settings.get("rpm"),
            tpm=settings.get("tpm"),
            timeout=settings.get("timeout"),
            context=settings.get("context"),
            roles=roles,
        ),
        concurrency=concurrency,
        replay_only=settings.get("replay_only", False),
        fail_on_error=FailOnError.of(settings.get("fail_on_error")),
        patience=_patience(settings.get("patience", DEFAULT_PATIENCE)),
        cache=None if cache is None else Path(cache),
        otel=settings.get("otel", False),
        objects=objects,
        workers=_workers(settings.get("workers")),
        ray=settings.get("ray"),
    )


def _workers(count: int | None) -> int | None:
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_AT_ONCE):
        raise RunError(f"workers {count!r} is no whole number from 1 to {MOST_AT_ONCE:,}", setting="workers")
    return count


def _patience(seconds: float) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise RunError(f"patience {seconds!r} is no number of seconds from 0", setting="patience")
    return float(seconds)


def _meant(name: str, options: Collection[str]) -> str:
    """Return a hint for an unknown argument: where it belongs, or the known argument that resembles it."""
    if name in Budget.model_fields:
        return f"a bound is part of the budget: budget=dialoom.Budget({name}=...)"
    if name in options:
        return f"the recipe's own options go together: options={{{name!r}: ...}}"
    known = ["path", "recipe", *PlaySettings.__annotations__]
    if like := get_close_matches(name, known, 1):
        return f"did you mean {like[0]}?"
    return f"there are {', '.join(known)}"
