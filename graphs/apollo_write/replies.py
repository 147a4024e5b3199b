"""Reply types of the writer, the checker and the solver, with the rules that reject a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dialoom.personas.apollo.source import PreferenceForm, Speech
from dialoom.personas.apollo.source.drafts import Text
from dialoom.personas.apollo.tools import Value


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True)


class WrittenProfile(_Reply):
    """Who a user is."""

    name: Text
    gender: Text
    age: Annotated[int, Field(ge=16, le=99)]
    persona: Text


class ChosenPreferences(_Reply):
    """Which of some preferences are a user's, by number, and how each came about."""

    choice: Annotated[int, Field(ge=1)]
    stories: Annotated[list[Text], Field(min_length=1)]


class WrittenTurn(_Reply):
    """A turn of words."""

    speaker: Literal["user", "assistant"]
    text: Text

    def speech(self) -> Speech:
        """As sessions keep it."""
        return Speech(speaker=self.speaker, text=self.text)


class WrittenCall(_Reply):
    """A call; whether it can run, the executor says."""

    name: str
    arguments: dict[str, Any]


class WrittenPiece(_Reply):
    """A session's next turns, and the call that ends them; without one the session is over."""

    turns: list[WrittenTurn]
    call: WrittenCall | None = None


class WrittenQuery(_Reply):
    """What is asked later."""

    query: Text


class CheckedDraft(_Reply):
    """A checker's word on something."""

    explanation: str = ""
    verdict: Literal["right", "wrong"]


class FacetValue(_Reply):
    """What somebody takes the value of a facet to be; none if it is not told."""

    facet: str
    value: Value | None = None


class ReadTalk(_Reply):
    """What a reader makes of a session: the values it tells, in which form, and whether anything is wrong with it."""

    facets: list[FacetValue]
    form: PreferenceForm
    explanation: str = ""
    verdict: Literal["right", "wrong"] = "right"


class GuessedValues(_Reply):
    """What somebody takes who has not read the history."""

    facets: list[FacetValue]


REPLY_TYPES: Mapping[str, type[BaseModel]] = {
    "written-profile": WrittenProfile,
    "chosen-preferences": ChosenPreferences,
    "written-piece": WrittenPiece,
    "written-query": WrittenQuery,
    "checked-draft": CheckedDraft,
    "read-talk": ReadTalk,
    "guessed-values": GuessedValues,
}
