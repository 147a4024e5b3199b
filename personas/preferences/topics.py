"""The inputs from which pairs are generated: topics, editable drafts, and pools of unrelated chats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from dialoom.inputs import DataError, Record
from dialoom.personas.pools import content_id

from .pairs import CHOICE_TALK, ChatLine, Form, PreferencePair, read_models, read_rows, text_of

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Level = Literal["high", "medium", "low"]
Validity = Literal["valid", "contradicts", "fits", "lacks_facts"]


def _different(texts: tuple[str, ...]) -> tuple[str, ...]:
    if len({text.casefold() for text in texts}) < len(texts):
        raise ValueError("the options must differ")
    return texts


FourTexts = Annotated[tuple[Text, ...], Field(min_length=4, max_length=4), AfterValidator(_different)]


class PairRating(BaseModel):
    """What a rater says of a pair.

    Attributes:
        discard: Whether it is of no use.
        violation_probability: How likely an answer that does not know the preference goes against it.
        reasoning_difficulty: How much thought it takes to see what the preference means for the question.
    """

    model_config = ConfigDict(frozen=True)
    discard: bool
    violation_probability: Level
    reasoning_difficulty: Literal["high", "low"]


class ChoiceTalk(Record):
    """Two turns in which a preference shows through what the user chooses; the keys are those of the release."""

    query: Text
    assistant_options: Text
    user_selection: Text
    assistant_acknowledgment: Text


class TalkTurn(Record):
    """A message of the user's and the assistant's reply."""

    user: Text
    assistant: Text


class Draft(Record):
    """A draft of a pair. Fields that no stage has filled yet are empty, and people may fill them in.

    Attributes:
        topic: The topic.
        preference: The preference p.
        question: The question q.
        explanation: The reason for which a usual answer to q contradicts p.
        text_id: The hash of the preference and the question that the other fields were made for; empty in a user's own
            row.
        dropped: The reason for which it was dropped; empty if it was not.
        chosen: Whether it is kept regardless of filters and thresholds.
        validity: The result of the validity check.
        violation_rate: The share of answers without knowledge of p that contradict it.
        rating: The rater's result.
        options: The options in the talk of a choice, the fitting one first.
        choice_conversation: The talk of a choice.
        persona: The persona that states p in the form `persona`.
        persona_conversation: The talk in which the persona states it.
        classification_task_options: Four answers to q, the right one first.
        conflicting_preference: An earlier preference that p contradicts.
    """

    topic: Text
    preference: Text
    question: Text
    explanation: str = ""
    text_id: str = ""
    dropped: str = ""
    chosen: bool = False
    validity: Validity | None = None
    violation_rate: float | None = Field(None, ge=0, le=1)
    rating: PairRating | None = None
    options: FourTexts | None = None
    choice_conversation: ChoiceTalk | None = None
    persona: str = ""
    persona_conversation: Annotated[tuple[TalkTurn, ...], Field(min_length=2)] | None = None
    classification_task_options: FourTexts | None = None
    conflicting_preference: str = ""

    @property
    def own_id(self) -> str:
        """The value of `text_id` if the pair has not been edited."""
        return content_id(self.preference, self.question)

    @property
    def is_complete(self) -> bool:
        """Return whether it was not dropped, and has all forms and options."""
        made = (self.choice_conversation, self.persona_conversation, self.classification_task_options)
        return not self.dropped and all(made) and bool(self.conflicting_preference)

    def renewed(self) -> Draft:
        """Return the draft; after an edit of the pair, only the pair itself, so that all stages run again."""
        if self.text_id in ("", self.own_id):
            return self.model_copy(update={"dropped": ""}) if self.chosen else self
        return Draft(topic=self.topic, preference=self.preference, question=self.question, explanation=self.explanation)

    def pair(self, form: Form, index: int) -> PreferencePair:
        """Return the pair in a form, which must have been made."""
        talk: tuple[str, ...] = ()
        if form == "choice" and self.choice_conversation is not None:
            talk = tuple(getattr(self.choice_conversation, key) for key in CHOICE_TALK)
        elif form == "persona":
            talk = tuple(text for turn in self.persona_conversation or () for text in (turn.user, turn.assistant))
        return PreferencePair(
            topic=self.topic,
            index=index,
            form=form,
            preference=self.preference,
            question=self.question,
            explanation=self.explanation,
            talk=tuple(
                ChatLine(speaker="assistant" if place % 2 else "user", content=text) for place, text in enumerate(talk)
            ),
            choices=self.options or () if form == "choice" else (),
            persona=self.persona if form == "persona" else "",
        )


def read_drafts(path: Path) -> Iterator[Draft]:
    """Read the drafts of a file, or of a folder's files in alphabetical order; JSON lists, or one object per line.

    Raises:
        DataError: If there is no draft, or a row is invalid; it names the file, the row and the correct form.
    """
    paths = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not paths:
        raise DataError(path, "holds no .json file; give a folder of drafts, or a file")
    for each in paths:
        yield from read_models(each, Draft)


_SAMPLES = Path(__file__).parent / "samples"
SHIPPED_TOPICS = _SAMPLES / "topics.json"
SHIPPED_TELLERS = _SAMPLES / "personas.json"
SHIPPED_RATED = _SAMPLES / "rated_pairs.json"


class PairTopic(Record):
    """A topic of pairs: its name, which is also the file's, its description, and its subtopics."""

    topic: Text
    description: str = ""
    subtopics: tuple[Text, ...] = ()


