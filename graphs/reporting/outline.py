"""An outcome that is more than one conversation, as an outline: free of how it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Style = Literal["plain", "heading", "user", "assistant", "note", "new"]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text and what it is: a line of a `user` or an `assistant`, a `note`, or something `new`."""

    text: str
    style: Style = "plain"


@dataclass(slots=True)
class Outline:
    """A line and what stands below it.

    Attributes:
        spans: The line, in pieces.
        parts: Outlines one step further in.
    """

    spans: list[Span]
    parts: list[Outline] = field(default_factory=list)
