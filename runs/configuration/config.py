"""A run's frozen configuration: stored in its file, displayed, reused on resume, and compared with another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dialoom.roles import ModelBinding
from dialoom.roles.binding import ATTENTIVE
from dialoom.settings import FLAG, UserFault

DEFAULT_MODEL = ATTENTIVE
"""The default model of roles without one: no network, no key."""


class RunConfig(BaseModel):
    """The configuration that determines a run's results. Its concurrency does not, and is given with each call.

    Attributes:
        recipe: A registered name, `path/to/file.py:NAME`, or a study's file.
        options: The recipe's options, as plain values.
        models: The model of each role.
        panel: Further judges, which judge after all scenarios are played: for each, the models of the judging roles.
        seed: The seed of every random stream.
        on_user_fault: `flag`, or `retry N`: a simulated user's line in which the gate finds a fault is requested again
            up to N times before the other side sees it.
        sample: The number of scenarios drawn from all that the options yield; `None` for all.
        trials: The number of times that each scenario is played; `resume` can raise it.
        study: The study that the recipe was made from, as plain values; `None` for other recipes.
        code: The SHA-256 of each file of code that the recipe and the models name, by its name there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    recipe: str
    options: Mapping[str, Any]
    models: Mapping[str, ModelBinding]
    panel: tuple[Mapping[str, ModelBinding], ...] = ()
    seed: int
    sample: int | None = None
    trials: int = 1
    on_user_fault: UserFault = FLAG
    study: Mapping[str, Any] | None = None
    code: Mapping[str, str] = Field(default_factory=dict)

    @property
    def user_retries(self) -> int:
        """The number of times that a faulty line of the user's is requested again."""
        return 0 if self.on_user_fault == FLAG else int(self.on_user_fault.split()[1])

    @property
    def casts(self) -> list[Mapping[str, ModelBinding]]:
        """The models by role, for the run itself and with each further judge."""
        return [self.models, *({**self.models, **judges} for judges in self.panel)]

    @property
    def model_names(self) -> dict[str, str]:
        """The models by role, without their sampling parameters."""
        return {role: binding.model for role, binding in self.models.items()}


def config_diff(stored: RunConfig, requested: RunConfig) -> list[str]:
    """Return the differences between two configurations, as `key: then, now`. The code behind names is not compared."""
    then, now = _flat(stored), _flat(requested)
    keys = [key for key in now | then if then.get(key) != now.get(key)]
    return [f"{key}: {then.get(key)!r} then, {now.get(key)!r} now" for key in keys]


def _flat(config: RunConfig) -> dict[str, Any]:
    plain = config.model_dump(mode="json")
    roles = {f"{role} {key}": value for role, each in plain["models"].items() for key, value in each.items()}
    rest = {key: plain[key] for key in ("panel", "seed", "on_user_fault", "sample", "trials")}
    return {"recipe": config.recipe, **plain["options"], **roles, **rest}
