"""What the writer and the judge answer; what breaks a rule of its form is asked for again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from dialoom.personas import Situation
from dialoom.personas.mending import is_withheld

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True)


class Interests(_Reply):
    """The domains that are somebody's."""

    domains: Annotated[list[Text], Field(min_length=1)]


class WrittenPreference(_Reply):
    """A preference's values: one, or several where the schema says so."""

    name: Text
    values: list[Text]


class WrittenPreferences(_Reply):
    """Somebody's preferences in a domain."""

    preferences: Annotated[list[WrittenPreference], Field(min_length=1)]


class Contradiction(_Reply):
    """A preference that the demographics, or another preference, rule out."""

    domain: Text
    preference: Text
    reason: Text


class Contradictions(_Reply):
    """What does not go together in a person."""

    contradictions: list[Contradiction]


class ForeignPassages(_Reply):
    """Passages of a summary that tell of preferences which the person does not have."""

    passages: list[Text]


class WrittenTask(_Reply):
    """A task, before anybody is given it; without domains if it stays in one."""

    description: Text
    intent: Text
    goal: Text
    preferences: Annotated[list[Text], Field(min_length=1)]
    domains: list[Text] = []


class WrittenTasks(_Reply):
    """The tasks of a domain, or those over several."""

    tasks: Annotated[list[WrittenTask], Field(min_length=1)]


class WrittenSituation(_Reply):
    """Where somebody is when they have a task; the choices are those of the paper's figure 11."""

    location: Text
    device: Literal["Smartphone", "Laptop", "Smart speaker", "Tablet", "Smartwatch"]
    time_of_day: Literal["Morning", "Afternoon", "Evening", "Night"]
    day_of_week: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    environment: Literal["Quiet", "Noisy"]

    @field_validator("location")
    @classmethod
    def _told(cls, location: str) -> str:
        if is_withheld(location):
            raise ValueError("this says nothing; a town or a place in it is needed")
        return location

    def plain(self) -> dict[str, str]:
        """As the release has it."""
        return Situation(**self.model_dump()).model_dump(by_alias=True)


REPLY_TYPES: Mapping[str, type[BaseModel]] = {
    "person-interests": Interests,
    "person-preferences": WrittenPreferences,
    "person-contradictions": Contradictions,
    "foreign-passages": ForeignPassages,
    "written-tasks": WrittenTasks,
    "written-situation": WrittenSituation,
}
