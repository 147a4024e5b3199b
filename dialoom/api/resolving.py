"""Resolving the settings of a new run: the one place where defaults, options and bindings are merged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from dialoom.graphs import Recipe, RecipeOptions
from dialoom.graphs.acting import servers_of
from dialoom.graphs.capabilities import WithPrompts, WithRoles
from dialoom.graphs.simulation import Simulation
from dialoom.roles.binding import PLACEHOLDER, Bindings, bind
from dialoom.roles.cast import stand_ins
from dialoom.runs.configuration.config import DEFAULT_MODEL, RunConfig
from dialoom.runs.configuration.recipes import find_recipe, option_names, parsed_options
from dialoom.runs.configuration.trust import cast_references, code_hashes, recipe_references
from dialoom.runs.errors import RunError
from dialoom.runs.gateway_setup import CallPolicy, RunLimits, check_servers
from dialoom.settings import PlayerSettings, checked, part

from .judges import check_several, further_judges, seated
from .settings import CallSettings, PlaySettings, RecipeLike, call_policy


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run that is about to be made: everything is resolved and checked, nothing is written.

    Attributes:
        recipe: The recipe.
        config: All that decides what the run does.
        bindings: Its players, the objects among them.
        policy: How calls are made.
        overrides: A folder of prompts that replace the recipe's own.
    """

    recipe: Recipe
    config: RunConfig
    bindings: Bindings
    policy: CallPolicy
    overrides: Path | None


def resolve(recipe: RecipeLike, **settings: Unpack[PlaySettings]) -> NewRun:
    """Merge defaults, options and bindings of a new run; see `play` for the arguments.

    Raises:
        SettingError, RunError, RecipeError, BindingError, CacheError: Naming the setting that is wrong.
    """
    spec, found = find_recipe(recipe)
    for name in sorted(settings.keys() & option_names(found) - PlaySettings.__annotations__.keys()):
        raise RunError(f"{name} is an option of the recipe; give it as options={{{name!r}: ...}}", setting=name)
    given = checked(PlaySettings, settings)
    chosen, model = parsed_options(found, given["options"]), given["model"]
    check_several(found, given["models"])
    players = part(PlayerSettings, given)
    unplayed = {} if model is not None else _unplayed(found, chosen)
    roles, bound = WithRoles.of(found), []
    for _, by_role in seated(None, given["models"]):
        players["models"] = {**unplayed, **roles.models_named(chosen), **by_role}
        usual = DEFAULT_MODEL if model is None else model
        bound.append(bind(roles.roles_used(chosen), usual, roles.reply_limits, **players))
    bindings, *others = bound
    judges = further_judges(found, bindings, others)
    named = [each for by_role in (bindings.by_role, *judges) for each in cast_references(by_role)]
    config = RunConfig(
        recipe=spec,
        options=chosen.model_dump(mode="json"),
        models=dict(bindings.by_role),
        panel=judges,
        seed=given["seed"],
        sample=given["sample"],
        trials=given["trials"],
        on_user_fault=given["on_user_fault"],
        code=code_hashes([*recipe_references(spec, recipe=found), *named]),
        study=found.study.plain() if isinstance(found, Simulation) else None,
    )
    policy = call_policy(part(CallSettings, given), RunLimits(), bindings.objects, found.roles)
    policy.limits.check_prices(binding.model for cast in config.casts for binding in cast.values())
    check_servers(servers_of(found, chosen), policy)
    prompts = given["prompts"]
    return NewRun(found, config, bindings, policy, None if prompts is None else Path(prompts))


def _unplayed(recipe: Recipe, options: RecipeOptions) -> dict[str, str]:
    """Return the roles that have no understudy of their own, with the offline model that plays any role."""
    library = WithPrompts.of(recipe).library()
    used = WithRoles.of(recipe).roles_used(options)
    return {role: model for role, model in stand_ins(library).items() if role in used and model == PLACEHOLDER}
