"""Datasets to be described: the dialogues of a run, or a file of rows from any program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dialoom.graphs import DialogueFault, Line
from dialoom.graphs.outcome import USER
from dialoom.graphs.transcript_rows import CONTENTS, CONVERSATIONS, SPEAKERS, raw_rows, role_named, round_lines
from dialoom.inputs import DataError, check_regular
from dialoom.roles import ModelBinding
from dialoom.runs.reading.scenarios import selected
from dialoom.runs.store import RunFile

_LONGEST_FACET = 60


@dataclass(frozen=True, slots=True)
class DescribedDialogue:
    """One dialogue of a described dataset.

    Attributes:
        id: The dialogue's id in its source.
        lines: The messages.
        ended_by: The reason for the end; empty if unknown.
        facets: The facets of the scenario.
        preferences: The person's preferences by name, which may come up in the dialogue; empty if unknown.
        faults: The faults that the gate found; `None` if the gate did not check the dialogue.
        languages: The languages for which the gate checked the dialogue, as ISO 639 codes.
        row: The row that the dialogue was read from, if it was read from a file.
    """

    id: str
    lines: Sequence[Line]
    ended_by: str = ""
    facets: Mapping[str, Any] = field(default_factory=dict)
    preferences: Mapping[str, str] = field(default_factory=dict)
    faults: Sequence[DialogueFault] | None = None
    languages: Sequence[str] = ()
    row: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The content of all lines, one per line."""
        return "\n".join(line.content for line in self.lines)

    @property
    def opening(self) -> str:
        """The user's first line, after instructions and contexts; the first line if there is no role named `user`."""
        lines = [line.content for line in self.lines if line.role == "user"]
        return (lines or [line.content for line in self.lines] or [""])[0]


class Dataset(Protocol):
    """A set of dialogues that can be read more than once.

    Attributes:
        name: The dataset's name in tables.
    """

    name: str

    def dialogues(self) -> Iterator[DescribedDialogue]:
        """Yield all dialogues."""
        ...


class RunDataset:
    """The finished scenarios of a run.

    Args:
        file: The run.
        where: Only scenarios matching this expression.
    """

    def __init__(self, file: RunFile, where: str | None = None) -> None:
        self.name = file.path.name
        self._file = file
        self._where = where

    @property
    def users(self) -> list[tuple[str, ModelBinding]]:
        """The user's role with each of its models."""
        return [each for each in self._file.config.everyone() if each[0] == USER]

    def dialogues(self) -> Iterator[DescribedDialogue]:
        """Yield the dialogues in plan order; a failed dialogue has the messages up to its failure."""
        recipe = self._file.recipe
        for episode in selected(self._file, None, self._where):
            scenario = self._file.scenario(recipe, self._file.resolve(episode.id))
            outcome = episode.outcome
            yield DescribedDialogue(
                episode.id,
                outcome.messages,
                outcome.ended_by,
                episode.facets,
                scenario.preferences(),
                outcome.faults,
                outcome.languages,
            )


class CombinedDataset:
    """Several datasets as one.

    Args:
        name: The dataset's name in tables.
        parts: The datasets.
    """

    def __init__(self, name: str, parts: Sequence[Dataset]) -> None:
        self.name = name
        self._parts = parts

    def dialogues(self) -> Iterator[DescribedDialogue]:
        """Yield the dialogues of one dataset after the other."""
        for part in self._parts:
            yield from part.dialogues()


class RowsDataset:
    """A JSON Lines, JSON or Parquet file of rows, each with a conversation, a text, or several named texts.

    A conversation is a list under `messages` (or `conversations`, `turns`, ...) of objects with `role` and `content`
    (or `from` and `value`), a list of rounds as in ALOE's release, or TRL's `prompt` with `chosen` or `completion`. In
    any other row (a tree, a pair, a person), every string of several words is a line, with its key as the role.

    Args:
        path: The file.
        skips_wordless: Whether rows without text, which folders from other sources may contain, are skipped.

    Raises:
        RunError: If the file does not exist, or is of another kind.
    """

    def __init__(self, path: Path, *, skips_wordless: bool = False) -> None:
        check_regular(path)
        self.name = path.name
        self._path = path
        self._skips_wordless = skips_wordless

    def dialogues(self) -> Iterator[DescribedDialogue]:
        """Yield the dialogues in the file's order.

        Raises:
            DataError: If a row has neither a conversation nor text, or for a Parquet file if pyarrow is not installed.
        """
        for number, row in raw_rows(self._path):
            if isinstance(row, DataError):
                raise row
            lines = _row_lines(row)
            if lines is None and self._skips_wordless:
                continue
            if lines is None:
                raise DataError(
                    self._path,
                    f"a conversation ({', '.join(CONVERSATIONS)}) or a text of several words is needed in each row",
                    number,
                )
            scenario = row.get("scenario") if isinstance(row.get("scenario"), dict) else None
            facets = {key: value for key, value in (scenario or row).items() if key != "id" and _is_facet(value)}
            ended_by = str(row.get("ended_by") or "")
            yield DescribedDialogue(str(row.get("id", number)), lines, ended_by, facets, row=row)


COMPARED_TEXTS: Mapping[str, Callable[[DescribedDialogue], str]] = {
    "dialogues": lambda dialogue: dialogue.text,
    "first lines": lambda dialogue: dialogue.opening,
}
"""The texts of a dialogue that are compared to find copies: the whole text, and the opening."""


def _is_facet(value: object) -> bool:
    """Return whether a value is short enough to group dialogues by."""
    if isinstance(value, list):
        return all(isinstance(each, str | int) and _is_facet(each) for each in value)
    return isinstance(value, str | int) and len(str(value)) <= _LONGEST_FACET


def _row_lines(row: Mapping[str, Any]) -> list[Line] | None:
    """Return the lines of a row's conversation, or of its text or texts; `None` if the row has none of them."""
    for key in CONVERSATIONS:
        if isinstance(row.get(key), list):
            return _conversation_lines(row[key], "")
    if isinstance(row.get("prompt"), str | list):
        answer: str | list[Any] = next(
            (row[key] for key in ("chosen", "completion", "response", "answer") if row.get(key)), []
        )
        return [*_conversation_lines(row["prompt"], "user"), *_conversation_lines(answer, "assistant")]
    text = row.get("text")
    return [Line(role="text", content=text)] if isinstance(text, str) else list(_text_lines(row, "")) or None


def _text_lines(value: object, name: str) -> Iterator[Line]:
    """Yield every string of several words in a row without a conversation, with its key as the role."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _text_lines(each, str(key))
    elif isinstance(value, list):
        for each in value:
            yield from _text_lines(each, name)
    elif isinstance(value, str) and len(value.split()) > 1:
        yield Line(role=name, content=value)


def _conversation_lines(value: Any, speaker: str) -> list[Line]:
    if isinstance(value, str):
        return [Line(role=speaker, content=value)]
    found = []
    for each in value:
        if isinstance(each, dict) and isinstance(each.get("user"), str):
            found += round_lines(each)
        elif isinstance(each, dict):
            role = next((str(each[key]) for key in SPEAKERS if each.get(key)), speaker)
            words = next((each[key] for key in CONTENTS if isinstance(each.get(key), str)), "")
            if role or words:
                found.append(Line(role=role_named(role), content=words))
    return found
