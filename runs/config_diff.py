"""The diff between the stored and the requested configuration of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dialoom.graphs import Recipe
from dialoom.graphs.capabilities import WithPrompts

from .config import RunConfig
from .store import RunFile


def config_diff(run: RunFile, config: RunConfig, recipe: Recipe, prompts: Path | None = None) -> list[str]:
    """Return the differences between a run's configuration and another one, as `key: then, now`.

    The code behind names is not compared.

    Args:
        run: The existing run.
        config: The requested configuration.
        recipe: The recipe.
        prompts: A folder of overrides; without one, the run's prompts are not compared.
    """
    then, now = (_flat(each) for each in (run.config, config))
    keys = [key for key in now | then if then.get(key) != now.get(key)]
    found = [f"{key}: {then.get(key)!r} then, {now.get(key)!r} now" for key in keys]
    if prompts is not None:
        theirs, ours = run.prompts, WithPrompts.of(recipe).library(prompts)
        found += [f"prompt {id_}: another text" for id_ in ours if theirs[id_].hash != ours[id_].hash]
    return found


def _flat(config: RunConfig) -> dict[str, Any]:
    plain = config.model_dump(mode="json")
    roles = {f"{role} {key}": value for role, each in plain["models"].items() for key, value in each.items()}
    rest = {key: plain[key] for key in ("panel", "seed", "on_user_fault", "sample")}
    return {"recipe": config.recipe, **plain["options"], **roles, **rest}
