"""A persona as free text: a profile and a personality; the files that hold many, and how they are drawn from pools."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dialoom.errors import Advice, first_problem
from dialoom.inputs import DataError

from .mending import Mendings
from .pools.files import PoolEntry, content_id, values_of
from .writing import write_lines


class Persona(BaseModel):
    """Somebody, in plain English, one sentence a fact or trait.

    Attributes:
        id: From the two texts, unless somebody gave another one.
        profile: The facts of a life.
        personality: The traits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str = Field(min_length=1)
    profile: str = Field(min_length=1)
    personality: str = Field(min_length=1)

    @classmethod
    def of(cls, profile: str, personality: str) -> Persona:
        """The persona of a profile and a personality."""
        return cls(id=content_id(profile, personality), profile=profile, personality=personality)


def read_personas(path: Path, mendings: Mendings | None = None) -> list[Persona]:
    """The personas of a JSONL file, in its order; an object without an `id` gets the one of its content.

    Args:
        path: The file.
        mendings: Counts what was put up with.

    Raises:
        DataError: If the file cannot be read, a line is wrong, an id stands there twice, or there is nobody in it.
    """
    lines: dict[str, int] = {}
    personas: list[Persona] = []
    for number, value in values_of(path, Mendings() if mendings is None else mendings):
        persona = _persona(value, path, number)
        if persona.id in lines:
            raise DataError(path, f"the id {persona.id!r} is also that of line {lines[persona.id]}", number)
        lines[persona.id] = number
        personas.append(persona)
    if not personas:
        advice = Advice("combine", "combine a pool of profiles and one of personalities", {"path": path})
        raise DataError(path, "holds no persona", advice=advice)
    return personas


def write_personas(path: Path, personas: Iterable[Persona], inputs: Iterable[Path] = ()) -> int:
    """Write a personas file, whole or not at all; returns how many there are.

    Args:
        path: The file.
        personas: What it is to hold.
        inputs: Files that they are made from, which are not written over.

    Raises:
        OutputError: If the file is one of the inputs or an SQLite file, or cannot be written.
    """
    return write_lines(path, (persona.model_dump() for persona in personas), inputs)


def combined(
    profiles: Sequence[PoolEntry], personalities: Sequence[PoolEntry], count: int, seed: int
) -> Iterator[Persona]:
    """Random pairs of a profile and a personality, no pair twice.

    Args:
        profiles: One pool.
        personalities: The other.
        count: How many, at most as many as there are pairs.
        seed: Of the draw.

    Raises:
        ValueError: If there are not that many pairs.
    """
    pairs = len(profiles) * len(personalities)
    if not 1 <= count <= pairs:
        raise ValueError(
            f"{count:,} personas cannot be made: {len(profiles):,} profiles and {len(personalities):,} personalities "
            f"give {pairs:,} pairs; give a number from 1 to that"
        )
    draw = random.Random(f"personas {seed}")
    for chosen in draw.sample(range(pairs), count):
        first, second = divmod(chosen, len(personalities))
        yield Persona.of(profiles[first].text, personalities[second].text)


def _persona(value: Any, path: Path, number: int) -> Persona:
    if not isinstance(value, dict):
        raise DataError(path, f"holds {type(value).__name__}; an object with profile and personality is needed", number)
    values = {key: " ".join(part.split()) if isinstance(part, str) else part for key, part in value.items()}
    texts = values.get("profile"), values.get("personality")
    if "id" not in values and all(isinstance(text, str) for text in texts):
        values["id"] = content_id(*map(str, texts))
    try:
        return Persona.model_validate(values)
    except ValidationError as error:
        place, message, value = first_problem(error)
        what = f"{value!r:.60}: {message}" if place in values else "missing"
        raise DataError(path, f"{place!r} is {what}", number) from error
