"""What a person wants from an assistant, and where they are when they want it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from .mending import is_untold


class Situation(BaseModel):
    """The situational context S of one person's task, all free text, as the source has it."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)
    location: str = Field(alias="Location")
    device: str = Field(alias="Device")
    time_of_day: str = Field(alias="Time of Day")
    day_of_week: str = Field(alias="Day of the Week")
    environment: str = Field(alias="Environment")

    def for_prompt(self) -> dict[str, str]:
        """What models are shown: everything that is told, under the names of the release."""
        values: dict[str, str] = self.model_dump(by_alias=True)
        return {name: value for name, value in values.items() if not is_untold(value)}


class Task(BaseModel):
    """A task of one person (section 2.2 of the paper).

    Attributes:
        id: `SD-<Domain>-task-<k>` or `MD-task-<k>`.
        description: The task from outside, third person.
        intent: The task as the person has it in mind, second person.
        goal: The criterion of success.
        relevant_affinities: Names of the preferences that matter, as the release lists them.
        domains: One domain, or two to five.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", validate_by_name=True, validate_by_alias=True)
    id: str = Field(alias="task_id", min_length=1)
    description: str = Field(alias="Task Description")
    intent: str = Field(alias="User Intent")
    goal: str = Field(alias="Task Goal")
    relevant_affinities: tuple[str, ...] = Field(alias="Relevant Affinity Types")
    domains: tuple[str, ...] = Field(alias="Relevant Domains", min_length=1)
    situation: Situation = Field(alias="situations")

    @property
    def kind(self) -> Literal["single", "multi"]:
        """Whether the task stays in one domain."""
        return "single" if len(self.domains) == 1 else "multi"
