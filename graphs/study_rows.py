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
from dialoom.personas.rows import Place, Row, plain_row, read_rows
from dialoom.sandbox import Sandbox
from dialoom.text import counted

from .check import find_expressions
from .study import JudgeTable, Rows, Study, StudyError, shown

PEOPLE, TASKS = "person", "task"
PORTRAIT = "portrait"
_TEMPLATE = re.compile(rf"{{{{-?\s*(?:{PEOPLE}|{TASKS})\b[^{{}}]*}}}}")

MOST_NAMED = 3
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


def references(study: Study) -> dict[str, list[Reference]]:
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
    return references_in(texts)


def rubric_text(judge: JudgeTable) -> str:
    """Return the text of a judge's rubric, or the texts of its levels, one per line."""
    return judge.rubric if isinstance(judge.rubric, str) else "\n".join(judge.rubric.values())


def references_in(texts: Mapping[str, str]) -> dict[str, list[Reference]]:
    """Return the references to columns of `person` and of `task` in templates.

    Args:
        texts: The templates, by their descriptions for error messages.
    """
    found: dict[str, list[Reference]] = {PEOPLE: [], TASKS: []}
    for where, text in texts.items():
        try:
            tree = Sandbox().parse(text)
        except TemplateSyntaxError:
            continue
        shown = {id(node) for output in tree.find_all(nodes.Output) for node in output.nodes}
        for node, is_used in _parts(tree, is_used=True):
            name, *path = _path(node)
            if name in found and path and (is_used or len(path) == 1):
                is_needed = is_used and not isinstance(node, nodes.Call)
                found[name].append(Reference(tuple(path), where, id(node) in shown, is_needed))
    return found


def _parts(node: nodes.Node, is_used: bool) -> Iterator[tuple[nodes.Getattr | nodes.Getitem | nodes.Call, bool]]:
    """Yield each part of a value that a template uses, inner parts first, and whether its use is unconditional.

    A method, as in `task.items()`, is not a part of a value, but what `task.get("goal")` returns is.
    """
    guarded: list[nodes.Node | None] = []
    match node:
        case nodes.If():
            guarded = [*node.body, *node.elif_, *node.else_]
        case nodes.CondExpr():
            guarded = [node.expr1, node.expr2]
        case nodes.And() | nodes.Or():
            guarded = [node.right]
        case nodes.For():
            guarded = [*node.body, *node.else_]
        case nodes.Test(name="defined" | "undefined") | nodes.Filter(name="default" | "d"):
            guarded = [node.node]
    for child in node.iter_child_nodes():
        is_method = isinstance(node, nodes.Call) and child is node.node and isinstance(child, nodes.Getattr)
        for each in child.iter_child_nodes() if is_method else [child]:
            yield from _parts(each, is_used and not any(child is other for other in guarded))
    if isinstance(node, nodes.Getattr | nodes.Getitem | nodes.Call):
        yield node, is_used


def reached(row: Any, path: Sequence[str]) -> tuple[Any, int]:
    """Follow a path into a row, and return the value and the number of names that led to it.

    If the number is less than the path's length and the value is a mapping, the value lacks the next name.
    """
    value = row
    for depth, name in enumerate(path):
        if not isinstance(value, Mapping) or name not in value:
            return value, depth
        value = value[name]
    return value, len(path)


def _path(node: nodes.Node) -> list[str]:
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
            return [*_path(owner), part]
    return [""]


