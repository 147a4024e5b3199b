"""Resolving the settings of a new run: the one place where defaults, options and bindings are merged."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from dialoom.graphs import Recipe, RecipeOptions
from dialoom.graphs.capabilities import WithPrompts, WithRoles
from dialoom.graphs.simulation import Simulation
from dialoom.roles.binding import PLACEHOLDER, Bindings, ModelLike, bind
from dialoom.roles.cast import stand_ins
from dialoom.runs.config import DEFAULT_MODEL, FLAG, RunConfig
from dialoom.runs.errors import RunError
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.limits import RunLimits
from dialoom.runs.recipes import find_recipe, option_names, parsed_options
from dialoom.runs.trust import code_hashes, players_named, recipe_named

from .judges import check_several, further_judges, seated
from .settings import JudgeSettings, Options, PathLike, RecipeLike, call_policy, calls_of, players_of


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


def resolve(
    recipe: RecipeLike,
    *,
    model: ModelLike | None = None,
    options: Options | None = None,
    seed: int = 0,
    sample: int | None = None,
    on_user_fault: str = FLAG,
    prompts: PathLike | None = None,
    **settings: Unpack[JudgeSettings],
) -> NewRun:
    """Merge defaults, options and bindings of a new run; see `play` for the arguments.

    Raises:
        RunError, RecipeError, BindingError, CacheError: Naming the setting that is wrong.
    """
    spec, found = find_recipe(recipe)
    chosen = parsed_options(found, options)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise RunError(f"seed {seed!r} is no whole number", setting="seed")
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int) or sample < 1):
        raise RunError(f"sample {sample!r} is no whole number from 1", setting="sample")
    check_several(found, settings.get("models"))
    players = players_of(settings)
    unplayed = {} if model is not None else _unplayed(found, chosen)
    roles, bound = WithRoles.of(found), []
    for _, by_role in seated(None, settings.get("models")):
        players["models"] = {**unplayed, **roles.models_named(chosen), **by_role}
        usual = DEFAULT_MODEL if model is None else model
        bound.append(bind(roles.roles_used(chosen), usual, roles.reply_limits, **players))
    bindings, *others = bound
    judges = further_judges(found, bindings, others)
    plain = chosen.model_dump(mode="json")
    if not re.fullmatch(rf"{FLAG}|retry [1-9]\d?", str(on_user_fault)):
        raise RunError(
            f"on_user_fault {on_user_fault!r}: there are flag and retry N, such as 'retry 2'", setting="on_user_fault"
        )
    named = [each for by_role in (bindings.by_role, *judges) for each in players_named(by_role)]
    code = code_hashes([*recipe_named(spec, recipe=found), *named])
    config = RunConfig(
        recipe=spec,
        options=plain,
        models=dict(bindings.by_role),
        panel=judges,
        seed=seed,
        sample=sample,
        on_user_fault=on_user_fault,
        study=found.study.plain() if isinstance(found, Simulation) else None,
        code=code,
    )
    policy = call_policy(calls_of(settings), RunLimits(), bindings.objects, found.roles, option_names(found))
    policy.limits.check_prices(binding.model for cast in config.casts for binding in cast.values())
    return NewRun(found, config, bindings, policy, None if prompts is None else Path(prompts))


def _unplayed(recipe: Recipe, options: RecipeOptions) -> dict[str, str]:
    """Return the roles that have no understudy of their own, with the offline model that plays any role."""
    library = WithPrompts.of(recipe).library()
    used = WithRoles.of(recipe).roles_used(options)
    return {role: model for role, model in stand_ins(library).items() if role in used and model == PLACEHOLDER}
