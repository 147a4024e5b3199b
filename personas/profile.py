"""Personas of PersonaLens: profile, affinity schema, tasks and situations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dialoom.errors import first_problem
from dialoom.inputs import DataError, read_json
from dialoom.text import well_formed_value

from .mending import is_untold, is_withheld

DOMAINS = (
    "Alarm",
    "Books",
    "Buses",
    "Calendar",
    "Events",
    "Finance",
    "Flights",
    "Games",
    "Hotels",
    "Media",
    "Messaging",
    "Movies",
    "Music",
    "Rental Cars",
    "Restaurants",
    "Services",
    "Shopping",
    "Sports",
    "Train",
    "Travel",
)
"""The 20 domains of PersonaLens (table 1 of the paper)."""

Affinity = str | tuple[str, ...]
"""A preference's value: one text, or several where the schema allows a list."""


class Demographics(BaseModel):
    """The eleven demographic facts about a person (D in the paper), all free text, as in the source."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    user_id: str
    age: str
    gender: str
    employment_status: str
    education: str
    marital_status: str
    english_proficiency: str
    ethnicity: str
    religion: str
    birth_country: str
    reside_country: str

    def for_prompt(self) -> dict[str, str]:
        """Return the values that prompts show: all that are not withheld, except the user id."""
        values: dict[str, str] = self.model_dump(exclude={"user_id"})
        return {name: value for name, value in values.items() if not is_untold(value)}


class Domain(BaseModel):
    """A person's data in one domain.

    Attributes:
        affinities: Preferences (P) by name, without empty ones.
        summary: Past interactions (I), as prose.
        of_interest: The mask: a person gets no task that involves a masked domain.
    """

    model_config = ConfigDict(frozen=True)
    affinities: Mapping[str, Affinity]
    summary: str
    of_interest: bool


class Profile(BaseModel):
    """A person U = (D, P, I), section 2.1 of the paper."""

    model_config = ConfigDict(frozen=True)
    demographics: Demographics
    domains: Mapping[str, Domain]

    @property
    def user_id(self) -> str:
        """The person's id, e.g. `user42`."""
        return self.demographics.user_id


def as_text(value: Affinity) -> str:
    """Return an affinity's value as one line; several values are joined by semicolons."""
    return value if isinstance(value, str) else "; ".join(value)


class Situation(BaseModel):
    """The situational context S of one person's task, all free text, as in the source."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)
    location: str = Field(alias="Location")
    device: str = Field(alias="Device")
    time_of_day: str = Field(alias="Time of Day")
    day_of_week: str = Field(alias="Day of the Week")
    environment: str = Field(alias="Environment")

    def for_prompt(self) -> dict[str, str]:
        """Return the values that prompts show: all that are not withheld, under the names of the release."""
        values: dict[str, str] = self.model_dump(by_alias=True)
        return {name: value for name, value in values.items() if not is_untold(value)}


class Task(BaseModel):
    """A task of one person (section 2.2 of the paper).

    Attributes:
        id: `SD-<Domain>-task-<k>` or `MD-task-<k>`.
        description: The task described in the third person.
        intent: The task from the person's view, in the second person.
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
        """The task's type: `single` if it involves one domain, else `multi`."""
        return "single" if len(self.domains) == 1 else "multi"


class AffinityType(BaseModel):
    """The schema's entry of one preference; `has_multiple_values` means that its value is a list."""

    model_config = ConfigDict(frozen=True)
    name: str
    description: str = ""
    is_categorical: bool
    has_multiple_values: bool
    possible_values: tuple[str, ...] = ()

    def spelt(self, given: Sequence[str], open_values: bool) -> tuple[list[str], str]:
        """Return values in the schema's spelling without duplicates, each on one line, and their problem or ''.

        Args:
            given: The values.
            open_values: Whether a categorical preference accepts values that the schema does not list.
        """
        options = {option.casefold(): option for option in self.possible_values}
        given = [" ".join(value.split()) for value in given]
        if not self.has_multiple_values and len(given) != 1:
            return [], f"{self.name!r} takes one value, and has {len(given)}"
        for value in given:
            if is_withheld(value):
                return [], f"{value!r} says nothing of {self.name!r}"
            if self.is_categorical and value.casefold() not in options and not open_values:
                return [], f"{value!r} is none of the values listed for {self.name!r}"
        spelt = [options.get(value.casefold(), value) if self.is_categorical else value for value in given]
        return list(dict.fromkeys(spelt)), ""


