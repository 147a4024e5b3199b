"""A past session: what a user and an assistant said, which tools were called, and what they answered."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..tools import Value
from .words import stems


class Speech(BaseModel):
    """A turn of words."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    speaker: Literal["user", "assistant"]
    text: str = Field(min_length=1)

    def lines(self) -> tuple[str, ...]:
        """As a history shows it."""
        return (f"{self.speaker}: {self.text}",)


class PastCall(BaseModel):
    """A turn of the assistant's that is a call, and what the tool answered."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    arguments: dict[str, Value]
    output: dict[str, Any] | list[dict[str, Any]]

    def call(self) -> dict[str, Any]:
        """As it was made."""
        return {"name": self.name, "arguments": self.arguments}

    def lines(self) -> tuple[str, ...]:
        """As a history shows it: JSON, the call and the output on a line each."""
        return _json({"call": self.call()}), _json({"output": self.output})


class ApolloSession(BaseModel):
    """One past conversation of a user with an assistant that has tools.

    Attributes:
        id: Its name in the source.
        user: Whose it is: the user's id.
        kind: Whether a preference is told in it.
        topic: Domain and first tool, such as `health/recipe_search`.
        turns: In order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str = Field(min_length=1)
    user: str
    kind: Literal["preference", "unrelated"]
    topic: str
    turns: tuple[PastCall | Speech, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that were called, each once, in order."""
        return tuple(dict.fromkeys(turn.name for turn in self.turns if isinstance(turn, PastCall)))

    @cached_property
    def asked(self) -> frozenset[str]:
        """Its calls, each as a line in which arguments are in the order of their names."""
        made = [turn.call() for turn in self.turns if isinstance(turn, PastCall)]
        return frozenset(json.dumps(call, ensure_ascii=False, sort_keys=True) for call in made)

    @property
    def words(self) -> str:
        """All that was said, without the calls."""
        return "\n".join(turn.text for turn in self.turns if isinstance(turn, Speech))

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """As a history shows it, without a number."""
        return tuple(line for turn in self.turns for line in turn.lines())

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words that it holds."""
        return stems("\n".join(self.lines))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
