"""The settings of the API's operations, and the one place where they are merged with defaults, options and bindings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias, Unpack

from pydantic import AfterValidator, Field

from dialoom.graphs import Recipe, RecipeOptions, WithPrompts, WithRoles
from dialoom.graphs.outcome import USER
from dialoom.graphs.simulation import Simulation
from dialoom.graphs.tool_use import list_mcp_servers
from dialoom.roles.binding import PLACEHOLDER, Bindings, bind
from dialoom.roles.role import select_offline_models
from dialoom.runs.configuration.config import DEFAULT_MODEL, RunConfig
from dialoom.runs.configuration.recipes import find_recipe, option_names, parse_options
from dialoom.runs.configuration.trust import cast_references, compute_code_hashes, recipe_references
from dialoom.runs.control import Control, Event
from dialoom.runs.errors import RunError
from dialoom.runs.gateway_setup import CallPolicy, RunLimits, check_model_access, check_workers
from dialoom.settings import OwnPlayer, PlayerSettings, ProcessSettings, RunSettings, checked, described, part

from .judges import check_several, further_judges, further_users, seated, user_models

RecipeLike: TypeAlias = "str | Recipe | type[Recipe]"
"""A registered name, `path/to/file.py:NAME`, a recipe, or its class."""


def _synchronous(listener: Callable[[Event], None] | None) -> Callable[[Event], None] | None:
    """Return a listener for events. Events would be lost if it were async, because it is not awaited."""
    if inspect.iscoroutinefunction(listener):
        raise ValueError("a function that is not async; for async code there is dialoom.stream")
    return listener


class CallSettings(ProcessSettings, total=False):
    """Settings of how calls are made. None of them changes the content of a dialogue.

    Budget, prices, rates, time-outs and context windows are stored in the run's file, and apply when it is resumed.

    Example:
        >>> calls = dialoom.CallSettings(concurrency=4, budget=dialoom.Budget(max_cost=2))
        >>> run = dialoom.resume("run.db", **calls)
    """

    on_event: Annotated[
        Callable[[Event], None] | None,
        AfterValidator(_synchronous),
        Field(description="A function called with each event in the thread that plays."),
    ]
    control: Annotated[Control | None, Field(description="An object through which another thread can stop the work.")]


class JudgeSettings(PlayerSettings, CallSettings, total=False):
    """Settings of judges or reviewers, and of how calls are made."""


class PlaySettings(RunSettings, CallSettings, total=False):
    """Settings of a new run, besides its recipe and its file.

    Example:
        >>> settings = dialoom.PlaySettings(options={"limit": 1}, seed=7, concurrency=4)
        >>> run = dialoom.play("personalens", path="seeded.db", **settings)
    """


for _kind in (CallSettings, JudgeSettings, PlaySettings):
    _kind.__doc__ = described(_kind)


def call_policy(
    settings: CallSettings, stored: RunLimits, objects: Mapping[str, OwnPlayer], roles: Collection[str]
) -> CallPolicy:
    """Return the call policy: settings given now, completed by those stored in the run's file.

    Args:
        settings: The settings given now.
        stored: The limits stored in the run's file.
        objects: Functions and graphs that play roles, by name.
        roles: The recipe's roles.

    Raises:
        SettingError, RunError, CacheError: If a setting is wrong or unknown; the message names it.
    """
    given = checked(CallSettings, settings)
    policy = CallPolicy(stored.with_settings(given, roles), part(ProcessSettings, given), objects)
    if policy.cache is not None:
        from dialoom.roles.gateway.cache import check_cache

        check_cache(policy.cache)
    if given["otel"]:
        from dialoom.roles.gateway.tracing import check_tracing

        check_tracing()
    if not policy.is_alone:
        from dialoom.runs.workers.cluster import check_ray

        check_ray()
    return policy


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run before it is written, with all settings resolved and checked.

    Attributes:
        recipe: The recipe.
        config: The configuration, which determines what the run does.
        bindings: The players, including those given as objects.
        policy: How calls are made.
    """

    recipe: Recipe
    config: RunConfig
    bindings: Bindings
    policy: CallPolicy


def resolve(recipe: RecipeLike, is_played: bool, **settings: Unpack[PlaySettings]) -> NewRun:
    """Merge defaults, options and bindings of a new run; see `play` for the other arguments.

    Args:
        recipe: As for `play`.
        is_played: Whether the run is played immediately, so that the providers' keys are required.
        **settings: As for `play`.

    Raises:
        SettingError, RunError, RecipeError, BindingError, CacheError: If a setting is wrong; the message names it.
    """
    spec, found = find_recipe(recipe)
    for name in sorted(settings.keys() & option_names(found) - PlaySettings.__annotations__.keys()):
        raise RunError(f"{name} is an option of the recipe; give it as options={{{name!r}: ...}}", setting=name)
    given = checked(PlaySettings, settings)
    chosen, model = parse_options(found, given["options"]), given["model"]
    check_several(found, given["models"])
    players = part(PlayerSettings, given)
    unplayed = {} if model is not None else _unplayed(found, chosen)
    roles, bound = WithRoles.of(found), []
    named_models, others = user_models(given["models"])
    seats = [by_role for _, by_role in seated(None, named_models)]
    for by_role in [*seats, *({**seats[0], USER: user} for user in others)]:
        players["models"] = {**unplayed, **roles.models_named(chosen), **by_role}
        usual = DEFAULT_MODEL if model is None else model
        bound.append(bind(roles.roles_used(chosen), usual, roles.reply_limits, **players))
    bindings = bound[0]
    judges = further_judges(found, bindings, bound[1 : len(seats)])
    users = further_users(bindings, bound[len(seats) :]) if others else ()
    casts = [bindings.by_role, *judges, *({USER: user} for user in users)]
    named = [each for by_role in casts for each in cast_references(by_role)]
    config = RunConfig(
        recipe=spec,
        options=chosen.model_dump(mode="json"),
        models=dict(bindings.by_role),
        users=users,
        panel=judges,
        seed=given["seed"],
        sample=given["sample"],
        trials=given["trials"],
        on_user_fault=given["on_user_fault"],
        code=compute_code_hashes([*recipe_references(spec, recipe=found), *named]),
        prompts=given["prompts"],
        study=found.study.to_dict() if isinstance(found, Simulation) else None,
    )
    policy = call_policy(part(CallSettings, given), RunLimits(), bindings.objects, found.roles)
    if is_played:  # checked before the prices, which need the slow import of LiteLLM
        check_model_access(config.casts, policy)
    policy.limits.check_prices(binding.model for cast in config.casts for binding in cast.values())
    check_workers(list_mcp_servers(found, chosen), config.casts, policy)
    return NewRun(found, config, bindings, policy)


def _unplayed(recipe: Recipe, options: RecipeOptions) -> dict[str, str]:
    """Return the used roles that have no scripted stand-in of their own, each with the generic offline model."""
    library = WithPrompts.of(recipe).library()
    used = WithRoles.of(recipe).roles_used(options)
    return {
        role: model for role, model in select_offline_models(library).items() if role in used and model == PLACEHOLDER
    }
