"""Preference pairs and their reader, and the data from which pairs are generated: topics, personas, drafts, chats."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, StringConstraints

from dialoom.grouping import group_pairs
from dialoom.inputs import DataError, Frozen, Model, Record, parse_json, read_text, validate_model
from dialoom.personas.pools import content_id
from dialoom.personas.rows import add_study_advice
from dialoom.text import to_well_formed_value

Form = Literal["explicit", "choice", "persona"]
FORMS: tuple[Form, ...] = get_args(Form)


class ChatLine(Frozen):
    """A line of a fixed conversation."""

    speaker: Literal["user", "assistant"]
    content: str


class PreferencePair(Frozen):
    """A preference p in one of its forms, and a question q that is asked later.

    Attributes:
        topic: E.g. `travel_hotel`.
        index: The row in the topic's files, from 0. Topic and index identify a pair, because texts may occur twice.
        form: The form of p: `explicit`, `choice` or `persona`.
        preference: The sentence p, as in the file of the form.
        question: The question q.
        explanation: The reason why a usual answer to q contradicts p; may be empty.
        talk: The conversation that states p, user and assistant in turn; empty for `explicit`.
        choices: The options in the talk of a choice, with the fitting one first; empty if the source has none.
        persona: The persona of the form `persona`; empty if the source has none.
        options: The four answers of the classification task, with the right one first; empty if the source has none.
        conflicting: An earlier preference that p contradicts; empty if the source has none.
    """

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
        """The pair's id, made of topic and row. It is the same for every form."""
        return f"{self.topic}-{self.index}"


CHOICE_TALK_KEYS = ("query", "assistant_options", "user_selection", "assistant_acknowledgment")
"""The keys of the messages in the talk of a choice. The user and the assistant speak in turn; the user begins."""


def build_row(pair: PreferencePair) -> dict[str, Any]:
    """Return the pair as a row of the release's file for its form."""
    contents = [line.content for line in pair.talk]
    row = build_common_columns(pair)
    if pair.form == "choice":
        options = {"options": list(pair.choices), "aligned_op": pair.choices[0]} if pair.choices else {}
        row |= {
            "implicit_query": contents[0],
            **options,
            "conversation": dict(zip(CHOICE_TALK_KEYS, contents, strict=True)),
        }
    elif pair.form == "persona":
        turns = [dict(zip(_SPEAKERS, turn, strict=True)) for turn in zip(contents[::2], contents[1::2], strict=True)]
        persona = {"persona": pair.persona} if pair.persona else {}
        row |= {**persona, "conversation": {str(number): turn for number, turn in enumerate(turns)}}
    return row


