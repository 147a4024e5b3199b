"""An outcome that is more than one conversation, as an outline: free of how it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Style = Literal["plain", "heading", "user", "assistant", "note", "new"]

Kind = Literal["line", "step", "option", "branch"]
"""What a part of an outline is, for whoever draws it as a tree: steps follow each other; the options of a step stand
side by side in it; and where it forks, branches stand side by side after it."""


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
        kind: What it is.
        is_taken: Of an option, that it was gone on from; of a step or a branch, that the outcome's messages lead there.
        where: A step's place, as the faults that stand there name it.
    """

    spans: list[Span]
    parts: list[Outline] = field(default_factory=list)
    kind: Kind = "line"
    is_taken: bool = False
    where: str = ""

    @property
    def text(self) -> str:
        """The line without its styles."""
        return "".join(span.text for span in self.spans)

    @property
    def is_tree(self) -> bool:
        """Whether there are steps in it."""
        return any(part.kind == "step" or part.is_tree for part in self.parts)
