"""Preference pairs, and the reader of their files in the release's layout or in one file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from dialoom.inputs import DataError, Model, parse_json, read_text, validated
from dialoom.text import well_formed_value

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
        index: The row in the topic's files, from 0; topic and index identify a pair, as texts may occur twice.
        form: The form of p: `explicit`, `choice` or `persona`.
        preference: The sentence p, as in the form's own file.
        question: The question q.
        explanation: The reason for which a usual answer to q contradicts p; may be empty.
        talk: The conversation that states p, user and assistant in turn; empty for `explicit`.
        choices: The options of the talk of a choice, the fitting one first; empty if the source has none.
        persona: The persona of the form `persona`; empty if the source has none.
        options: The four answers of the classification task, the right one first; empty if the source has none.
        conflicting: An earlier preference that p contradicts; empty if the source has none.
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
        """The pair's id: topic and row, the same for every form."""
        return f"{self.topic}-{self.index}"


CHOICE_TALK = ("query", "assistant_options", "user_selection", "assistant_acknowledgment")
"""The keys of the talk of a choice: user, assistant, user, assistant."""

_LINES_PER_TURN = 2


def row_of(pair: PreferencePair) -> dict[str, Any]:
    """Return the pair as a row of its form's file in the release."""
    said = [line.content for line in pair.talk]
    if pair.form == "choice":
        conversation: dict[str, Any] = dict(zip(CHOICE_TALK, said, strict=True))
        options = {"options": list(pair.choices), "aligned_op": pair.choices[0]} if pair.choices else {}
        return {**texts_of(pair), "implicit_query": said[0], **options, "conversation": conversation}
    if pair.form == "persona":
        turns = zip(said[::_LINES_PER_TURN], said[1::_LINES_PER_TURN], strict=True)
        conversation = {str(number): {"user": user, "assistant": reply} for number, (user, reply) in enumerate(turns)}
        return {**texts_of(pair), **({"persona": pair.persona} if pair.persona else {}), "conversation": conversation}
    return texts_of(pair)


