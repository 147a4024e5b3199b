"""A preference tree as `Outcome.details` holds it: rounds by their paths, and the conversation that leads to each.

A path is the replies that were followed to get to a round: a text of `p` (preferred) and `r` (rejected), empty for the
first round. `docs/design/aloe.md` describes the JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from dialoom.personas import Persona
from dialoom.prompts import ChatMessage

Step = Literal["p", "r"]


class Round(BaseModel):
    """One round: a message, the two replies to it, and which of them the conversation went on from.

    Attributes:
        path: The replies followed to get here.
        followed: `p`, `r`, or both where the tree forks.
        inferred_profile: What the induction had found of the profile by then; `None` if nothing.
        inferred_personality: The same of the personality.
        verified: Whether a judge names the preferred reply in both orders; `None` if no judge could be understood, or
            none was asked.
        named: What that judge named in both orders: `preferred` or `rejected`, or whatever stood at a place: `first`
            or `second`; `None` as above.
        broken_off: Why lines of it are not all that was to be said, in the provider's word, by role; most are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    path: str = Field(pattern=r"^[pr]*$")
    user: str
    preferred: str
    rejected: str
    followed: tuple[Step, ...] = Field(min_length=1, max_length=2)
    inferred_profile: str | None = None
    inferred_personality: str | None = None
    verified: bool | None = None
    named: Literal["preferred", "rejected", "first", "second"] | None = None
    broken_off: Mapping[Literal["user", "preferred", "rejected"], str] = {}

    @model_serializer(mode="wrap")
    def _plain(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what broke off where nothing did."""
        dumped: dict[str, Any] = dump(self)
        return {name: value for name, value in dumped.items() if name != "broken_off" or value}

    @property
    def number(self) -> int:
        """Which round of its conversation it is, from 1."""
        return len(self.path) + 1

    def reply(self, step: str) -> str:
        """The preferred reply for `p`, the rejected one for `r`."""
        return self.preferred if step == "p" else self.rejected


class Tree(BaseModel):
    """A persona and its rounds, ordered by length of path, then path: a round stands behind the one it goes on from."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))
    persona: Persona
    rounds: tuple[Round, ...]

    @model_validator(mode="after")
    def _check_paths(self) -> Self:
        """Every round but the first goes on from a reply that was followed."""
        paths = [each.path for each in self.rounds]
        if paths != sorted(set(paths), key=lambda path: (len(path), path)):
            raise ValueError(f"rounds are ordered by length of path, then path, each once; these are {paths}")
        for path in paths:
            if path and (path[:-1] not in self._by_path or path[-1] not in self._by_path[path[:-1]].followed):
                raise ValueError(f"round {path!r} goes on from a reply that was not followed")
        return self

    @cached_property
    def _by_path(self) -> dict[str, Round]:
        return {each.path: each for each in self.rounds}

    def __getitem__(self, path: str) -> Round:
        return self._by_path[path]

    def along(self, path: str) -> list[Round]:
        """The rounds on the way to a path, or to a leaf: those whose replies its letters say."""
        return [self._by_path[path[:length]] for length in range(len(path))]

    def history(self, path: str) -> list[ChatMessage]:
        """What had been said when a path was reached: each message, and the reply to it that was followed."""
        said: list[ChatMessage] = []
        for each, step in zip(self.along(path), path, strict=True):
            said.append({"role": "user", "content": each.user})
            said.append({"role": "assistant", "content": each.reply(step)})
        return said

    def leaves(self) -> Iterator[str]:
        """The paths of whole conversations, their last reply included; preferred before rejected at a fork."""
        ends = [each.path + step for each in self.rounds for step in each.followed]
        yield from sorted(path for path in ends if path not in self._by_path)