class Teller(Record):
    """A persona for talks about its own affairs, in a line that reveals no preference."""

    persona: Text


class RatedPair(PairRating):
    """A pair rated by people, as an example for a rater."""

    preference: Text
    question: Text


def read_topics(path: Path | None = None) -> list[PairTopic]:
    """Read the topics of a file, by default the shipped ones.

    Raises:
        DataError: If the file or a row is invalid, or a topic occurs twice.
    """
    return read_models(path or SHIPPED_TOPICS, PairTopic, once="topic")


def read_tellers(path: Path | None = None) -> list[str]:
    """Read the personas of a file, by default the shipped ones.

    Raises:
        DataError: If the file or a row is invalid, or a persona occurs twice.
    """
    return [each.persona for each in read_models(path or SHIPPED_TELLERS, Teller, once="persona")]


def read_rated(path: Path | None = None) -> list[RatedPair]:
    """Read the rated examples of a file, by default the shipped ones.

    Raises:
        DataError: If the file or a row is invalid.
    """
    return read_models(path or SHIPPED_RATED, RatedPair)


DEFAULT_POOL = Path(__file__).parent / "samples" / "filtered_inter_turns.json"
_SPEAKERS = ("user", "assistant")


def read_chats(path: Path) -> list[list[ChatLine]]:
    """Read the chats of a pool, in order; in each, user and assistant strictly alternate, ending with the assistant.

    A pool's own counts (`turn`) are ignored: in the release, ten of 24 are wrong.

    Raises:
        DataError: If the file is broken; it names the chat and the message.
    """
    return [list(_utterances(path, number, row)) for number, row in enumerate(read_rows(path))]


def _utterances(path: Path, number: int, row: dict[str, Any]) -> Iterator[ChatLine]:
    messages = row.get("conversation")
    if not isinstance(messages, list) or not messages or len(messages) % 2:
        raise DataError(path, f"chat {number}: 'conversation' is no list of messages of user and assistant in turn")
    for place, message in enumerate(messages):
        wanted = _SPEAKERS[place % 2]
        if not isinstance(message, dict) or message.get("role") != wanted:
            found = message.get("role") if isinstance(message, dict) else message
            raise DataError(path, f"chat {number}, message {place}: {found!r:.60} where the {wanted} speaks")
        yield ChatLine(speaker=wanted, content=text_of(path, f"chat {number}, message {place}", message, "content"))
