"""The affinity schema: which preferences each domain knows, and their usual values. Its lists are not exhaustive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from dialoom.errors import first_problem
from dialoom.inputs import DataError, read_json
from dialoom.text import well_formed_value

from .profile import Affinity


class AffinityType(BaseModel):
    """What the schema says of one preference; `has_multiple_values` means that its value is a list."""

    model_config = ConfigDict(frozen=True)
    name: str
    description: str = ""
    is_categorical: bool
    has_multiple_values: bool
    possible_values: tuple[str, ...] = ()


class DomainSchema(BaseModel):
    """The preferences of one domain."""

    model_config = ConfigDict(frozen=True)
    domain: str
    description: str = ""
    affinities: tuple[AffinityType, ...]


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
        """How many of a categorical affinity's values the schema does not list (legal, but worth counting)."""
        known = self.types.get((domain, name))
        if known is None or not known.is_categorical:
            return 0
        listed = {option.casefold() for option in known.possible_values}
        values = (value,) if isinstance(value, str) else value
        return sum(option.casefold() not in listed for option in values)


def read_domains(path: Path) -> list[DomainSchema]:
    """The domains of a `schema.json`, in its order.

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
    """The domains of the sample people."""
    return read_domains(Path(__file__).parent / "samples" / "res" / "schema.json")
