"""What a chat line is about: a few dozen corners of a daily life, known by their words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from .words import stem, telling


@dataclass(frozen=True)
class Subject:
    """One corner of a life, and what people say about it. All remarks are true of nearly anybody who mentions it.

    Attributes:
        name: Its name.
        circle: The larger circle that it belongs to; what belongs together follows naturally in a chat.
        named_by: Words that name it.
        things: Those among them that one can have: `your cello`.
        says: What its owner adds.
        again: What its owner says when coming back to it.
        reacts: What a friend remarks.
        asks: What a friend asks.
        plain: What a form letter says.
    """

    name: str
    circle: str
    named_by: str
    things: str
    says: tuple[str, ...]
    again: tuple[str, ...]
    reacts: tuple[str, ...]
    asks: tuple[str, ...]
    plain: tuple[str, ...]

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of `named_by` and `things`."""
        return frozenset(stem(word) for word in f"{self.named_by} {self.things}".split())


@lru_cache(maxsize=4096)
def subject_of(text: str) -> Subject:
    """Give the subject that most words of a text name; the earlier word decides between equals."""
    from .subjectbank import ANYTHING, SUBJECTS

    words = telling(text)
    best = max(SUBJECTS, key=lambda subject: len(words & subject.words))
    if not words & best.words:
        return ANYTHING
    return best