class DomainSchema(BaseModel):
    """The preferences of one domain."""

    model_config = ConfigDict(frozen=True)
    domain: str
    description: str = ""
    affinities: tuple[AffinityType, ...]

    def spelt(self, given: Iterable[tuple[str, Sequence[str]]], open_values: bool) -> tuple[dict[str, Any], str]:
        """Return preferences in the schema's order and spelling, and the problems with them, if any.

        A preference with several values may have none, and is then omitted.

        Args:
            given: Names and values.
            open_values: Whether categorical preferences accept values that the schema does not list.
        """
        known = {each.name.casefold(): each for each in self.affinities}
        by_name: dict[str, Sequence[str]] = {}
        problems = []
        for name, values in given:
            key = name.casefold()
            if key not in known:
                problems.append(f"there is no preference {name!r} here")
            elif key in by_name:
                problems.append(f"{name!r} stands there twice")
            by_name[key] = values
        found: dict[str, Any] = {}
        for key, type_ in known.items():
            if key not in by_name:
                problems.append(f"{type_.name!r} is missing")
                continue
            kept, problem = type_.spelt(by_name[key], open_values)
            problems += [problem] if problem else []
            if kept:
                found[type_.name] = kept if type_.has_multiple_values else kept[0]
        if not found and not problems:
            problems.append("no preference has a value")
        return found, "; ".join(problems)


class AffinitySchema(BaseModel):
    """All preferences by (domain, name): 90 pairs but only 81 names in the release, so a name alone is no key."""

    model_config = ConfigDict(frozen=True)
    types: Mapping[tuple[str, str], AffinityType]

    @classmethod
    def read(cls, path: Path) -> AffinitySchema:
        """Read a `schema.json` in the release's layout.

        Raises:
            DataError: If the file is missing, is not JSON, or is not such a list.
        """
        domains = read_domains(path)
        return cls(types={(d.domain, a.name): a for d in domains for a in d.affinities})

    def outside(self, domain: str, name: str, value: Affinity) -> int:
        """Return how many of a categorical affinity's values the schema does not list (valid, but worth counting)."""
        known = self.types.get((domain, name))
        if known is None or not known.is_categorical:
            return 0
        listed = {option.casefold() for option in known.possible_values}
        values = (value,) if isinstance(value, str) else value
        return sum(option.casefold() not in listed for option in values)


def read_domains(path: Path) -> list[DomainSchema]:
    """Read the domains of a `schema.json`, in order.

    Raises:
        DataError: If the file is missing, is not JSON, or is not such a list.
    """
    values = well_formed_value(read_json(path))
    if not isinstance(values, list):
        raise DataError(path, f"the affinity schema is a list of domains, not {type(values).__name__}")
    return [_domain(path, number, value) for number, value in enumerate(values)]


def _domain(path: Path, number: int, value: Any) -> DomainSchema:
    try:
        return DomainSchema.model_validate(value)
    except ValidationError as error:
        place, message, wrong = first_problem(error)
        inside = f", {place!r}" if place else ""
        raise DataError(path, f"domain {number}{inside}: {message}; it is {wrong!r:.60}") from error


def shipped_schema() -> list[DomainSchema]:
    """Return the domains of the sample people."""
    return read_domains(Path(__file__).parent / "samples" / "res" / "schema.json")
