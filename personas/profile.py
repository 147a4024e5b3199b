"""Personas of PersonaLens (profiles, affinity schema, tasks and situations), and the repairs made by readers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dialoom.inputs import DataError, Frozen, Record, read_json, validate_model
from dialoom.text import to_well_formed_value

UNLISTED_VALUES = "values that the schema does not list"
NON_ASCII_PROFILES = "profiles with letters beyond ASCII"
FREE_FORM_SITUATIONS = "devices, days or times in free wording"
LONE_SURROGATES = "values with half a character in a text, which was replaced"

_PLURALS = "names values profiles devices days times tasks files texts lines marks"
_SINGULARS = {"affinities": "affinity", **{things: things[:-1] for things in _PLURALS.split()}}
_NOUN_LIST = re.compile(
    rf"\b(?:{'|'.join(_SINGULARS)})\b(?:, (?:{'|'.join(_SINGULARS)})\b)*(?: or (?:{'|'.join(_SINGULARS)})\b)?"
)

_HARMLESS_KINDS = frozenset({UNLISTED_VALUES, NON_ASCII_PROFILES, FREE_FORM_SITUATIONS})
"""Kinds of values that are kept unchanged and need no action. They are reported because users may not expect them."""

_WITHHELD = re.compile(r"^\W*(redacted|n\s*/\s*a)\W*$", re.IGNORECASE)
_REDACTED_PART = re.compile(r"\[\s*redacted\s*\]", re.IGNORECASE)
_DOMAIN_SUFFIX = re.compile(r"\s*\([^)]*\)\s*$")
_DAYS = {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
_TIMES = {"early morning", "morning", "midday", "afternoon", "evening", "night"}
_DEVICES = {"smartphone", "laptop", "tablet", "desktop", "desktop computer", "smart speaker", "smartwatch"}


class Repairs(Counter[str]):
    """The number of repairs by kind."""

    def summary(self) -> str:
        """Return a one-line summary, or an empty text without repairs."""
        met = {
            kind: f"{self[kind]:,} {_singularize(kind) if self[kind] == 1 else kind}"
            for kind in sorted(self)
            if self[kind]
        }
        parts = [text for kind, text in met.items() if kind not in _HARMLESS_KINDS]
        if fine := [text for kind, text in met.items() if kind in _HARMLESS_KINDS]:
            parts.append(f"kept unchanged, no action needed: {', '.join(fine)}")
        return "; ".join(parts)


def _singularize(kind: str) -> str:
    """Return the singular form of a kind of repair."""
    return _NOUN_LIST.sub(lambda found: re.sub(r"\w{3,}", lambda noun: _SINGULARS[noun[0]], found[0]), kind, count=1)


def normalize_domain_name(key: str, known: Iterable[str]) -> str:
    """Return the domain of a key: the known name that equals it without stray characters, or else the key itself."""
    if key in known:
        return key
    bare = re.sub(r"[^A-Za-z ]", "", key).strip().casefold()
    return next((name for name in known if name.casefold() == bare), key)


@lru_cache(maxsize=4096)
def is_withheld(value: str) -> bool:
    """Return whether a value means that the answer was withheld."""
    return bool(_WITHHELD.match(value))


@lru_cache(maxsize=4096)
def is_redacted(value: str) -> bool:
    """Return whether a value of demographics or a situation is withheld, or contains a redacted part."""
    return is_withheld(value) or bool(_REDACTED_PART.search(value))


def resolve_affinity(name: str, known: Iterable[str]) -> tuple[str | None, str | None]:
    """Return the known affinity to which a task's text refers, and the kind of repair that was needed.

    Both may be `None`.
    """
    known = tuple(known)
    if name in known:
        return name, None
    by_spelling = {_normalize_spelling(each): each for each in known}
    if found := by_spelling.get(_normalize_spelling(name)):
        return found, "affinities matched by another spelling (Favourite/Favorite)"
    found = by_spelling.get(_normalize_spelling(_DOMAIN_SUFFIX.sub("", name)))
    if found:
        return found, "affinities matched without their '(Domain)' suffix"
    return None, "affinities that a task names but its domains lack"


def count_free_form(device: str, day: str, time: str) -> int:
    """Return how many of the three values are not among the usual words."""
    return sum(
        value.strip().casefold() not in usual for value, usual in ((device, _DEVICES), (day, _DAYS), (time, _TIMES))
    )


def _normalize_spelling(name: str) -> str:
    return name.casefold().replace("favourite", "favorite").strip()


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


class Demographics(Record):
    """The eleven demographic facts about a person (D in the paper). All are free text, as in the source."""

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
        """Return the values that prompts show: all values that are not withheld, except the user id."""
        values: dict[str, str] = self.model_dump(exclude={"user_id"})
        return {name: value for name, value in values.items() if not is_redacted(value)}


class Domain(Frozen):
    """A person's data in one domain.

    Attributes:
        affinities: The preferences (P) by name, without empty ones.
        summary: A summary of past interactions (I), as prose.
        of_interest: Whether the domain is not masked. A person gets no tasks that involve a masked domain.
    """

    affinities: Mapping[str, Affinity]
    summary: str
    of_interest: bool

    @cached_property
    def preferences(self) -> dict[str, str]:
        """The affinities by name, each as one line. Several values are joined by semicolons."""
        return {name: value if isinstance(value, str) else "; ".join(value) for name, value in self.affinities.items()}


class Profile(Frozen):
    """A person U = (D, P, I), section 2.1 of the paper."""

    demographics: Demographics
    domains: Mapping[str, Domain]

    @property
    def user_id(self) -> str:
        """The person's id, e.g. `user42`."""
        return self.demographics.user_id


