"""A run's frozen configuration: what is stored in its file, shown, and used again on resume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from dialoom.roles import ModelBinding
from dialoom.roles.binding import ATTENTIVE

DEFAULT_CONCURRENCY = 16
DEFAULT_PATIENCE = 600.0
"""Seconds that a run waits for a provider that is away."""

DEFAULT_MODEL = ATTENTIVE
"""Plays the roles that nobody else is named for: no network, no key."""


FLAG = "flag"
"""What is done about a fault of the user's where nothing else was said: it is kept with the outcome."""


class RunConfig(BaseModel):
    """All that decides what a run does. How many dialogues are under way at once does not, and is given anew.

    Attributes:
        recipe: A registered name, or `path/to/file.py:NAME`.
        options: The recipe's options, as plain values.
        models: The model of each role.
        panel: Further judges, who judge once all is played: of each the models of the judging roles.
        seed: Of every random stream.
        on_user_fault: `flag`, or `retry N`: so often a simulated user's line in which the gate finds a fault is asked
            for again before the other side sees it.
        sample: How many scenarios are drawn from all that the options give; `None` for all.
        code: The SHA-256 of each file of code that the recipe and the models name, by how they name it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    recipe: str
    options: Mapping[str, Any]
    models: Mapping[str, ModelBinding]
    panel: tuple[Mapping[str, ModelBinding], ...] = ()
    seed: int
    sample: int | None = None
    on_user_fault: Annotated[str, Field(pattern=rf"^(?:{FLAG}|retry [1-9]\d?)$")] = FLAG
    code: Mapping[str, str] = Field(default_factory=dict)

    @property
    def user_retries(self) -> int:
        """How often a faulty line of the user's is asked for again."""
        return 0 if self.on_user_fault == FLAG else int(self.on_user_fault.split()[1])

    @property
    def casts(self) -> list[Mapping[str, ModelBinding]]:
        """The models of each role, and once more with each further judge."""
        return [self.models, *({**self.models, **judges} for judges in self.panel)]

    @property
    def model_names(self) -> dict[str, str]:
        """The models by role, without their sampling."""
        return {role: binding.model for role, binding in self.models.items()}
