"""The people and tasks of a study: their rows, checked one at a time, and the conversations made from them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

from jinja2 import TemplateSyntaxError, nodes

from dialoom.inputs import DataError
from dialoom.personas.rows import NumberedRow, Row, normalize_row, read_rows
from dialoom.sandbox import Sandbox
from dialoom.text import pluralize

from .check import find_expressions
from .study import JudgeTable, Rows, Study, StudyError, format_path

PERSON, TASK = "person", "task"
PORTRAIT = "portrait"
_TEMPLATE = re.compile(rf"{{{{-?\s*(?:{PERSON}|{TASK})\b[^{{}}]*}}}}")

MAX_LISTED_NAMES = 3
"""Maximum number of people that a note names."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a column in a template of a study.

    Attributes:
        path: The name of the column; if a part of its value is used, followed by the names that lead to this part.
        where: A description of the template, for error messages.
        is_shown: Whether the template shows the column's value, which must then not be empty.
        is_needed: Whether the template fails without the column. It does not if it asks for the column only under a
            condition, by `default`, or by `get`.
    """

    path: tuple[str, ...]
    where: str
    is_shown: bool
    is_needed: bool


def find_study_references(study: Study) -> dict[str, list[Reference]]:
    """Return the references to columns of `person` and of `task` in a study's templates.

    Templates that cannot be parsed are skipped, because the error is raised when prompts are made from them.
    """
    texts = {
        "[user] brief": study.user.brief,
        "[user] opening": study.user.opening,
        "[assistant] system": study.assistant.system,
    }
    texts |= {f"the brief of {each.name}": each.brief for each in study.roles}
    texts |= {f"the rubric of {judge.metric}": rubric_text(judge) for judge in study.judges}
    for check in study.checks:
        texts[f"the sql of {check.metric}"] = check.sql
        texts[f"the state of {check.metric}"] = "\n".join(find_expressions([check.gold, check.expected]))
    return find_references(texts)


def rubric_text(judge: JudgeTable) -> str:
    """Return the text of a judge's rubric, or the texts of its levels, one per line."""
    return judge.rubric if isinstance(judge.rubric, str) else "\n".join(judge.rubric.values())


def find_references(texts: Mapping[str, str]) -> dict[str, list[Reference]]:
    """Return the references to columns of `person` and of `task` in templates.

    Args:
        texts: The templates, by their descriptions for error messages.
    """
    by_variable: dict[str, list[Reference]] = {PERSON: [], TASK: []}
    for where, text in texts.items():
        try:
            tree = Sandbox().parse(text)
        except TemplateSyntaxError:
            continue
        shown_nodes = {id(node) for output in tree.find_all(nodes.Output) for node in output.nodes}
        for node, is_used in _iter_values(tree, is_used=True):
            name, *path = _parse_path(node)
            if name in by_variable and path and (is_used or len(path) == 1):
                is_needed = is_used and not isinstance(node, nodes.Call)
                by_variable[name].append(Reference(tuple(path), where, id(node) in shown_nodes, is_needed))
    return by_variable


def _iter_values(node: nodes.Node, is_used: bool) -> Iterator[tuple[nodes.Getattr | nodes.Getitem | nodes.Call, bool]]:
    """Yield each part of a value that a template uses, inner parts first, and whether its use is unconditional.

    A method, as in `task.items()`, is not a part of a value, but what `task.get("goal")` returns is.
    """
    conditional: list[nodes.Node | None] = []
    match node:
        case nodes.If():
            conditional = [*node.body, *node.elif_, *node.else_]
        case nodes.CondExpr():
            conditional = [node.expr1, node.expr2]
        case nodes.And() | nodes.Or():
            conditional = [node.right]
        case nodes.For():
            conditional = [*node.body, *node.else_]
        case nodes.Test(name="defined" | "undefined") | nodes.Filter(name="default" | "d"):
            conditional = [node.node]
    for child in node.iter_child_nodes():
        is_method = isinstance(node, nodes.Call) and child is node.node and isinstance(child, nodes.Getattr)
        for each in child.iter_child_nodes() if is_method else [child]:
            yield from _iter_values(each, is_used and not any(child is other for other in conditional))
    if isinstance(node, nodes.Getattr | nodes.Getitem | nodes.Call):
        yield node, is_used


def follow_path(row: Any, path: Sequence[str]) -> tuple[Any, int]:
    """Follow a path into a row, and return the value and the number of names that led to it.

    If the number is less than the path's length and the value is a mapping, the value lacks the next name.
    """
    value = row
    for depth, name in enumerate(path):
        if not isinstance(value, Mapping) or name not in value:
            return value, depth
        value = value[name]
    return value, len(path)


