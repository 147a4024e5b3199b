"""Datasets to be described: the dialogues of a run, or a file of rows from any program."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from dialoom.graphs import DialogueFault, Line
from dialoom.graphs.outcome import USER, episode_id
from dialoom.graphs.transcript_rows import (
    CONTENT_KEYS,
    CONVERSATION_KEYS,
    ROLE_KEYS,
    build_round_lines,
    extract_text,
    normalize_role,
    read_raw_rows,
)
from dialoom.inputs import DataError, check_regular
from dialoom.roles import ModelBinding
from dialoom.runs.reading.scenarios import select_episodes
from dialoom.runs.store import RunFile

_MAX_FACET_CHARACTERS = 60


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


@dataclass(frozen=True, slots=True)
class Dataset:
    """A set of dialogues that can be read more than once.

    Attributes:
        name: The dataset's name in tables.
        dialogues: A function that yields all dialogues.
        users: For a run, the user's role with each of its models.
    """

    name: str
    dialogues: Callable[[], Iterable[DescribedDialogue]]
    users: Sequence[tuple[str, ModelBinding]] = ()


def run_dataset(file: RunFile, where: str | None = None) -> Dataset:
    """Return the finished scenarios of a run, or those that match an expression.

    The dialogues are in plan order; a failed dialogue has the messages up to its failure.
    """

    def dialogues() -> Iterator[DescribedDialogue]:
        for episode in select_episodes(file, None, where):
            scenario, outcome = file.scenario(file.recipe, file.resolve(episode.id)), episode.outcome
            yield DescribedDialogue(
                episode.id,
                outcome.messages,
                outcome.ended_by,
                episode.facets,
                scenario.preferences(),
                outcome.faults,
                outcome.languages,
            )

    return Dataset(file.path.name, dialogues, [each for each in file.config.role_bindings() if each[0] == USER])


def rows_dataset(path: Path, *, skips_wordless: bool = False) -> Dataset:
    """Return a JSON Lines, JSON or Parquet file of rows, each with a conversation, a text, or several named texts.

    A conversation is a list under `messages` (or `conversations`, `turns`, ...) of objects with `role` and `content`
    (or `from` and `value`), a list of rounds as in ALOE's release, or TRL's `prompt` with `chosen` or `completion`. In
    any other row (a tree, a pair, a person), every string of several words is a line, with its key as the role.

    Args:
        path: The file.
        skips_wordless: Whether rows without text, which folders from other sources may contain, are skipped.

    Raises:
        RunError: If the file does not exist, or is of another kind.
        DataError: When the dialogues are read, if a row has neither a conversation nor text, or for a Parquet file if
            pyarrow is not installed.
    """
    check_regular(path)

    def dialogues() -> Iterator[DescribedDialogue]:
        for number, row in read_raw_rows(path):
            if isinstance(row, DataError):
                raise row
            lines = _row_lines(row)
            if lines is None and skips_wordless:
                continue
            if lines is None:
                raise DataError(
                    path,
                    f"a conversation ({', '.join(CONVERSATION_KEYS)}) or a text of several words is needed in each row",
                    number,
                )
            stated = [row[key] for key in ("scenario", "task", "person") if isinstance(row.get(key), dict)]
            about = reduce(operator.or_, stated) if isinstance(row.get("scenario"), dict) else row
            facets = {key: value for key, value in about.items() if key != "id" and _is_facet(value)}
            ended_by = str(row.get("ended_by") or "")
            trial = row.get("trial")
            id_ = episode_id(str(row.get("id", number)), trial if isinstance(trial, int) else 1)
            yield DescribedDialogue(id_, lines, ended_by, facets, row=row)

    return Dataset(path.name, dialogues)


COMPARED_TEXTS: Mapping[str, Callable[[DescribedDialogue], str]] = {
    "dialogues": lambda dialogue: dialogue.text,
    "first lines": lambda dialogue: dialogue.opening,
}
"""The texts of a dialogue that are compared to find copies: the whole text, and the opening."""


def _is_facet(value: object) -> bool:
    """Return whether a value is short enough to group dialogues by."""
    if isinstance(value, list):
        return all(isinstance(each, str | int) and _is_facet(each) for each in value)
    return isinstance(value, str | int) and len(str(value)) <= _MAX_FACET_CHARACTERS


def _row_lines(row: Mapping[str, Any]) -> list[Line] | None:
    """Return the lines of a row's conversation, or of its text or texts; `None` if the row has none of them."""
    for key in CONVERSATION_KEYS:
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
            found += build_round_lines(each)
        elif isinstance(each, dict):
            role = next((str(each[key]) for key in ROLE_KEYS if each.get(key)), speaker)
            words = next((text for key in CONTENT_KEYS if (text := extract_text(each.get(key))) is not None), "")
            if role or words:
                is_call = role.lower() == "function_call"  # ShareGPT's content of a tool call is no text
                found.append(Line(role=normalize_role(role), content="" if is_call else words))
    return found
