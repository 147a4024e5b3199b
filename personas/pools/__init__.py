"""Personas as free text: profiles and personalities, pools of these texts, their files, and random combinations."""

from __future__ import annotations

import codecs
import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field

from dialoom.errors import Advice
from dialoom.inputs import DataError, Record, decode_json, read_bytes, read_lines, validate_model
from dialoom.outputs import write_lines
from dialoom.personas.profile import LONE_SURROGATES, Repairs
from dialoom.personas.rows import add_study_advice
from dialoom.text import to_well_formed_value

PoolKind = Literal["profile", "personality"]
POOL_KINDS: tuple[PoolKind, ...] = get_args(PoolKind)
POOL_KIND_PLURALS = {"profile": "profiles", "personality": "personalities"}


def content_id(*texts: str) -> str:
    """Return an id derived from texts: 12 hex digits of their SHA-256."""
    return hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


class PoolEntry(Record):
    """A profile or a personality, which is a line of a pool file.

    Attributes:
        id: A hash of the text, unless the file gives another id.
        text: The text in English, with one sentence per fact or trait.
        round: The round that wrote it; 0 for seeds.
        neighbour: The id of the most similar earlier entry; `None` for the first entry, or if it is unknown.
        similarity: The cosine similarity to the entry `neighbour`, rounded to four digits.
    """

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    round: int = Field(0, ge=0)
    neighbour: str | None = None
    similarity: float | None = Field(None, ge=-1.0, le=1.0)

    @classmethod
    def of(cls, text: str, round_: int = 0, neighbour: str | None = None, similarity: float | None = None) -> PoolEntry:
        """Return the entry of a text."""
        rounded = None if similarity is None else round(similarity, 4)
        return cls(id=content_id(text), text=text, round=round_, neighbour=neighbour, similarity=rounded)

    def plain(self) -> dict[str, Any]:
        """Return the entry as JSON values, in the order of files."""
        return self.model_dump(mode="json")


_SEPARATORS = re.compile(r"[\s,]*")


def read_json_values(path: Path, repairs: Repairs) -> Iterator[tuple[int, Any]]:
    """Yield every JSON value of a file with its line number, from 1.

    Raises:
        DataError: If the file cannot be read, or a line is not valid JSON.
    """
    for number, text in _read_decoded_lines(path, repairs):
        if not text.strip():
            repairs["blank lines left out"] += 1
            continue
        repairs["lines with spaces at their end"] += text != text.rstrip()
        values = list(_parse_values(text.strip(), path, number, repairs))
        repairs["lines with several values split"] += len(values) > 1
        yield from ((number, value) for value in values)