def _parse_path(node: nodes.Node) -> list[str]:
    """Return the path of a value in a template: the variable and its attributes.

    It begins with `""` if a part is computed.
    """
    match node:
        case nodes.Name(name=str(name)):
            return [name]
        case (
            nodes.Getattr(node=owner, attr=str(part))
            | nodes.Getitem(node=owner, arg=nodes.Const(value=str(part)))
            | nodes.Call(node=nodes.Getattr(node=owner, attr="get"), args=[nodes.Const(value=str(part))])
        ):
            return [*_parse_path(owner), part]
    return [""]


@dataclass
class RowSource:
    """The rows of people or of tasks.

    Attributes:
        table: `people` or `tasks`.
        spec: The study's declaration of them.
        folder: The folder to which a relative path refers.
        text: The name of the column that holds the text, for rows that are strings.
        values: Rows that were given as Python values; `None` to use the study's rows.
        references: The columns to which templates refer.
    """

    table: str
    spec: Rows
    folder: str
    text: str
    values: Iterable[Any] | None = None
    references: list[Reference] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The name of the file or argument that contains the rows, for error messages."""
        return str(format_path(Path(self.folder, self.spec.file))) if self.spec.file else self.table

    def rows(self, note: Callable[[str], None] = lambda _text: None) -> Iterator[tuple[str, Row]]:
        """Yield each row with its name, which is unique.

        Args:
            note: Called at the end if rows have the name of an earlier row.

        Raises:
            DataError: If a row is wrong. The message states the file, the line, and the correct form.
        """
        lines: dict[bytes, int] = {}
        count, repeated = 0, list[str]()
        for number, row in self._iter_rows():
            count += 1
            if row and all(value == "" for value in row.values()):
                raise DataError(self.place, "the row is empty; fill it in or remove it", number)
            self._check_columns(row, number)
            self._check_unique(lines, number, row, "row", "remove it")
            yield self._find_name(row, number, lines, repeated), row
        if not count:
            raise DataError(self.place, f"{self.table} must hold at least one row, got none")
        if repeated:
            names = [*dict.fromkeys(repeated)]
            rest = f" and {len(names) - MAX_LISTED_NAMES:,} more" if len(names) > MAX_LISTED_NAMES else ""
            note(
                f"{pluralize(len(repeated), 'rows')} with the name of an earlier row, counted as different "
                f"{self.table}: {', '.join(names[:MAX_LISTED_NAMES])}{rest}; a column id "
                "tells them apart, and a person with several conversations is one row with several tasks"
            )

    def _iter_rows(self) -> Iterator[NumberedRow]:
        if self.spec.file:
            yield from read_rows(format_path(Path(self.folder, self.spec.file)), self.text)
            return
        for number, row in enumerate(self.spec.rows if self.values is None else self.values, start=1):
            yield number, normalize_row(row, self.text, self.place, number)

    def _check_columns(self, row: Row, number: int) -> None:
        variable = PERSON if self.table == "people" else TASK
        for each in self.references:
            if each.path[0] == PORTRAIT and self.table == "people":
                continue
            value, depth = follow_path(row, each.path)
            if depth < len(each.path) and isinstance(value, Mapping):
                inner = f"value {each.path[depth]!r} in {'.'.join([variable, *each.path[:depth]])!r}"
                missing = inner if depth else f"column {each.path[0]!r}"
                names = ", ".join(map(str, value)) or "none"
                message = f"there is no {missing}, which {each.where} uses; the names are {names}"
                raise DataError(self.place, message, number)
            if each.is_shown and value == "":
                optional = f"{{{{ {_format_expression(variable, each.path)} or 'unknown' }}}}"
                message = (
                    f"{'.'.join(each.path)!r} is empty, but {each.where} uses it; fill it in, or write {optional} there"
                )
                raise DataError(self.place, message, number)
            if isinstance(value, str) and (template := _TEMPLATE.search(value)):
                message = f"{'.'.join(each.path)!r} contains {template[0]!r}, but templates in rows are not filled in"
                raise DataError(self.place, f"{message}; write the value here, or the template in {each.where}", number)
        for column in (self.spec.id, *self.spec.portrait):
            if column and column not in row:
                raise DataError(self.place, f"there is no column {column!r}; the columns are {', '.join(row)}", number)

    def _check_unique(self, lines: dict[bytes, int], number: int, value: Any, description: str, remedy: str) -> None:
        if (first_number := lines.setdefault(_digest([description, value]), number)) != number:
            raise DataError(self.place, f"the same {description} as in {first_number}; {remedy}", number)

    def _find_name(self, row: Row, number: int, lines: dict[bytes, int], repeated: list[str]) -> str:
        """Return a row's id; if it has none, its `name`; if it has neither, a hash of the row.

        A name that an earlier row has is added to `repeated`, and gets a number that makes it differ from all others.
        """
        if column := self.spec.id or _find_column(row, "id"):
            if row[column] == "":
                raise DataError(self.place, f"the id in column {column!r} is empty; fill it in", number)
            self._check_unique(lines, number, str(row[column]), f"id {str(row[column])!r}", "ids must differ")
            return str(row[column])
        column = _find_column(row, "name")
        if not row.get(column):
            return hashlib.sha256(
                json.dumps(row, sort_keys=True, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
            ).hexdigest()[:8]
        name = str(row[column])
        occurrence = lines[key] + 1 if (key := _digest(["name", name])) in lines else 1
        if occurrence > 1:
            repeated.append(name)
            while f"{name} ({occurrence})" in self._stated_names:
                occurrence += 1
        lines[key] = occurrence
        return name if occurrence == 1 else f"{name} ({occurrence})"

    @cached_property
    def _stated_names(self) -> frozenset[str]:
        """The ids and names that the rows state. They are read only if a name repeats."""
        return frozenset(
            str(row.get(self.spec.id or _find_column(row, "id") or _find_column(row, "name"), ""))
            for _, row in self._iter_rows()
        )


def _find_column(row: Row, name: str) -> str:
    """Return a row's column of this name that is not empty, also in another letter case; empty if there is none."""
    columns = [column for column, value in row.items() if column.lower() == name and value not in (None, "")]
    return name if name in columns else next(iter(columns), "")


