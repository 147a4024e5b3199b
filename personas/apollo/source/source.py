"""A source folder: users, their sessions, and pairs of a session and a query, as JSONL files that people can mend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dialoom.outputs import folder_output
from dialoom.personas.writing import json_line

from ..world import World
from .pair import ApolloPair, ApolloUser
from .session import ApolloSession

VERSION = 1
USERS, SESSIONS, PAIRS, META = "users.jsonl", "sessions.jsonl", "pairs.jsonl", "meta.jsonl"


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
        return cls(
            {user.id: user for user in users},
            {session.id: session for session in sessions},
            {pair.id: pair for pair in pairs},
            meta,
        )

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
