"""The frozen configuration of a run: stored in its file, displayed, reused on resume, compared with others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from dialoom.graphs.outcome import USER, parse_episode_numbers
from dialoom.grouping import group_pairs
from dialoom.inputs import Record
from dialoom.roles import ModelBinding
from dialoom.roles.binding import ATTENTIVE, PLACEHOLDER
from dialoom.settings import FLAG_FAULTS, UserFault

DEFAULT_MODEL = ATTENTIVE
"""The model of roles for which none is given; it needs no network and no key."""
DEFAULT_MODELS = (DEFAULT_MODEL, PLACEHOLDER)
"""The models of roles for which none is given: the default, and the one of roles that the default cannot play."""


class RunConfig(Record):
    """The configuration that determines a run's results. Concurrency does not, so it is given with each call instead.

    Attributes:
        recipe: A registered name, `path/to/file.py:NAME`, or a study's file.
        options: The recipe's options, as plain values.
        models: The model of each role.
        users: Additional models of the user; every scenario is also played with each of them.
        panel: Additional judges, which judge after all scenarios are played; for each, the models of the judging roles.
        seed: The seed of every random stream.
        on_user_fault: `flag`, or `retry N`: if the gate finds a fault in a simulated user's line, the line is requested
            again, up to N times, before the other side sees it.
        sample: The number of scenarios drawn from all that the options yield; `None` for all.
        trials: The number of times that each scenario is played; `resume` can raise it.
        prompts: The sets of prompts that replace the recipe's own, as names of shipped sets or as folders. Prompts of
            later sets replace those of earlier ones.
        study: The study from which the recipe was created, as plain values; `None` for other recipes.
        code: The SHA-256 of each code file that the recipe and the models refer to, by the name used there.
    """

    recipe: str
    options: Mapping[str, Any]
    models: Mapping[str, ModelBinding]
    users: tuple[ModelBinding, ...] = ()
    panel: tuple[Mapping[str, ModelBinding], ...] = ()
    seed: int
    sample: int | None = None
    trials: int = 1
    on_user_fault: UserFault = FLAG_FAULTS
    prompts: tuple[str, ...] = ()
    study: Mapping[str, Any] | None = None
    code: Mapping[str, str] = Field(default_factory=dict)

    def run_settings(self, is_complete: bool = True) -> dict[str, Any]:
        """Return the settings that belong neither to the recipe nor to a role, as plain values.

        Args:
            is_complete: Whether settings that have their default are included.
        """
        apart = {"recipe", "options", "models", "users", "panel", "study", "code"}
        return self.model_dump(mode="json", exclude=apart, exclude_defaults=not is_complete)

    @property
    def user_retries(self) -> int:
        """Maximum number of times that a faulty line of the simulated user is requested again."""
        return 0 if self.on_user_fault == FLAG_FAULTS else int(self.on_user_fault.split()[1])

    @property
    def players(self) -> list[Mapping[str, ModelBinding]]:
        """The models by role, once for each model of the user."""
        return [self.models, *({**self.models, USER: user} for user in self.users)]

    @property
    def casts(self) -> list[Mapping[str, ModelBinding]]:
        """The models by role, once for each model of the user and once for each additional judge."""
        return [*self.players, *({**self.models, **judges} for judges in self.panel)]

    @property
    def units(self) -> str:
        """The plural noun for what a run plays: scenarios, or conversations if it plays each scenario several times."""
        return "conversations" if self.trials > 1 or self.users else "scenarios"

    @property
    def user_models(self) -> list[str]:
        """The names of the user models; empty unless there are several."""
        return [each[USER].model for each in self.players] if self.users else []

    def role_bindings(self, judges: Mapping[str, ModelBinding] | None = None) -> list[tuple[str, ModelBinding]]:
        """Return each role that spoke, paired with its model; the user is paired with each of its models.

        If judges are given, they replace the run's own.
        """
        return [*{**self.speaking_models, **(judges or {})}.items(), *((USER, each) for each in self.users)]

    def models_for(self, episode: str) -> Mapping[str, ModelBinding]:
        """Return the models by role that play the episode with this id."""
        return self.players[parse_episode_numbers(episode)[1] - 1]

    @property
    def speaking_models(self) -> Mapping[str, ModelBinding]:
        """The models that spoke, by role; empty for imported transcripts, where models only speak on branches."""
        from dialoom.graphs.transcript_rows import TRANSCRIPT

        return {} if self.recipe == TRANSCRIPT else self.models

    @property
    def model_names(self) -> dict[str, str]:
        """The names of the models that spoke, by role; the names of several user models are joined."""
        names = {role: binding.model for role, binding in self.speaking_models.items()}
        return {**names, USER: ", ".join(self.user_models)} if self.users else names


def config_diff(stored: RunConfig, requested: RunConfig) -> list[str]:
    """Return the differences between two configurations as `key: OLD then, NEW now`, without hashes of files."""
    old, new = _flatten(stored), _flatten(requested)
    return [f"{key}: {old.get(key)!r} then, {new.get(key)!r} now" for key in new | old if old.get(key) != new.get(key)]


def _flatten(config: RunConfig) -> dict[str, Any]:
    casts = [config.models, *({USER: user} for user in config.users), *config.panel]
    by_role = group_pairs((role, binding) for cast in casts for role, binding in cast.items())
    players = {
        f"{role}{f' {number}' if number > 1 else ''} {key}": value
        for role, bindings in by_role.items()
        for number, binding in enumerate(bindings, start=1)
        for key, value in binding.model_dump(mode="json", exclude_defaults=number > 1).items()
    }
    options = config.model_dump(mode="json", include={"options"})["options"]
    return {"recipe": config.recipe, **options, **players, **config.run_settings()}
