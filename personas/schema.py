"""The affinity schema: which preferences each domain knows, and their usual values. Its lists are not exhaustive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from dialoom.errors import first_problem
from dialoom.inputs import DataError, read_json
from dialoom.text import well_formed_value

from .mending import is_withheld
from .profile import Affinity


class AffinityType(BaseModel):
    """What the schema says of one preference; `has_multiple_values` means that its value is a list."""

    model_config = ConfigDict(frozen=True)
    name: str
    description: str = ""
    is_categorical: bool
    has_multiple_values: bool
    possible_values: tuple[str, ...] = ()

    def spelt(self, given: Sequence[str], open_values: bool) -> tuple[list[str], str]:
        """Return values in the schema's spelling, each once and as one line; and what is wrong with them.

        Args:
            given: The values.
            open_values: Whether a categorical preference takes values that the schema does not list.
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
        """Return preferences in the schema's order and spelling; and what is wrong with them.

        A preference that takes several values may have none, and is then left out.

        Args:
            given: Names and values.
            open_values: Whether categorical preferences take values that the schema does not list.
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
