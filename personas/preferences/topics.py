"""What pairs are built from: topics with their subtopics, people to tell them, and rated examples."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from .draft import PairRating, Text
from .json_rows import read_models

_SAMPLES = Path(__file__).parent / "samples"
SHIPPED_TOPICS = _SAMPLES / "topics.json"
SHIPPED_TELLERS = _SAMPLES / "personas.json"
SHIPPED_RATED = _SAMPLES / "rated_pairs.json"


class PairTopic(BaseModel):
    """A topic of pairs: its name, which becomes a file's, what belongs to it, and its parts."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    topic: Text
    description: str = ""
    subtopics: tuple[Text, ...] = ()


class Teller(BaseModel):
    """Somebody whose own affairs a talk is about, in a line that gives no preference away."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    persona: Text


class RatedPair(PairRating):
    """A pair that people have rated, as an example for a rater."""

    preference: Text
    question: Text


def read_topics(path: Path | None = None) -> list[PairTopic]:
    """The topics of a file; without one, those that come with dialoom.

    Raises:
        DataError: If the file or a row is wrong, or a topic stands there twice.
    """
    return read_models(path or SHIPPED_TOPICS, PairTopic, once="topic")


def read_tellers(path: Path | None = None) -> list[str]:
    """The personas of a file; without one, those that come with dialoom.

    Raises:
        DataError: If the file or a row is wrong, or a persona stands there twice.
    """
    return [each.persona for each in read_models(path or SHIPPED_TELLERS, Teller, once="persona")]


def read_rated(path: Path | None = None) -> list[RatedPair]:
    """The rated examples of a file; without one, those that come with dialoom.

    Raises:
        DataError: If the file or a row is wrong.
    """
    return read_models(path or SHIPPED_RATED, RatedPair)
