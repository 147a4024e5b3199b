"""A preference and a question that a good answer would probably answer against it."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

Form = Literal["explicit", "choice", "persona"]
FORMS: tuple[Form, ...] = get_args(Form)


class ChatLine(BaseModel):
    """A line of a fixed conversation."""

    model_config = ConfigDict(frozen=True)
    speaker: Literal["user", "assistant"]
    content: str


class PreferencePair(BaseModel):
    """A preference p in one of its forms, and a later question q.

    Attributes:
        topic: E.g. `travel_hotel`.
        index: The row in the topic's files, from 0; topic and index name a pair, as texts may occur twice.
        form: How p is told: `explicit`, `choice` or `persona`.
        preference: The sentence p, as the form's own file has it.
        question: q.
        explanation: Why a usual answer to q goes against p; may be empty.
        talk: How p is told where it is no single sentence: user and assistant in turn. Empty for `explicit`.
        choices: The options of the talk of a choice, the fitting one first; empty where the source has none.
        persona: Who tells it in the form `persona`; empty where the source does not say.
        options: The four answers of the classification task, the right one first; empty where the source has none.
        conflicting: A preference that p contradicts and that came before it; empty where the source has none.
    """

    model_config = ConfigDict(frozen=True)
    topic: str
    index: int
    form: Form
    preference: str
    question: str
    explanation: str = ""
    talk: tuple[ChatLine, ...] = ()
    choices: tuple[str, ...] = ()
    persona: str = ""
    options: tuple[str, ...] = ()
    conflicting: str = ""

    @property
    def id(self) -> str:
        """What it is called: topic and row, in every form the same."""
        return f"{self.topic}-{self.index}"