def _read_decoded_lines(path: Path, repairs: Repairs) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, without a byte order mark."""
    for number, line in read_lines(path):
        if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            repairs["files read as UTF-16"] += 1
            try:
                text = read_bytes(path).decode("utf-16")
            except UnicodeError as error:
                raise DataError(path, f"begins as UTF-16 but is not UTF-16 throughout: {error}") from error
            yield from enumerate((each.removesuffix("\r") for each in text.removesuffix("\n").split("\n")), start=1)
            return
        if number == 1 and line.startswith(codecs.BOM_UTF8):
            repairs["byte order marks left out"] += 1
            line = line.removeprefix(codecs.BOM_UTF8)
        yield number, _decode_line(line, path, number, repairs)


def _decode_line(line: bytes, path: Path, number: int, repairs: Repairs) -> str:
    with suppress(UnicodeDecodeError):
        return line.decode("utf-8")
    repairs["lines read as Windows-1252"] += 1
    try:
        return line.decode("cp1252")
    except UnicodeDecodeError as error:
        raise DataError(path, f"byte {line[error.start]:#04x} is neither UTF-8 nor Windows-1252", number) from error


def _parse_values(text: str, path: Path, number: int, repairs: Repairs) -> Iterator[Any]:
    place = 0
    while place < len(text):
        value, place = decode_json(text, path, number, place)
        whole = to_well_formed_value(value)
        repairs[LONE_SURROGATES] += whole != value
        yield whole
        place += len(_SEPARATORS.match(text, place)[0])  # type: ignore[index]


def check_id(id_: str, lines: dict[str, int], path: Path, number: int) -> None:
    """Check that no earlier line has this id, and record the line for the id.

    Raises:
        DataError: If an earlier line has this id.
    """
    if id_ in lines:
        raise DataError(path, f"the id {id_!r} is already used on line {lines[id_]}", number)
    lines[id_] = number


def read_entries(path: Path, repairs: Repairs) -> Iterator[tuple[int, PoolEntry]]:
    """Yield all entries of a file, including duplicates, each with its line number.

    A line is an object with at least a `text` or, as in the release, a string.

    Raises:
        DataError: If the file cannot be read or a line is invalid.
    """
    with add_study_advice(path, "text"):
        for number, value in read_json_values(path, repairs):
            values = {"text": value} if isinstance(value, str) else value
            if not isinstance(values, dict) or not isinstance(values.get("text"), str):
                raise DataError(
                    path, f"{_describe_value(value)}; a line must be a string or an object with a 'text'", number
                )
            if not (text := " ".join(values["text"].split())):
                repairs["empty texts left out"] += 1
                continue
            repairs["texts with stray spaces or line breaks repaired"] += text != values["text"]
            yield number, validate_model(PoolEntry, {"id": content_id(text), **values, "text": text}, path, number)


def read_pool(path: Path, repairs: Repairs | None = None) -> list[PoolEntry]:
    """Read a pool without duplicate texts, in the file's order.

    Args:
        path: The file.
        repairs: A counter to which repairs are added.

    Raises:
        DataError: If the file cannot be read, a line is invalid, two texts have the same id, or there is no text.
    """
    counts = Repairs() if repairs is None else repairs
    lines: dict[str, int] = {}
    entries: dict[str, PoolEntry] = {}
    for number, entry in read_entries(path, counts):
        if entry.text in entries:
            counts["repeated texts left out"] += 1
        else:
            check_id(entry.id, lines, path, number)
            entries[entry.text] = entry
    if not entries:
        raise DataError(path, "the pool contains no texts")
    return list(entries.values())


def write_pool(path: Path, entries: Iterable[PoolEntry], inputs: Iterable[Path] = ()) -> int:
    """Write a pool atomically, and return its size. The arguments are described in `write_personas`.

    Raises:
        OutputError: If the file is one of the inputs or an SQLite file, or cannot be written.
    """
    return write_lines(path, (entry.plain() for entry in entries), inputs)


def load_seeds(kind: PoolKind) -> list[PoolEntry]:
    """Return the seeds that dialoom ships."""
    return read_pool(Path(__file__).parent / "seeds" / f"{kind}.jsonl")


def _describe_value(value: Any) -> str:
    if isinstance(value, dict):
        return f"holds an object with {', '.join(map(repr, value)) or 'nothing'}"[:120]
    return f"holds {type(value).__name__} {json.dumps(value, ensure_ascii=False)[:40]}"


class Persona(Record):
    """A person described in plain English, with one sentence per fact or trait.

    Attributes:
        id: A hash of the two texts, unless the file gives another id.
        profile: The facts of the person's life.
        personality: The person's traits.
    """

    id: str = Field(min_length=1)
    profile: str = Field(min_length=1)
    personality: str = Field(min_length=1)

    @classmethod
    def of(cls, profile: str, personality: str) -> Persona:
        """Return the persona of a profile and a personality."""
        return cls(id=content_id(profile, personality), profile=profile, personality=personality)


def read_personas(path: Path, repairs: Repairs | None = None) -> list[Persona]:
    """Read the personas of a JSONL file in order. An object without an `id` gets an id derived from its content.

    Args:
        path: The file.
        repairs: A counter to which repairs are added.

    Raises:
        DataError: If the file cannot be read, a line is invalid, an id occurs twice, or there is no persona.
    """
    lines: dict[str, int] = {}
    personas: list[Persona] = []
    with add_study_advice(path, "profile", "personality"):
        for number, value in read_json_values(path, Repairs() if repairs is None else repairs):
            persona = _parse_persona(value, path, number)
            check_id(persona.id, lines, path, number)
            personas.append(persona)
    if not personas:
        advice = Advice("combine", "combine a pool of profiles and one of personalities", {"path": path})
        raise DataError(path, "contains no personas", advice=advice)
    return personas


def write_personas(path: Path, personas: Iterable[Persona], inputs: Iterable[Path] = ()) -> int:
    """Write a personas file atomically, and return the number of personas.

    Args:
        path: The file.
        personas: The file's content.
        inputs: The files from which it was made, which must not be overwritten.

    Raises:
        OutputError: If the file is one of the inputs or an SQLite file, or cannot be written.
    """
    return write_lines(path, (persona.model_dump() for persona in personas), inputs)


def combine(
    profiles: Sequence[PoolEntry], personalities: Sequence[PoolEntry], count: int, seed: int
) -> Iterator[Persona]:
    """Yield random pairs of a profile and a personality, without repeating a pair.

    Args:
        profiles: The pool of profiles.
        personalities: The pool of personalities.
        count: The number of pairs to yield.
        seed: The seed of the draw.

    Raises:
        ValueError: If fewer than `count` different pairs exist.
    """
    pairs = len(profiles) * len(personalities)
    if not 1 <= count <= pairs:
        raise ValueError(
            f"{count:,} personas cannot be made: {len(profiles):,} profiles and {len(personalities):,} personalities "
            f"give {pairs:,} pairs; give a number from 1 to {pairs:,}"
        )
    for chosen in random.Random(f"personas {seed}").sample(range(pairs), count):
        first, second = divmod(chosen, len(personalities))
        yield Persona.of(profiles[first].text, personalities[second].text)


def _parse_persona(value: Any, path: Path, number: int) -> Persona:
    if not isinstance(value, dict):
        raise DataError(
            path, f"holds {type(value).__name__}; each line must be an object with profile and personality", number
        )
    values = {key: " ".join(part.split()) if isinstance(part, str) else part for key, part in value.items()}
    own_id = content_id(str(values.get("profile")), str(values.get("personality")))
    return validate_model(Persona, {"id": own_id, **values}, path, number)
