"""Personas as free text: a profile and a personality; their files, and random combinations of pools."""

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
    """A person described in plain English, one sentence per fact or trait.

    Attributes:
        id: A hash of the two texts, unless the file gives another id.
        profile: The facts of the person's life.
        personality: The person's traits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str = Field(min_length=1)
    profile: str = Field(min_length=1)
    personality: str = Field(min_length=1)

    @classmethod
    def of(cls, profile: str, personality: str) -> Persona:
        """Return the persona of a profile and a personality."""
        return cls(id=content_id(profile, personality), profile=profile, personality=personality)


def read_personas(path: Path, mendings: Mendings | None = None) -> list[Persona]:
    """Read the personas of a JSONL file, in order; an object without an `id` gets one derived from its content.

    Args:
        path: The file.
        mendings: Counts the repairs.

    Raises:
        DataError: If the file cannot be read, a line is invalid, an id occurs twice, or there is no persona.
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
    """Write a personas file atomically, and return the number of personas.

    Args:
        path: The file.
        personas: The file's content.
        inputs: The files that it was made from, which must not be overwritten.

    Raises:
        OutputError: If the file is one of the inputs or an SQLite file, or cannot be written.
    """
    return write_lines(path, (persona.model_dump() for persona in personas), inputs)


def combined(
    profiles: Sequence[PoolEntry], personalities: Sequence[PoolEntry], count: int, seed: int
) -> Iterator[Persona]:
    """Yield random pairs of a profile and a personality, without repeating a pair.

    Args:
        profiles: The pool of profiles.
        personalities: The pool of personalities.
        count: The number of pairs, at most as many as there are.
        seed: The seed of the draw.

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
