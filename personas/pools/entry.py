"""One text of a pool: what it says, and where it came from."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

PoolKind = Literal["profile", "personality"]
KINDS: tuple[PoolKind, ...] = get_args(PoolKind)
PLURALS = {"profile": "profiles", "personality": "personalities"}


def content_id(*texts: str) -> str:
    """An id that follows from texts: 12 hex digits of their SHA-256."""
    return hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


class PoolEntry(BaseModel):
    """A profile or a personality, as a line of a pool file holds it.

    Attributes:
        id: From the text, unless somebody gave another one.
        text: English, one sentence a fact or trait.
        round: The round that wrote it; seeds have 0.
        neighbour: The id of the most similar entry that was kept before it; `None` for the first, and if unknown.
        similarity: The cosine similarity to that one, rounded to four digits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    round: int = Field(0, ge=0)
    neighbour: str | None = None
    similarity: float | None = Field(None, ge=-1.0, le=1.0)

    @classmethod
    def of(cls, text: str, round_: int = 0, neighbour: str | None = None, similarity: float | None = None) -> PoolEntry:
        """The entry of a text."""
        rounded = None if similarity is None else round(similarity, 4)
        return cls(id=content_id(text), text=text, round=round_, neighbour=neighbour, similarity=rounded)

    def plain(self) -> dict[str, Any]:
        """As JSON values, in the order in which files show them."""
        return self.model_dump(mode="json")