class Situation(Record):
    """The situational context S of a person's task. All fields are free text, as in the source."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    location: str = Field(alias="Location")
    device: str = Field(alias="Device")
    time_of_day: str = Field(alias="Time of Day")
    day_of_week: str = Field(alias="Day of the Week")
    environment: str = Field(alias="Environment")

    def for_prompt(self) -> dict[str, str]:
        """Return the values that prompts show: all values that are not withheld, under the names of the release."""
        values: dict[str, str] = self.model_dump(by_alias=True)
        return {name: value for name, value in values.items() if not is_redacted(value)}


class Task(BaseModel):
    """A task of one person (section 2.2 of the paper).

    Attributes:
        id: `SD-<Domain>-task-<k>` or `MD-task-<k>`.
        description: The task described in the third person.
        intent: The task from the person's view, in the second person.
        goal: The criterion of success.
        relevant_affinities: The names of the preferences that matter, as the release lists them.
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
        """The task's type: `single` if it involves one domain, otherwise `multi`."""
        return "single" if len(self.domains) == 1 else "multi"


class AffinityType(Frozen):
    """The schema's entry for a preference. `has_multiple_values` means that the value is a list."""

    name: str
    description: str = ""
    is_categorical: bool
    has_multiple_values: bool
    possible_values: tuple[str, ...] = ()

    def spelt(self, given: Sequence[str], open_values: bool) -> tuple[list[str], str]:
        """Return values in the schema's spelling, without duplicates or line breaks, and a description of any problem.

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


class DomainSchema(Frozen):
    """The preferences of one domain."""

    domain: str
    description: str = ""
    affinities: tuple[AffinityType, ...]

    def spelt(self, given: Iterable[tuple[str, Sequence[str]]], open_values: bool) -> tuple[dict[str, Any], str]:
        """Return preferences in the schema's order and spelling, and a description of any problem.

        A preference that takes several values may have no value. It is left out in this case.

        Args:
            given: Names and values.
            open_values: Whether categorical preferences accept values that the schema does not list.
        """
        known = {each.name.casefold(): each for each in self.affinities}
        by_name: dict[str, Sequence[str]] = {}
        problems = []
        for name, values in given:
            if (key := name.casefold()) not in known:
                problems.append(f"there is no preference {name!r} here")
            elif key in by_name:
                problems.append(f"{name!r} stands there twice")
            by_name[key] = values
        found: dict[str, Any] = {}
        for key, type_ in known.items():
            spelt, problem = list[str](), f"{type_.name!r} is missing"
            if key in by_name:
                spelt, problem = type_.spelt(by_name[key], open_values)
            problems += filter(None, [problem])
            if spelt:
                found[type_.name] = spelt if type_.has_multiple_values else spelt[0]
        return found, "; ".join(problems) if found or problems else "no preference has a value"


class AffinitySchema(Frozen):
    """All preferences by (domain, name). The release has 90 pairs but only 81 names, so a name alone is not a key."""

    types: Mapping[tuple[str, str], AffinityType]

    @classmethod
    def read(cls, path: Path) -> AffinitySchema:
        """Read a `schema.json` in the release's layout.

        Raises:
            DataError: If the file is missing, is not JSON, or holds no list of domains.
        """
        return cls(types={(d.domain, a.name): a for d in read_domains(path) for a in d.affinities})

    def outside(self, domain: str, name: str, value: Affinity) -> int:
        """Return how many values of a categorical affinity the schema does not list.

        Such values are valid, but counted.
        """
        if (known := self.types.get((domain, name))) is None or not known.is_categorical:
            return 0
        listed = {option.casefold() for option in known.possible_values}
        return sum(option.casefold() not in listed for option in ((value,) if isinstance(value, str) else value))


def read_domains(path: Path) -> list[DomainSchema]:
    """Read the domains of a `schema.json`, in order.

    Raises:
        DataError: If the file is missing, is not JSON, or holds no list of domains.
    """
    values = to_well_formed_value(read_json(path))
    if not isinstance(values, list):
        raise DataError(path, f"the affinity schema must be a list of domains, got {type(values).__name__}")
    return [validate_model(DomainSchema, value, path, part=f"domain {number}") for number, value in enumerate(values)]


def load_sample_schema() -> list[DomainSchema]:
    """Return the domains of the sample people."""
    return read_domains(Path(__file__).parent / "samples" / "res" / "schema.json")
