"""A source folder: users, their sessions, and pairs of a session and a query, as JSONL files that people can mend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dialoom.errors import first_problem
from dialoom.outputs import folder_output
from dialoom.personas.errors import DataError
from dialoom.personas.mending import Mendings
from dialoom.personas.pools.lines import values_of
from dialoom.personas.writing import json_line

from ..world import World
from .pair import ApolloPair, ApolloUser
from .session import ApolloSession

VERSION = 1
USERS, SESSIONS, PAIRS, META = "users.jsonl", "sessions.jsonl", "pairs.jsonl", "meta.jsonl"
M = TypeVar("M", bound=BaseModel)


class ApolloMeta(BaseModel):
    """What a source folder was made with.

    Attributes:
        version: Of the folder's layout.
        maker: `scripted` from templates, or `written` by models and people.
        seed: What it was drawn with.
        world_seed: The world's seed.
        world: The world's hash: calls and outputs are true in this world only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    version: int = Field(default=VERSION, ge=VERSION, le=VERSION)
    maker: Literal["scripted", "written"] = "scripted"
    seed: int
    world_seed: int = 0
    world: str


@dataclass(frozen=True)
class ApolloSource:
    """Users, sessions and pairs, in the order of their files.

    Attributes:
        users: By id.
        sessions: By id.
        pairs: By id.
        meta: What they were made with.
    """

    users: Mapping[str, ApolloUser]
    sessions: Mapping[str, ApolloSession]
    pairs: Mapping[str, ApolloPair]
    meta: ApolloMeta

    @classmethod
    def of(
        cls,
        users: Iterable[ApolloUser],
        sessions: Iterable[ApolloSession],
        pairs: Iterable[ApolloPair],
        meta: ApolloMeta,
    ) -> ApolloSource:
        """The source of these."""
        by_user, by_session, by_pair = ({one.id: one for one in several} for several in (users, sessions, pairs))
        return cls(by_user, by_session, by_pair, meta)  # type: ignore[arg-type]

    @cached_property
    def world(self) -> World:
        """The world that its calls are made in."""
        return World(self.meta.world_seed)

    @cached_property
    def unrelated(self) -> Mapping[str, Sequence[ApolloSession]]:
        """Every user's sessions in which no preference is told."""
        found: dict[str, list[ApolloSession]] = {user: [] for user in self.users}
        for session in self.sessions.values():
            if session.kind == "unrelated":
                found[session.user].append(session)
        return found

    @cached_property
    def pairs_for(self) -> Mapping[tuple[str, str], Sequence[ApolloPair]]:
        """The pairs of each user and flow."""
        found: dict[tuple[str, str], list[ApolloPair]] = {}
        for pair in self.pairs.values():
            found.setdefault((pair.user, pair.flow), []).append(pair)
        return found


def read_source(folder: Path) -> ApolloSource:
    """The source that a folder holds.

    Raises:
        DataError: If a file is missing or broken, names what is not there, or belongs to another world.
    """
    meta_lines = _read(folder / META, ApolloMeta)
    users, sessions, pairs = (
        _read(folder / USERS, ApolloUser),
        _read(folder / SESSIONS, ApolloSession),
        _read(folder / PAIRS, ApolloPair),
    )
    source = ApolloSource.of(
        (user for _, user in users), (session for _, session in sessions), (pair for _, pair in pairs), meta_lines[0][1]
    )
    if source.meta.world != source.world.hash:
        made, here = source.meta.world[:12], source.world.hash[:12]
        raise DataError(
            folder / META, f"made in the world {made}..., and this version's is {here}...: make the source anew", 1
        )
    return source


def write_source(folder: Path, source: ApolloSource) -> None:
    """Write a source as a new folder, whole or not at all.

    Raises:
        OutputError: If the folder is there and is not empty, or cannot be written.
    """
    files: dict[str, Iterable[BaseModel]] = {
        USERS: source.users.values(),
        SESSIONS: source.sessions.values(),
        PAIRS: source.pairs.values(),
        META: [source.meta],
    }
    with folder_output(folder) as made:
        for name, models in files.items():
            with made.text(name) as file:
                file.writelines(json_line(model.model_dump()) for model in models)


def _read(path: Path, model: type[M]) -> list[tuple[int, M]]:
    """The models of a file with their lines."""
    found, ids = [], dict[Any, int]()
    for number, value in values_of(path, Mendings()):
        try:
            read = model.model_validate(value)
        except ValidationError as error:
            place, message, wrong = first_problem(error)
            raise DataError(path, f"{place or 'the line'}: {message}, and not {wrong!r:.60}", number) from error
        named = getattr(read, "id", None)
        if named in ids:
            raise DataError(path, f"{named!r} is also the name of line {ids[named]}", number)
        ids[named] = number
        found.append((number, read))
    if not found:
        raise DataError(path, "holds nothing")
    return found
