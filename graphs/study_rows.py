"""The people and tasks of a study: their rows, checked one at a time, and the conversations that they make."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

from jinja2 import TemplateSyntaxError, nodes

from dialoom.inputs import DataError
from dialoom.personas.rows import Place, Row, plain_row, read_rows
from dialoom.sandbox import Sandbox

from .state_checks import expressions
from .study import Rows, Study, StudyError, shown

PEOPLE, TASKS = "person", "task"
PORTRAIT = "portrait"
_METHODS = ("items", "keys", "values", "get")


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that a template of a study names.

    Attributes:
        column: The column.
        where: The template, for messages.
        is_shown: Whether its value is shown as it is, so that it must not be empty.
    """

    column: str
    where: str
    is_shown: bool


def references(study: Study) -> dict[str, list[Reference]]:
    """Return the columns of `person` and of `task` that a study's templates name.

    Templates that cannot be parsed are left to the prompts made from them.
    """
    texts = {"[user] brief": study.user.brief, "[assistant] system": study.assistant.system}
    texts |= {f"the brief of {each.name}": each.brief for each in study.roles}
    for judge in study.judges:
        rubric = judge.rubric if isinstance(judge.rubric, str) else "\n".join(judge.rubric.values())
        texts[f"the rubric of {judge.metric}"] = rubric
    for check in study.checks:
        texts[f"the sql of {check.metric}"] = check.sql
        texts[f"the state of {check.metric}"] = "\n".join(expressions([check.gold, check.expected]))
    found: dict[str, list[Reference]] = {PEOPLE: [], TASKS: []}
    for where, text in texts.items():
        try:
            tree = Sandbox().parse(text)
        except TemplateSyntaxError:
            continue
        shown = {id(node) for output in tree.find_all(nodes.Output) for node in output.nodes}
        parts: list[nodes.Getattr | nodes.Getitem] = [*tree.find_all(nodes.Getattr), *tree.find_all(nodes.Getitem)]
        for node in parts:
            if not isinstance(node.node, nodes.Name) or node.node.name not in found:
                continue
            column = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
            if isinstance(column, str) and column not in _METHODS:
                found[node.node.name].append(Reference(column, where, id(node) in shown))
    return found


@dataclass
class Source:
    """The rows of people or of tasks.

    Attributes:
        table: `people` or `tasks`.
        spec: What the study says about them.
        folder: The folder that a relative path starts from.
        text: The column of a row that is a text.
        given: Rows that were given as Python values; `None` for those of the study.
        named: The columns that templates name.
    """

    table: str
    spec: Rows
    folder: str
    text: str
    given: Iterable[Any] | None = None
    named: list[Reference] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The file or argument that holds the rows, for messages."""
        return str(shown(Path(self.folder, self.spec.file))) if self.spec.file else self.table

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield each row with its name, which no other row has.

        Raises:
            DataError: Naming the file, the line, and what would be right.
        """
        lines: dict[bytes, int] = {}
        count = 0
        for number, row in self._places():
            count += 1
            self._check_columns(row, number)
            self._check_new(lines, number, row, "row", "remove it")
            yield self._name(row, number, lines), row
        if not count:
            raise DataError(self.place, f"{self.table} must hold at least one row, got none")

    def _places(self) -> Iterator[Place]:
        if self.spec.file:
            yield from read_rows(shown(Path(self.folder, self.spec.file)), self.text)
            return
        for number, row in enumerate(self.spec.rows if self.given is None else self.given, start=1):
            yield number, plain_row(row, self.text, self.place, number)

    def _check_columns(self, row: Row, number: int) -> None:
        for each in self.named:
            if each.column == PORTRAIT and self.table == "people":
                continue
            if each.column not in row:
                columns = ", ".join(row) or "none"
                message = f"there is no column {each.column!r}, which {each.where} names; there are {columns}"
                raise DataError(self.place, message, number)
            if each.is_shown and row[each.column] == "":
                optional = f"{{{{ {PEOPLE if self.table == 'people' else TASKS}.{each.column} or 'unknown' }}}}"
                message = f"{each.column!r} is empty, and {each.where} shows it; fill it in, or write {optional} there"
                raise DataError(self.place, message, number)
        for column in (self.spec.id, *self.spec.portrait):
            if column and column not in row:
                raise DataError(self.place, f"there is no column {column!r}; there are {', '.join(row)}", number)

    def _check_new(self, lines: dict[bytes, int], number: int, value: Any, what: str, remedy: str) -> None:
        key = _digest([what, value])
        if (first := lines.setdefault(key, number)) != number:
            raise DataError(self.place, f"the same {what} as in {first}; {remedy}", number)

    def _name(self, row: Row, number: int, lines: dict[bytes, int]) -> str:
        """Return a row's id, or else its `name`, or else a hash of it."""
        column = self.spec.id or ("id" if row.get("id") not in (None, "") else "")
        if column:
            if row[column] == "":
                raise DataError(self.place, f"the id in column {column!r} is empty; fill it in", number)
            self._check_new(lines, number, str(row[column]), f"id {str(row[column])!r}", "ids must differ")
            return str(row[column])
        if not row.get("name"):
            return hashlib.sha256(_plain(row)).hexdigest()[:8]
        name = str(row["name"])
        times = lines[key] + 1 if (key := _digest(["name", name])) in lines else 1
        lines[key] = times
        return name if times == 1 else f"{name} ({times})"