def build_common_columns(pair: PreferencePair) -> dict[str, Any]:
    """Return the texts that the rows of a pair contain in every file."""
    return {"preference": pair.preference, "question": pair.question, "explanation": pair.explanation}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON list, or of a file with one object per line.

    Raises:
        DataError: If the file cannot be read or has other contents.
    """
    text = read_text(path)
    lines = enumerate(text.split("\n"), start=1)  # JSON text may contain other line separators
    is_list = text.lstrip().startswith("[")
    rows = parse_json(text, path) if is_list else [parse_json(each, path, at) for at, each in lines if each.strip()]
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DataError(path, f"row {number} is {row!r:.60}; each row must be an object")
    return [dict(to_well_formed_value(row)) for row in rows]


def read_models(path: Path, type_: type[Model], *, once: str = "") -> list[Model]:
    """Read a file's rows as objects of a model. There must be at least one row.

    Args:
        path: The file.
        type_: The type of the rows.
        once: A key whose values must be unique.

    Raises:
        DataError: If the file cannot be read or has no rows, or a row is invalid or a duplicate.
    """
    found: list[Model] = []
    places: dict[Any, int] = {}
    for number, row in enumerate(read_rows(path)):
        found.append(validate_model(type_, row, path, part=f"row {number}"))
        if once and (first := places.setdefault(row[once], number)) != number:
            raise DataError(path, f"row {number}: {once} {row[once]!r:.60} is also in row {first}")
    if not found:
        raise DataError(path, "contains no rows")
    return found


def get_text(path: Path, place: str, row: dict[str, Any], key: str, default: str | None = None) -> str:
    """Return the string that a row has under a key, without surrounding spaces.

    Raises:
        DataError: If the value is not a string; if there is no default, also if it is missing or empty.
    """
    value = row.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        found = "missing" if key not in row else f"{value!r:.60}"
        raise DataError(path, f"{place}: {key!r} is {found}; it must be a string")
    return value.strip()


FOLDERS: dict[Form, str] = {
    "explicit": "explicit_preference",
    "choice": "implicit_preference/choice-based",
    "persona": "implicit_preference/persona-driven",
}
OPTIONS_FOLDER = "mcq_options"
_SPEAKERS = ("user", "assistant")
OPTION_COUNT = 4


def sample_pairs() -> PreferencePairs:
    """Return the pairs that dialoom ships."""
    return PreferencePairs(Path(__file__).parent / "samples")


class PreferencePairs:
    """A source of pairs.

    Args:
        path: A folder in the release's layout (or the folder above its `benchmark_dataset`), or a file.

    Raises:
        DataError: If the path is neither a folder in this layout nor a file.
    """

    def __init__(self, path: Path) -> None:
        inner = path / "benchmark_dataset"
        self.path = inner if inner.is_dir() else path
        self._own: dict[str, list[dict[str, Any]]] | None = None
        if not path.exists():
            raise DataError(path, "there is no such folder or file")
        if self.path.is_file():
            self._own = _read_by_topic(self.path)
        elif not (self.path / FOLDERS["explicit"]).is_dir():
            raise DataError(path, f"has no folder {FOLDERS['explicit']}; give PrefEval's benchmark_dataset, or a file")

    def topics(self) -> list[str]:
        """Return all topics in alphabetical order.

        Raises:
            DataError: If there are no topics.
        """
        if self._own is not None:
            return sorted(self._own)
        folder = self.path / FOLDERS["explicit"]
        if not (topics := sorted(path.stem for path in folder.glob("*.json"))):
            raise DataError(folder, "contains no topics; each topic needs a file <topic>.json")
        return topics

    def pairs(self, topic: str, form: Form, *, with_options: bool = False) -> Iterator[PreferencePair]:
        """Yield a topic's pairs in one form, in the order of their rows.

        Args:
            topic: The topic.
            form: The form.
            with_options: Whether the four options are needed.

        Raises:
            DataError: If a file is missing or broken. The message states the file, the row and the correct form.
        """
        path, rows = self._rows(topic, FOLDERS[form])
        options = self._options(topic, len(rows)) if with_options else [()] * len(rows)
        first, explicit = self._rows_of(topic, FOLDERS["explicit"], len(rows))
        conflicts = [get_text(first, f"row {at}", row, "conflicting_preference", "") for at, row in enumerate(explicit)]
        for index, row in enumerate(rows):
            place, listed = f"row {index}", row.get("options") if form == "choice" else None
            yield PreferencePair(
                topic=topic,
                index=index,
                form=form,
                preference=get_text(path, place, row, "preference"),
                question=get_text(path, place, row, "question"),
                explanation=get_text(path, place, row, "explanation", ""),
                talk=_parse_talk(path, place, row, form),
                choices=tuple(listed) if isinstance(listed, list) and all(map(_is_text, listed)) else (),
                persona=get_text(path, place, row, "persona", "") if form == "persona" else "",
                options=options[index],
                conflicting=conflicts[index],
            )

    def _rows(self, topic: str, folder: str) -> tuple[Path, list[dict[str, Any]]]:
        if self._own is not None:
            return self.path, self._own[topic]
        path = self.path / folder / f"{topic}.json"
        return path, read_rows(path)

    def _rows_of(self, topic: str, folder: str, count: int) -> tuple[Path, list[dict[str, Any]]]:
        """Return the path and the rows of another file of a topic, which must have `count` rows."""
        path, rows = self._rows(topic, folder)
        if len(rows) != count:
            message = f"has {len(rows)} rows where the topic's other file has {count}; row i of each file must belong"
            raise DataError(path, f"{message} to the same pair")
        return path, rows

    def _options(self, topic: str, count: int) -> list[tuple[str, ...]]:
        path, rows = self._rows_of(topic, OPTIONS_FOLDER, count)
        found = []
        for index, row in enumerate(rows):
            options = row.get("classification_task_options")
            if not isinstance(options, list) or len(options) != OPTION_COUNT or not all(map(_is_text, options)):
                what = f"{len(options)} options" if isinstance(options, list) else f"{options!r:.60}"
                raise DataError(path, f"row {index}: 'classification_task_options' are {what}; they must be four texts")
            found.append(tuple(option.strip() for option in options))
        return found


def _parse_talk(path: Path, place: str, row: dict[str, Any], form: Form) -> tuple[ChatLine, ...]:
    """Return the conversation that states p: the two turns of a choice, or a persona's talk."""
    if form == "explicit":
        return ()
    talk = row.get(f"{form}_conversation", row.get("conversation"))
    if not isinstance(talk, dict) or not talk:
        raise DataError(path, f"{place}: 'conversation' is {talk!r:.60}; it must be an object for the form {form}")
    if form == "choice":
        lines = [(_SPEAKERS[at % 2], get_text(path, place, talk, key)) for at, key in enumerate(CHOICE_TALK_KEYS)]
    else:
        lines = []
        for number in range(len(talk)):
            turn = talk.get(str(number))
            if not isinstance(turn, dict):
                raise DataError(path, f"{place}: 'conversation' has no turn {str(number)!r}; turns count from '0'")
            lines += [(speaker, get_text(path, f"{place}, turn {number}", turn, speaker)) for speaker in _SPEAKERS]
    return tuple(ChatLine.model_validate({"speaker": speaker, "content": content}) for speaker, content in lines)


@lru_cache(maxsize=2)
def _read_by_topic(path: Path) -> dict[str, list[dict[str, Any]]]:
    rows = enumerate(read_rows(path))
    by_topic = group_pairs((get_text(path, f"row {number}", row, "topic"), row) for number, row in rows)
    if not by_topic:
        raise DataError(path, "contains no pairs")
    return by_topic


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Validity = Literal["valid", "contradicts", "fits", "lacks_facts"]