def _format_expression(variable: str, path: Iterable[str]) -> str:
    """Return the expression of a value in a template, e.g. `person["Home Town"].zip`."""
    parts = (f".{part}" if part.isidentifier() else f"[{json.dumps(part, ensure_ascii=False)}]" for part in path)
    return "".join([variable, *parts])


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).digest()[:16]


def _add_portrait(row: Row, columns: Iterable[str], name: str) -> Row:
    """Return a person's row with a column `portrait`: its columns as `name: value`, one per line.

    Args:
        row: The row. If it has a column `portrait`, that column is kept.
        columns: The columns to describe; by default all columns except the one that identifies the row.
        name: The row's name.
    """
    if PORTRAIT in row:
        return row
    described = list(columns) or [
        column for column, value in row.items() if column.lower() != "id" or str(value) != name
    ]
    return {**row, PORTRAIT: "\n".join(f"{column}: {row[column]}" for column in described if row[column] != "")}


def pair_people_with_tasks(
    study: Study, people: RowSource, tasks: RowSource | None, draw: Random, note: Callable[[str], None]
) -> Iterator[tuple[str, Row, Row]]:
    """Yield a person's name, the person's row and a task's row for each conversation, in the order of the rows.

    People are read one at a time; tasks are held in memory.

    Args:
        study: The study.
        people: The people.
        tasks: The tasks; `None` for one conversation per person without a task.
        draw: The random stream of planning.
        note: Called with notes for the user, on people of the same name.

    Raises:
        DataError: If a row is wrong, or there are too few tasks.
    """
    seed = draw.getrandbits(64)
    spec = study.tasks
    if tasks is None or spec is None:
        yield from ((name, _add_portrait(row, study.people.portrait, name), {}) for name, row in people.rows(note))
        return
    if spec.zip:
        for person, task in zip_longest(people.rows(note), tasks.rows()):
            if person is None or task is None:
                fewer, more = (people, tasks) if person is None else (tasks, people)
                raise DataError(
                    fewer.place, f"there are fewer {fewer.table} than {more.table}; zip needs equal numbers"
                )
            yield person[0], _add_portrait(person[1], study.people.portrait, person[0]), task[1]
        return
    task_rows = [row for _, row in tasks.rows()]
    for name, row in people.rows(note):
        person_row = _add_portrait(row, study.people.portrait, name)
        assigned: Iterable[Row] = task_rows
        if spec.per_person is not None:
            if spec.per_person > len(task_rows):
                message = f"per_person = {spec.per_person} needs at least that many tasks, got {len(task_rows)}"
                raise DataError(tasks.place, message)
            indexes = Random(f"{seed} {name} {_digest(row).hex()}").sample(range(len(task_rows)), spec.per_person)
            assigned = [task_rows[place] for place in sorted(indexes)]
        yield from ((name, person_row, task) for task in assigned)


def convert_rows(values: Any, table: str) -> list[Any] | Any:
    """Return rows that were given as Python values in a form that can be read several times.

    Args:
        values: A list of mappings or texts, a pandas data frame, or a `datasets.Dataset`.
        table: `people` or `tasks`, for error messages.

    Raises:
        StudyError: If the value is of another type.
    """
    if hasattr(values, "itertuples"):
        values = values.reset_index(drop=values.index.names == [None])  # a named index is a column
        if not values.columns.is_unique:
            duplicate = values.columns[values.columns.duplicated()][0]
            raise StudyError(f"{table}: two columns are named {duplicate!r}; rename one", setting=table)
        missing = values.isna()
        types = values.loc[:, missing.any()].convert_dtypes().dtypes  # pandas reads 34 in a column with a gap as 34.0
        return values.astype(types).astype(object).mask(missing).to_dict("records")
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        kind = type(values).__name__
        raise StudyError(
            f"{table} must be a list of rows, a data frame or a file as a pathlib.Path, got {kind}", setting=table
        )
    return list(values) if isinstance(values, Iterator) else values
