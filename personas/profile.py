"""One person: who they are, what they like in each domain, and what went on between them and assistants before."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from .mending import is_untold

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
"""A preference's value: one text, or several where the schema says so."""


class Demographics(BaseModel):
    """The eleven facts of a person's outward life (D in the paper), all free text, as the source has it."""

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
        """What models are shown: everything that is told, but for the user id."""
        values: dict[str, str] = self.model_dump(exclude={"user_id"})
        return {name: value for name, value in values.items() if not is_untold(value)}


class Domain(BaseModel):
    """What is known of a person in one domain.

    Attributes:
        affinities: Preferences (P) by name; empty ones are left out.
        summary: Past interactions (I), as prose.
        of_interest: The mask: a task that touches a masked domain is not given to this person.
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
    """An affinity's value as one line; several values are joined by semicolons."""
    return value if isinstance(value, str) else "; ".join(value)