def _plain(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, sort_keys=True, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).digest()[:16]


def with_portrait(row: Row, columns: Iterable[str], name: str) -> Row:
    """Return a person's row with a column `portrait`: its columns as `name: value`, one per line.

    Args:
        row: The row; its own `portrait` is kept.
        columns: The columns to describe; by default all but the one that names the row.
        name: The row's name.
    """
    if PORTRAIT in row:
        return row
    chosen = list(columns) or [column for column, value in row.items() if column != "id" or str(value) != name]
    return {**row, PORTRAIT: "\n".join(f"{column}: {row[column]}" for column in chosen if row[column] != "")}


def pairs(study: Study, people: Source, tasks: Source | None, draw: Random) -> Iterator[tuple[str, Row, Row]]:
    """Yield the name and row of a person and the row of a task for each conversation, in the order of the rows.

    People are read one at a time; tasks are held in memory.

    Args:
        study: The study.
        people: The people.
        tasks: The tasks; `None` for one conversation of each person without any.
        draw: The random stream of planning.

    Raises:
        DataError: If a row is wrong, or there are too few tasks.
    """
    seed = draw.getrandbits(64)
    spec = study.tasks
    if tasks is None or spec is None:
        yield from ((name, _described(study, row, name), {}) for name, row in people.rows())
        return
    if spec.zip:
        for person, task in zip_longest(people.rows(), tasks.rows()):
            if person is None or task is None:
                fewer, more = (people, tasks) if person is None else (tasks, people)
                raise DataError(fewer.place, f"there are fewer {fewer.table} than {more.table}; zip needs as many")
            yield person[0], _described(study, person[1], person[0]), task[1]
        return
    errands = [row for _, row in tasks.rows()]
    for name, row in people.rows():
        described = _described(study, row, name)
        chosen: Iterable[Row] = errands
        if spec.per_person is not None:
            if spec.per_person > len(errands):
                message = f"per_person = {spec.per_person} needs as many tasks, got {len(errands)}"
                raise DataError(tasks.place, message)
            drawn = Random(f"{seed} {name} {_digest(row).hex()}").sample(range(len(errands)), spec.per_person)
            chosen = [errands[place] for place in sorted(drawn)]
        yield from ((name, described, task) for task in chosen)


def _described(study: Study, row: Row, name: str) -> Row:
    return with_portrait(row, study.people.portrait, name)


def python_rows(given: Any, table: str) -> list[Any] | Any:
    """Return rows given as Python values in a form that can be read more than once.

    Args:
        given: A list of mappings or texts, a pandas data frame, or a `datasets.Dataset`.
        table: `people` or `tasks`, for messages.

    Raises:
        StudyError: If it is none of these.
    """
    if hasattr(given, "itertuples"):
        return given.to_dict("records")
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        kind = type(given).__name__
        raise StudyError(f"{table} must be a list of rows, a data frame or a file's path, got {kind}", setting=table)
    return list(given) if isinstance(given, Iterator) else given