def _check_distinct(texts: tuple[str, ...]) -> tuple[str, ...]:
    if len({text.casefold() for text in texts}) < len(texts):
        raise ValueError("the options must differ")
    return texts


FourTexts = Annotated[tuple[Text, ...], Field(min_length=4, max_length=4), AfterValidator(_check_distinct)]


class PairRating(Frozen):
    """What a rater says of a pair.

    Attributes:
        discard: Whether it is of no use.
        violation_probability: How likely an answer that does not know the preference goes against it.
        reasoning_difficulty: How much thought it takes to see what the preference means for the question.
    """

    discard: bool
    violation_probability: Literal["high", "medium", "low"]
    reasoning_difficulty: Literal["high", "low"]


class ChoiceTalk(Record):
    """Two turns in which the user's choice reveals a preference; the keys are those of the release."""

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
        explanation: The reason why a usual answer to q contradicts p.
        text_id: The hash of the preference and question for which the other fields were made; empty in rows that users
            write.
        dropped: The reason why the draft was dropped; empty if it was not.
        chosen: Whether the draft is kept regardless of filters and thresholds.
        validity: The result of the validity check.
        violation_rate: The share of answers without knowledge of p that contradict it.
        rating: The rater's result.
        options: The options in the talk of a choice, with the fitting one first.
        choice_conversation: The talk of a choice.
        persona: The persona that states p in the form `persona`.
        persona_conversation: The talk in which the persona states p.
        classification_task_options: Four answers to q, with the right one first.
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
        """Return whether the draft was not dropped, and has all forms and options."""
        made = (self.choice_conversation, self.persona_conversation, self.classification_task_options)
        return not self.dropped and all(made) and bool(self.conflicting_preference)

    def renewed(self) -> Draft:
        """Return the draft. If its pair was edited, the results of all stages are removed, so that they run again."""
        if self.text_id in ("", self.own_id):
            return self.model_copy(update={"dropped": ""}) if self.chosen else self
        return Draft(topic=self.topic, preference=self.preference, question=self.question, explanation=self.explanation)

    def pair(self, form: Form, index: int) -> PreferencePair:
        """Return the pair in a form, which must exist already."""
        talk: tuple[str, ...] = ()
        if form == "choice" and self.choice_conversation is not None:
            talk = tuple(getattr(self.choice_conversation, key) for key in CHOICE_TALK_KEYS)
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
    """Read the drafts of a file, or of a folder's files in alphabetical order. Files are JSON lists or JSON Lines.

    Raises:
        DataError: If there is no draft, or a row is invalid. The message states the file, the row and the correct form.
    """
    paths = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not paths:
        raise DataError(path, "contains no .json file; give a folder of drafts, or a file")
    for each in paths:
        yield from read_models(each, Draft)


_SAMPLES = Path(__file__).parent / "samples"
SHIPPED_TOPICS = _SAMPLES / "topics.json"
SHIPPED_TELLERS = _SAMPLES / "personas.json"
SHIPPED_RATED = _SAMPLES / "rated_pairs.json"


class PairTopic(Record):
    """A topic of pairs: its name (also the file's name), its description, and its subtopics."""

    topic: Text
    description: str = ""
    subtopics: tuple[Text, ...] = ()


class Teller(Record):
    """A persona that can mention a preference in a talk about itself; its description (one line) reveals none."""

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
    path = path or SHIPPED_TELLERS
    with add_study_advice(path, "persona"):
        return [each.persona for each in read_models(path, Teller, once="persona")]


def read_rated(path: Path | None = None) -> list[RatedPair]:
    """Read the rated examples of a file, by default the shipped ones.

    Raises:
        DataError: If the file or a row is invalid.
    """
    return read_models(path or SHIPPED_RATED, RatedPair)


DEFAULT_POOL = Path(__file__).parent / "samples" / "filtered_inter_turns.json"


def read_chats(path: Path) -> list[list[ChatLine]]:
    """Read the chats of a pool in order. In each chat, user and assistant must alternate, ending with the assistant.

    The counts in the file (`turn`) are ignored, because ten of 24 are wrong in the release.

    Raises:
        DataError: If the file is broken. The message states the chat and its message.
    """
    return [list(_utterances(path, number, row)) for number, row in enumerate(read_rows(path))]


def _utterances(path: Path, number: int, row: dict[str, Any]) -> Iterator[ChatLine]:
    messages = row.get("conversation")
    if not isinstance(messages, list) or not messages or len(messages) % 2:
        raise DataError(path, f"chat {number}: 'conversation' is not a list of messages of user and assistant in turn")
    for place, message in enumerate(messages):
        expected = _SPEAKERS[place % 2]
        if not isinstance(message, dict) or message.get("role") != expected:
            found = message.get("role") if isinstance(message, dict) else message
            raise DataError(path, f"chat {number}, message {place}: {found!r:.60}, but the {expected} must speak here")
        yield ChatLine(speaker=expected, content=get_text(path, f"chat {number}, message {place}", message, "content"))