@dataclass
class Source:
    """The rows of people or of tasks.

    Attributes:
        table: `people` or `tasks`.
        spec: The study's declaration of them.
        folder: The folder to which a relative path refers.
        text: The name of the column that holds the text, for rows that are strings.
        given: Rows that were given as Python values; `None` to use the study's rows.
        named: The columns to which templates refer.
    """

    table: str
    spec: Rows
    folder: str
    text: str
    given: Iterable[Any] | None = None
    named: list[Reference] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The name of the file or argument that contains the rows, for error messages."""
        return str(shown(Path(self.folder, self.spec.file))) if self.spec.file else self.table

    def rows(self, note: Callable[[str], None] = lambda _text: None) -> Iterator[tuple[str, Row]]:
        """Yield each row with its name, which is unique.

        Args:
            note: Called at the end if rows have the name of an earlier row.

        Raises:
            DataError: If a row is wrong. The message states the file, the line, and the correct form.
        """
        lines: dict[bytes, int] = {}
        count, again = 0, list[str]()
        for number, row in self._places():
            count += 1
            if row and all(value == "" for value in row.values()):
                raise DataError(self.place, "the row is empty; fill it in or remove it", number)
            self._check_columns(row, number)
            self._check_new(lines, number, row, "row", "remove it")
            yield self._name(row, number, lines, again), row
        if not count:
            raise DataError(self.place, f"{self.table} must hold at least one row, got none")
        if again:
            names = [*dict.fromkeys(again)]
            rest = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
            note(
                f"{counted(len(again), 'rows')} with the name of an earlier row, counted as different {self.table}: "
                f"{', '.join(names[:MOST_NAMED])}{rest}; a column id tells them apart, and a person with several "
                "conversations is one row with several tasks"
            )

    def _places(self) -> Iterator[Place]:
        if self.spec.file:
            yield from read_rows(shown(Path(self.folder, self.spec.file)), self.text)
            return
        for number, row in enumerate(self.spec.rows if self.given is None else self.given, start=1):
            yield number, plain_row(row, self.text, self.place, number)

    def _check_columns(self, row: Row, number: int) -> None:
        variable = PEOPLE if self.table == "people" else TASKS
        for each in self.named:
            if each.path[0] == PORTRAIT and self.table == "people":
                continue
            value, depth = reached(row, each.path)
            if depth < len(each.path) and isinstance(value, Mapping):
                inner = f"value {each.path[depth]!r} in {'.'.join([variable, *each.path[:depth]])!r}"
                of = inner if depth else f"column {each.path[0]!r}"
                names = ", ".join(map(str, value)) or "none"
                message = f"there is no {of}, which {each.where} uses; the names are {names}"
                raise DataError(self.place, message, number)
            if each.is_shown and value == "":
                optional = f"{{{{ {_expression(variable, each.path)} or 'unknown' }}}}"
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

    def _check_new(self, lines: dict[bytes, int], number: int, value: Any, what: str, remedy: str) -> None:
        if (first := lines.setdefault(_digest([what, value]), number)) != number:
            raise DataError(self.place, f"the same {what} as in {first}; {remedy}", number)

    def _name(self, row: Row, number: int, lines: dict[bytes, int], again: list[str]) -> str:
        """Return a row's id; if it has none, its `name`; if it has neither, a hash of the row.

        A name that an earlier row has is added to `again`, and gets a number that makes it differ from all others.
        """
        if column := self.spec.id or _column(row, "id"):
            if row[column] == "":
                raise DataError(self.place, f"the id in column {column!r} is empty; fill it in", number)
            self._check_new(lines, number, str(row[column]), f"id {str(row[column])!r}", "ids must differ")
            return str(row[column])
        column = _column(row, "name")
        if not row.get(column):
            return hashlib.sha256(
                json.dumps(row, sort_keys=True, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
            ).hexdigest()[:8]
        name = str(row[column])
        times = lines[key] + 1 if (key := _digest(["name", name])) in lines else 1
        if times > 1:
            again.append(name)
            while f"{name} ({times})" in self._names:
                times += 1
        lines[key] = times
        return name if times == 1 else f"{name} ({times})"

    @cached_property
    def _names(self) -> frozenset[str]:
        """The ids and names that the rows state. They are read only if a name repeats."""
        return frozenset(
            str(row.get(self.spec.id or _column(row, "id") or _column(row, "name"), "")) for _, row in self._places()
        )


def _column(row: Row, name: str) -> str:
    """Return a row's column of this name that is not empty, also in another letter case; empty if there is none."""
    found = [column for column, value in row.items() if column.lower() == name and value not in (None, "")]
    return name if name in found else next(iter(found), "")


def _expression(variable: str, path: Iterable[str]) -> str:
    """Return the expression of a value in a template, e.g. `person["Home Town"].zip`."""
    parts = (f".{part}" if part.isidentifier() else f"[{json.dumps(part, ensure_ascii=False)}]" for part in path)
    return "".join([variable, *parts])


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).digest()[:16]


def _with_portrait(row: Row, columns: Iterable[str], name: str) -> Row:
    """Return a person's row with a column `portrait`: its columns as `name: value`, one per line.

    Args:
        row: The row. If it has a column `portrait`, that column is kept.
        columns: The columns to describe; by default all columns except the one that identifies the row.
        name: The row's name.
    """
    if PORTRAIT in row:
        return row
    chosen = list(columns) or [column for column, value in row.items() if column.lower() != "id" or str(value) != name]
    return {**row, PORTRAIT: "\n".join(f"{column}: {row[column]}" for column in chosen if row[column] != "")}


def pairs(
    study: Study, people: Source, tasks: Source | None, draw: Random, note: Callable[[str], None]
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
        yield from ((name, _with_portrait(row, study.people.portrait, name), {}) for name, row in people.rows(note))
        return
    if spec.zip:
        for person, task in zip_longest(people.rows(note), tasks.rows()):
            if person is None or task is None:
                fewer, more = (people, tasks) if person is None else (tasks, people)
                raise DataError(
                    fewer.place, f"there are fewer {fewer.table} than {more.table}; zip needs equal numbers"
                )
            yield person[0], _with_portrait(person[1], study.people.portrait, person[0]), task[1]
        return
    errands = [row for _, row in tasks.rows()]
    for name, row in people.rows(note):
        described = _with_portrait(row, study.people.portrait, name)
        chosen: Iterable[Row] = errands
        if spec.per_person is not None:
            if spec.per_person > len(errands):
                message = f"per_person = {spec.per_person} needs at least that many tasks, got {len(errands)}"
                raise DataError(tasks.place, message)
            drawn = Random(f"{seed} {name} {_digest(row).hex()}").sample(range(len(errands)), spec.per_person)
            chosen = [errands[place] for place in sorted(drawn)]
        yield from ((name, described, task) for task in chosen)


def python_rows(given: Any, table: str) -> list[Any] | Any:
    """Return rows that were given as Python values in a form that can be read several times.

    Args:
        given: A list of mappings or texts, a pandas data frame, or a `datasets.Dataset`.
        table: `people` or `tasks`, for error messages.

    Raises:
        StudyError: If the value is of another type.
    """
    if hasattr(given, "itertuples"):
        given = given.reset_index(drop=given.index.names == [None])  # a named index is a column
        if not given.columns.is_unique:
            again = given.columns[given.columns.duplicated()][0]
            raise StudyError(f"{table}: two columns are named {again!r}; rename one", setting=table)
        missing = given.isna()
        types = given.loc[:, missing.any()].convert_dtypes().dtypes  # pandas reads 34 in a column with a gap as 34.0
        return given.astype(types).astype(object).mask(missing).to_dict("records")
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        kind = type(given).__name__
        raise StudyError(
            f"{table} must be a list of rows, a data frame or a file as a pathlib.Path, got {kind}", setting=table
        )
    return list(given) if isinstance(given, Iterator) else given
