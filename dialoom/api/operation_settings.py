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
from dialoom.settings import (
    PlayerObject,
    PlayerSettings,
    ProcessSettings,
    RunSettings,
    describe_settings,
    select_settings,
    validate_settings,
)

from .judges import (
    check_multi_model_roles,
    get_additional_judges,
    get_additional_users,
    split_judges,
    split_user_models,
)

RecipeLike: TypeAlias = "str | Recipe | type[Recipe]"
"""A registered name, `path/to/file.py:NAME`, a recipe, or its class."""


def _check_synchronous(listener: Callable[[Event], None] | None) -> Callable[[Event], None] | None:
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
        AfterValidator(_check_synchronous),
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
    _kind.__doc__ = describe_settings(_kind)


def build_call_policy(
    settings: CallSettings, stored: RunLimits, objects: Mapping[str, PlayerObject], roles: Collection[str]
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
    values = validate_settings(CallSettings, settings)
    policy = CallPolicy(stored.with_settings(values, roles), select_settings(ProcessSettings, values), objects)
    if policy.cache is not None:
        from dialoom.roles.gateway.cache import check_cache

        check_cache(policy.cache)
    if values["otel"]:
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


def resolve_new_run(recipe: RecipeLike, is_played: bool, **settings: Unpack[PlaySettings]) -> NewRun:
    """Merge defaults, options and bindings of a new run; see `play` for the other arguments.

    Args:
        recipe: As for `play`.
        is_played: Whether the run is played immediately, so that the providers' keys are required.
        **settings: As for `play`.

    Raises:
        SettingError, RunError, RecipeError, BindingError, CacheError: If a setting is wrong; the message names it.
    """
    spec, loaded = find_recipe(recipe)
    for name in sorted(settings.keys() & option_names(loaded) - PlaySettings.__annotations__.keys()):
        raise RunError(f"{name} is an option of the recipe; give it as options={{{name!r}: ...}}", setting=name)
    values = validate_settings(PlaySettings, settings)
    chosen, model = parse_options(loaded, values["options"]), values["model"]
    check_multi_model_roles(loaded, values["models"])
    players = select_settings(PlayerSettings, values)
    placeholders = {} if model is not None else _select_placeholders(loaded, chosen)
    roles, bindings_list = WithRoles.of(loaded), []
    named_models, other_users = split_user_models(values["models"])
    assignments = [by_role for _, by_role in split_judges(None, named_models)]
    for by_role in [*assignments, *({**assignments[0], USER: user} for user in other_users)]:
        players["models"] = {**placeholders, **roles.models_named(chosen), **by_role}
        default_model = DEFAULT_MODEL if model is None else model
        bindings_list.append(bind(roles.roles_used(chosen), default_model, roles.reply_limits, **players))
    bindings = bindings_list[0]
    judges = get_additional_judges(loaded, bindings, bindings_list[1 : len(assignments)])
    users = get_additional_users(bindings, bindings_list[len(assignments) :]) if other_users else ()
    casts = [bindings.by_role, *judges, *({USER: user} for user in users)]
    references = [each for by_role in casts for each in cast_references(by_role)]
    config = RunConfig(
        recipe=spec,
        options=chosen.model_dump(mode="json"),
        models=dict(bindings.by_role),
        users=users,
        panel=judges,
        seed=values["seed"],
        sample=values["sample"],
        trials=values["trials"],
        on_user_fault=values["on_user_fault"],
        code=compute_code_hashes([*recipe_references(spec, recipe=loaded), *references]),
        prompts=values["prompts"],
        study=loaded.study.to_dict() if isinstance(loaded, Simulation) else None,
    )
    policy = build_call_policy(select_settings(CallSettings, values), RunLimits(), bindings.objects, loaded.roles)
    if is_played:  # checked before the prices, which need the slow import of LiteLLM
        check_model_access(config.casts, policy)
    policy.limits.check_prices(binding.model for cast in config.casts for binding in cast.values())
    check_workers(list_mcp_servers(loaded, chosen), config.casts, policy)
    return NewRun(loaded, config, bindings, policy)


def _select_placeholders(recipe: Recipe, options: RecipeOptions) -> dict[str, str]:
    """Return the used roles that have no scripted stand-in of their own, each with the generic offline model."""
    library = WithPrompts.of(recipe).library()
    used = WithRoles.of(recipe).roles_used(options)
    return {
        role: model for role, model in select_offline_models(library).items() if role in used and model == PLACEHOLDER
    }
