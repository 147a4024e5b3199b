"""What the writer, the judge and the rater answer; what breaks a rule of its form is asked for again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dialoom.personas.preferences import ChoiceTalk, FourTexts, PairRating, TalkTurn, Text, Validity


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True)


class WrittenPair(_Reply):
    """A new pair."""

    preference: Text
    question: Text
    explanation: str = ""


class WrittenPairs(_Reply):
    """What a call for new pairs brings."""

    items: Annotated[list[WrittenPair], Field(min_length=1)]


class PairValidity(_Reply):
    """Whether a pair is one."""

    explanation: str = ""
    verdict: Validity


class EasierQuery(_Reply):
    """The question of the talk of a choice."""

    query: Text


class FourOptions(_Reply):
    """Four different texts, the right one first."""

    options: FourTexts


class OfferedChoice(_Reply):
    """What is said after the question of the talk of a choice."""

    assistant_options: Text
    user_selection: Text
    assistant_acknowledgment: Text

    def after(self, query: str) -> ChoiceTalk:
        """Return the whole talk."""
        return ChoiceTalk(query=query, **self.model_dump())


class PersonaNumber(_Reply):
    """Which of some people; 0 for none."""

    explanation: str = ""
    number: Annotated[int, Field(ge=0)]


class PersonaTalk(_Reply):
    """A talk, and the sentence in it that tells the preference: in one message of the user's, once."""

    turns: Annotated[tuple[TalkTurn, ...], Field(min_length=2)]
    passage: Text

    @model_validator(mode="after")
    def _told_once(self) -> PersonaTalk:
        told = sum(turn.user.count(self.passage) for turn in self.turns)
        if told != 1:
            raise ValueError(f"the passage stands {told} times in what the user says; once, word for word, is needed")
        if any(self.passage in turn.assistant for turn in self.turns):
            raise ValueError("the assistant repeats the passage; nobody but the user may say it")
        return self


class OtherPreference(_Reply):
    """A preference on the same matter."""

    preference: Text


REPLY_TYPES: Mapping[str, type[BaseModel]] = {
    "written-pairs": WrittenPairs,
    "pair-validity": PairValidity,
    "pair-rating": PairRating,
    "easier-query": EasierQuery,
    "four-options": FourOptions,
    "choice-talk": OfferedChoice,
    "persona-number": PersonaNumber,
    "persona-talk": PersonaTalk,
    "other-preference": OtherPreference,
}