def texts_of(pair: PreferencePair) -> dict[str, Any]:
    """Return the texts that a pair's row has in every file."""
    return {"preference": pair.preference, "question": pair.question, "explanation": pair.explanation}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON list, or of a file with one object per line.

    Raises:
        DataError: If the file cannot be read or holds anything else.
    """
    text = read_text(path)
    if text.lstrip().startswith("["):
        rows = parse_json(text, path)
    else:
        lines = enumerate(text.splitlines(), start=1)
        rows = [parse_json(line, path, number) for number, line in lines if line.strip()]
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DataError(path, f"row {number} is {row!r:.60}; an object is needed")
    return [dict(well_formed_value(row)) for row in rows]


def read_models(path: Path, type_: type[Model], *, once: str = "") -> list[Model]:
    """Read a file's rows as models; there must be at least one.

    Args:
        path: The file.
        type_: The type of the rows.
        once: A key whose values must be unique.

    Raises:
        DataError: If the file cannot be read or has no row, or a row is invalid or a duplicate.
    """
    found: list[Model] = []
    places: dict[Any, int] = {}
    for number, row in enumerate(read_rows(path)):
        found.append(validated(type_, row, path, part=f"row {number}"))
        if once and (first := places.setdefault(row[once], number)) != number:
            raise DataError(path, f"row {number}: {once} {row[once]!r:.60} stands in row {first} as well")
    if not found:
        raise DataError(path, "holds no row")
    return found


def text_of(path: Path, place: str, row: dict[str, Any], key: str, default: str | None = None) -> str:
    """Return a text of a row.

    Raises:
        DataError: If it is missing, empty or no text; with a default only if it is no text.
    """
    value = row.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        found = "missing" if key not in row else f"{value!r:.60}"
        raise DataError(path, f"{place}: {key!r} is {found}; a text is needed")
    return value.strip()


FOLDERS: dict[Form, str] = {
    "explicit": "explicit_preference",
    "choice": "implicit_preference/choice-based",
    "persona": "implicit_preference/persona-driven",
}
OPTIONS_FOLDER = "mcq_options"
_SPEAKERS = ("user", "assistant")
OPTIONS = 4


def sample_pairs() -> PreferencePairs:
    """Return the pairs that dialoom ships."""
    return PreferencePairs(Path(__file__).parent / "samples")


class PreferencePairs:
    """A source of pairs.

    Args:
        path: A folder in the release's layout (or the one above its `benchmark_dataset`), or a file.

    Raises:
        DataError: If it is neither.
    """

    def __init__(self, path: Path) -> None:
        inner = path / "benchmark_dataset"
        self.path = inner if inner.is_dir() else path
        self._own: dict[str, list[dict[str, Any]]] | None = None
        if not path.exists():
            raise DataError(path, "there is no such folder or file")
        if self.path.is_file():
            self._own = _by_topic(self.path)
        elif not (self.path / FOLDERS["explicit"]).is_dir():
            raise DataError(path, f"has no folder {FOLDERS['explicit']}; give PrefEval's benchmark_dataset, or a file")

    def topics(self) -> list[str]:
        """Return all topics in alphabetical order.

        Raises:
            DataError: If there is no topic.
        """
        if self._own is not None:
            return sorted(self._own)
        folder = self.path / FOLDERS["explicit"]
        topics = sorted(path.stem for path in folder.glob("*.json"))
        if not topics:
            raise DataError(folder, "holds no topic; a file <topic>.json for each is needed")
        return topics

    def pairs(self, topic: str, form: Form, *, with_options: bool = False) -> Iterator[PreferencePair]:
        """Yield a topic's pairs in one form, in the order of their rows.

        Args:
            topic: The topic.
            form: The form.
            with_options: Whether the four options are needed.

        Raises:
            DataError: If a file is missing or broken; it names the file, the row and the correct form.
        """
        path, rows = self._rows(topic, FOLDERS[form])
        options = self._options(topic, len(rows)) if with_options else [()] * len(rows)
        conflicts = self._conflicts(topic, len(rows))
        for index, row in enumerate(rows):
            place = f"row {index}"
            yield PreferencePair(
                topic=topic,
                index=index,
                form=form,
                preference=text_of(path, place, row, "preference"),
                question=text_of(path, place, row, "question"),
                explanation=text_of(path, place, row, "explanation", ""),
                talk=_talk(path, place, row, form),
                choices=_choices(row) if form == "choice" else (),
                persona=text_of(path, place, row, "persona", "") if form == "persona" else "",
                options=options[index],
                conflicting=conflicts[index],
            )

    def _rows(self, topic: str, folder: str) -> tuple[Path, list[dict[str, Any]]]:
        if self._own is not None:
            return self.path, self._own[topic]
        path = self.path / folder / f"{topic}.json"
        return path, read_rows(path)

    def _options(self, topic: str, count: int) -> list[tuple[str, ...]]:
        path, rows = self._rows(topic, OPTIONS_FOLDER)
        _same_length(path, rows, count)
        found = []
        for index, row in enumerate(rows):
            options = row.get("classification_task_options")
            if not isinstance(options, list) or len(options) != OPTIONS or not all(map(_is_text, options)):
                what = f"{len(options)} options" if isinstance(options, list) else f"{options!r:.60}"
                raise DataError(path, f"row {index}: 'classification_task_options' are {what}; four texts are needed")
            found.append(tuple(option.strip() for option in options))
        return found

    def _conflicts(self, topic: str, count: int) -> list[str]:
        path, rows = self._rows(topic, FOLDERS["explicit"])
        _same_length(path, rows, count)
        return [text_of(path, f"row {index}", row, "conflicting_preference", "") for index, row in enumerate(rows)]


def _talk(path: Path, place: str, row: dict[str, Any], form: Form) -> tuple[ChatLine, ...]:
    """Return the conversation that states p: the two turns of a choice, or a persona's talk."""
    if form == "explicit":
        return ()
    talk = row.get(f"{form}_conversation", row.get("conversation"))
    if not isinstance(talk, dict) or not talk:
        raise DataError(path, f"{place}: 'conversation' is {talk!r:.60}; an object is needed for the form {form}")
    if form == "choice":
        said = [(_SPEAKERS[at % 2], text_of(path, place, talk, key)) for at, key in enumerate(CHOICE_TALK)]
    else:
        said = []
        for number in range(len(talk)):
            turn = talk.get(str(number))
            if not isinstance(turn, dict):
                raise DataError(path, f"{place}: 'conversation' has no turn {str(number)!r}; they count from '0'")
            said += [(speaker, text_of(path, f"{place}, turn {number}", turn, speaker)) for speaker in _SPEAKERS]
    return tuple(ChatLine.model_validate({"speaker": speaker, "content": content}) for speaker, content in said)


def _choices(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the options of the talk of a choice, if the row lists them."""
    options = row.get("options")
    return tuple(options) if isinstance(options, list) and all(map(_is_text, options)) else ()


@lru_cache(maxsize=2)
def _by_topic(path: Path) -> dict[str, list[dict[str, Any]]]:
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for number, row in enumerate(read_rows(path)):
        by_topic.setdefault(text_of(path, f"row {number}", row, "topic"), []).append(row)
    if not by_topic:
        raise DataError(path, "holds no pair")
    return by_topic


def _same_length(path: Path, rows: list[dict[str, Any]], count: int) -> None:
    if len(rows) != count:
        raise DataError(
            path, f"has {len(rows)} rows where the topic's other file has {count}; row i is one pair in each"
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
