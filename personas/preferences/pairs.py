"""The reader of preference pairs, in the layout of PrefEval's release or in one file of one's own.

The release's `benchmark_dataset/`: `explicit_preference/<topic>.json`, `implicit_preference/choice-based/<topic>.json`,
`implicit_preference/persona-driven/<topic>.json` and `mcq_options/<topic>.json`; row i of a topic is the same pair in
each. The topics are the names in `explicit_preference`; files of other names are not looked at. A file of one's own is
a list of rows with `topic`, `preference`, `question` and, where wanted, the other files' keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from dialoom.inputs import DataError

from .json_rows import read_rows, text_of
from .pair import ChatLine, Form, PreferencePair
from .rows import CHOICE_TALK

FOLDERS: dict[Form, str] = {
    "explicit": "explicit_preference",
    "choice": "implicit_preference/choice-based",
    "persona": "implicit_preference/persona-driven",
}
OPTIONS_FOLDER = "mcq_options"
_SPEAKERS = ("user", "assistant")
OPTIONS = 4


def sample_pairs() -> PreferencePairs:
    """The pairs that dialoom ships, written for it."""
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
        """All topics, in alphabetical order.

        Raises:
            DataError: If there is none.
        """
        if self._own is not None:
            return sorted(self._own)
        folder = self.path / FOLDERS["explicit"]
        topics = sorted(path.stem for path in folder.glob("*.json"))
        if not topics:
            raise DataError(folder, "holds no topic; a file <topic>.json for each is needed")
        return topics

    def pairs(self, topic: str, form: Form, *, with_options: bool = False) -> Iterator[PreferencePair]:
        """A topic's pairs in one form, in the order of their rows.

        Args:
            topic: The topic.
            form: The form.
            with_options: Whether the four options are needed.

        Raises:
            DataError: If a file is missing or broken: names the file, the row and what would be right.
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
    """How p is told: two turns of a choice, or a persona's talk."""
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
    """What the talk of a choice lists, where the row says it apart."""
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
