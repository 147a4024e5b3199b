"""Studies: declarations of the people, tasks, participants and criteria of simulated conversations, in one file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
    field_validator,
    model_validator,
)

from dialoom.errors import DialoomError
from dialoom.inputs import MAX_YAML_BYTES, DataError, parse_toml, read_text
from dialoom.roles import BindingError
from dialoom.roles.players import load_file
from dialoom.settings import describe_requirement

USER, ASSISTANT = "user", "assistant"
Ending = Literal["user_satisfied", "user_gives_up"]
SATISFIED: Ending = "user_satisfied"
GIVES_UP: Ending = "user_gives_up"


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Rows(_Table):
    """The source of people or tasks: a file, or rows given inline.

    Attributes:
        file: A CSV, JSON Lines, JSON, Parquet or YAML file, or a pool folder, relative to the study's folder.
        rows: The rows, in place of a file.
        id: The column that identifies a row; by default `id`, otherwise `name`.
        portrait: The columns that describe a person in `{{ person.portrait }}`; by default all columns.
    """

    file: str = ""
    rows: tuple[dict[str, Any] | str, ...] = ()
    id: str = ""
    portrait: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if self.file and self.rows:
            raise ValueError("give file or rows, not both")
        return self


class Tasks(Rows):
    """The tasks, and how they are assigned to people.

    Attributes:
        cross: Whether each person gets each task. This is the default.
        zip: Whether the first person gets the first task, the second person the second task, and so on.
        per_person: The number of tasks that each person gets, drawn with the seed.
    """

    cross: StrictBool = True
    zip: StrictBool = False
    per_person: StrictInt | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.zip and self.per_person is not None:
            raise ValueError("give zip or per_person, not both")
        if not self.cross and not self.zip and self.per_person is None:
            raise ValueError("cross = false needs zip = true or per_person = N")
        return self


class KeywordEnd(_Table):
    """A word that ends the conversation.

    Attributes:
        keyword: The word, whose case must match.
        by: The role that must say the word; empty for any role.
    """

    keyword: str = Field(min_length=1)
    by: str = ""


class PythonEnd(_Table):
    """A function that ends the conversation when `function(conversation)` returns true, or the reason as text."""

    python: str


class ToolEnd(_Table):
    """A tool of the assistant that ends the conversation when it is called."""

    tool: str = Field(min_length=1)


class Dialogue(_Table):
    """The course of a conversation.

    Attributes:
        max_turns: Maximum number of turns. A turn is one message of each side.
        opens: The role that speaks first.
        ends: Conditions that end the conversation earlier.
        in_sequence: Whether one person's conversations are played one after another, in the order of the tasks.
    """

    max_turns: StrictInt = Field(10, ge=1)
    opens: Literal["user", "assistant"] = "user"
    ends: tuple[Ending | KeywordEnd | PythonEnd | ToolEnd, ...] = ("user_satisfied", "user_gives_up")
    in_sequence: StrictBool = False


class User(_Table):
    """The simulated user.

    Attributes:
        brief: The system prompt, as a template over `person` and `task`. The default lists all of their columns.
        traits: How the user behaves: the path of a file of real conversations, relative to the study's folder, from
            which each person's traits are drawn; `columns`, for the columns `length`, `directness`, `patience` and
            `corrections` of people; or `uncooperative` or `mistaken`. If empty, the behaviour depends only on the
            brief.
        opening: The user's first line, as a template over `person` and `task`. If empty, the model writes it.
        rules: Whether dialoom's rules for simulated users are appended to the brief.
    """

    brief: str = ""
    opening: str = ""
    traits: str = ""
    rules: StrictBool = True


class Assistant(_Table):
    """The assistant.

    Attributes:
        system: The system prompt; empty if the assistant has its own.
        environment: The environment on which the tools act, relative to the study's folder: `path/to/file.py:NAME`, or
            a file from which a built-in environment is created (`.db`, `.sqlite`, `.sqlite3`, `.sql`, `.json`).
        tools: Functions that the assistant is offered as tools, as `path/to/file.py:NAME`.
        mcp: MCP servers whose tools the assistant is offered, each given as a command or a URL.
        max_tool_turns: Maximum number of messages with tool calls in one turn. The conversation ends when this number
            is reached.
    """

    system: str = ""
    environment: str = ""
    tools: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    max_tool_turns: StrictInt = Field(10, ge=1)


class Speaks(_Table):
    """A condition on which a participant speaks: after each message of a role, or after a message with a keyword."""

    after: str = ""
    keyword: str = ""

    @model_validator(mode="after")
    def _check_rule(self) -> Self:
        if bool(self.after) == bool(self.keyword):
            raise ValueError("give either after or keyword")
        return self


class Participant(_Table):
    """A participant besides the user and the assistant.

    Attributes:
        name: The participant's role.
        brief: The system prompt, as a template over `person` and `task`.
        speaks: The condition on which it speaks; by default at the end of each turn.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    brief: str = Field(min_length=1)
    speaks: Literal["in turn"] | Speaks = "in turn"


class JudgeTable(_Table):
    """A metric that a model scores; see `dialoom.Judge`."""

    metric: str = Field(min_length=1)
    rubric: str | dict[str, str] = ""
    prompt: str = ""
    scale: tuple[StrictInt, StrictInt] | None = None
    target: str = ASSISTANT
    role: str = "judge"
    per_turn: StrictBool = False
    sees: tuple[str, ...] | None = None
    lower_is_better: bool = False

    @field_validator("rubric")
    @classmethod
    def _check_levels(cls, rubric: str | dict[str, str]) -> str | dict[str, str]:
        for level in rubric if isinstance(rubric, dict) else ():
            if re.fullmatch(r"-?\d{1,6}", level) is None:
                raise ValueError(f"a level of the scale must be a whole number, got {level!r}")
        return rubric


class CheckTable(_Table):
    """A metric that is computed from a pattern, by a Python function, or from the final state.

    Attributes:
        pattern: A regular expression. The metric is whether it matches anywhere in the target's messages.
        python: `path/to/file.py:function`, relative to the study's folder.
        sql: A SELECT statement for the final state of an SQLite environment; see `dialoom.Check.sql`.
        expected: The expected value of the SQL statement. If there is none, the value itself is the score.
        gold: The right final state, or the parts of it that matter; see `dialoom.Check.state`.
    """

    metric: str = Field(min_length=1)
    pattern: str = ""
    python: str = ""
    sql: str = ""
    expected: bool | int | float | str | list[Any] | None = None
    gold: dict[str, Any] | str | None = None
    scale: tuple[StrictInt, StrictInt] | None = None
    target: str = ASSISTANT
    lower_is_better: bool = False

    @field_validator("pattern")
    @classmethod
    def _check_pattern(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return pattern


class Variety(_Table):
    """Settings that keep the openings of the same task from repeating each other.

    Attributes:
        redraws: Maximum number of times that a conversation is played again because its opening nearly repeats an
            earlier opening of the same task.
        similarity: The minimum share of common pairs of adjacent words of two openings that are nearly the same.
    """

    redraws: StrictInt = Field(0, ge=0, le=10)
    similarity: StrictFloat = Field(0.6, gt=0, le=1)


class Study(_Table):
    """A study, read from a file or given to `dialoom.simulate`.

    Attributes:
        name: The recipe's name.
        quotas: Maximum number of conversations for each value of a column.
        text: The file's text; empty if there is none.
        file: The file's name.
        folder: The folder to which relative paths refer.
        content: A hash of rows that were given as Python values. Only the plan stores these rows.
        given: The fingerprints of functions that were given as Python objects, by name. No file stores these functions.
    """

    name: str = Field("study", pattern=r"^[A-Za-z][\w-]*$")
    people: Rows = Rows()
    tasks: Tasks | None = None
    dialogue: Dialogue = Dialogue()
    user: User = User()
    assistant: Assistant = Assistant()
    roles: tuple[Participant, ...] = Field((), alias="role")
    judges: tuple[JudgeTable, ...] = Field((), alias="judge")
    checks: tuple[CheckTable, ...] = Field((), alias="check")
    variety: Variety = Variety()
    quotas: dict[str, dict[str, Annotated[StrictInt, Field(ge=0)]]] = Field(default_factory=dict)
    text: str = ""
    file: str = ""
    folder: str = ""
    content: str = ""
    given: dict[str, str | None] = Field(default_factory=dict)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions in Python files that the study uses, as `path/to/file.py:NAME`."""
        end_functions = [each.python for each in self.dialogue.ends if isinstance(each, PythonEnd)]
        check_functions = [check.python for check in self.checks if check.python]
        environment = [*([self.assistant.environment] if is_function_reference(self.assistant.environment) else [])]
        references = dict.fromkeys([*end_functions, *check_functions, *environment, *self.assistant.tools])
        return tuple(name for name in references if name not in self.given)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as JSON values."""
        return self.model_dump(mode="json", exclude_defaults=True)


def read_study(path: Path, *, is_played: bool = True) -> Study:
    """Return the study that a TOML file declares.

    Args:
        path: The file.
        is_played: Whether the study is played. If only its judges and checks are used, it needs no people.

    Raises:
        DataError: If the file cannot be read or is not a study. The message states the line.
    """
    text = read_text(path, MAX_YAML_BYTES)
    values = parse_toml(text, path)
    if hidden := sorted(_INTERNAL_FIELDS & values.keys()):
        raise DataError(
            path, f"unknown key {hidden[0]!r}; the keys are {_format_keys(Study)}", find_line(text, (hidden[0],))
        )
    name = re.sub(r"[^\w-]+", "-", path.stem, flags=re.ASCII).strip("-")
    name = name if name[:1].isalpha() else f"study-{name}"
    try:
        study = Study.model_validate(
            {"name": name, **values, "text": text, "file": path.name, "folder": str(path.absolute().parent)}
        )
    except ValidationError as error:
        raise _make_error(error, text, path) from error
    if is_played and "people" not in values:
        raise DataError(path, "a table [people] is missing", find_line(text, ("people",)))
    _check_complete(study, path)
    return study


def _check_complete(study: Study, path: Path) -> None:
    """Check conditions on several keys that apply only to a study file, not to a study made of Python values."""
    for table, rows in (("people", study.people), ("tasks", study.tasks)):
        if rows is not None and not rows.file and not rows.rows and table in study.model_fields_set:
            raise DataError(path, f'[{table}] needs file = "..." or rows = [...]', find_line(study.text, (table,)))
    for number, check in enumerate(study.checks):
        if sum(map(bool, (check.pattern, check.python, check.sql, check.gold))) != 1:
            message = f"[[check]] {check.metric!r} needs one of pattern, python, sql and gold"
            raise DataError(path, message, find_line(study.text, ("check", number)))
        if check.expected is not None and not check.sql:
            message = f"[[check]] {check.metric!r}: give expected only with sql"
            raise DataError(path, message, find_line(study.text, ("check", number, "expected")))
    references: list[tuple[str, tuple[str | int, ...]]] = [
        (check.python, ("check", number, "python")) for number, check in enumerate(study.checks) if check.python
    ]
    references += [(end.python, ("dialogue", "ends")) for end in study.dialogue.ends if isinstance(end, PythonEnd)]
    references += [(spec, ("assistant", "tools")) for spec in study.assistant.tools]
    for spec, loc in references:
        if not is_function_reference(spec):
            key = "tools" if loc == ("assistant", "tools") else "python"
            message = f"{key} = {spec!r} must have the form file.py:function"
            raise DataError(path, message, find_line(study.text, loc))


def is_function_reference(spec: str) -> bool:
    """Return whether a text has the form of a reference to a function or class in a Python file."""
    return re.fullmatch(r".+\.py:[A-Za-z_]\w*", spec) is not None


_INTERNAL_FIELDS = frozenset({"text", "file", "folder", "content", "given"})


def _make_error(error: ValidationError, text: str, path: Path) -> DataError:
    """Return the first problem of a study's file as an error that states the line and the correct form."""
    problems = error.errors()
    parsed: Any = parse_toml(text, path)
    first = problems[0]
    if first["type"] == "missing":  # an unknown key of the same table is named first, as it may be mistyped
        siblings = (each for each in problems if each["loc"][:-1] == first["loc"][:-1])
        first = next((each for each in siblings if each["type"] == "extra_forbidden"), first)
    loc = tuple(part for part in first["loc"] if not str(part).startswith("function-"))
    table, *keys = (str(part) for part in loc if not isinstance(part, int))
    where = f"[[{table}]]" if table in ("role", "judge", "check") else f"[{table}]"
    key_path = " ".join([where, *keys[:1]]) if keys or isinstance(first["input"], Mapping) else table
    if loc[0] == "judge" and "scale" in loc:
        value = parsed[loc[0]][loc[1]][loc[2]]
        message = f"[[judge]] scale must be [LOWEST, HIGHEST], two whole numbers, got {value!r:.60}"
    elif first["type"] == "extra_forbidden":
        owner, key = _find_model(loc[:-1]), str(loc[-1])
        similar = get_close_matches(key, _list_keys(owner), 1)
        hint = f"did you mean {similar[0]!r}? " if similar else ""
        where = where if len(loc) > 1 else "the study"
        message = f"{where} has an unknown key {key!r}; {hint}the keys are {_format_keys(owner)}"
    elif first["type"] == "missing":
        message = f"{where} needs {loc[-1]!r}" if len(loc) > 1 else f"a table [{table}] is missing"
    elif first["type"] == "model_type":
        message = f"{table} must be a table, {where} with its keys below, got {first['input']!r:.60}"
    elif loc == ("dialogue", "ends"):
        message = f'[dialogue] ends must be a list, as in ends = ["{SATISFIED}"], got {first["input"]!r:.60}'
    elif loc[:2] == ("dialogue", "ends"):
        value = parsed[loc[0]][loc[1]][loc[2]]
        message = (
            f'[dialogue] ends contains {value!r}; it can contain {SATISFIED!r}, {GIVES_UP!r}, {{ keyword = "WORD" }}, '
            '{ python = "file.py:function" } and { tool = "NAME" }'
        )
    elif first["type"] == "value_error":
        message = f"{key_path}: {first['msg'].removeprefix('Value error, ')}, got {first['input']!r:.60}"
    else:
        message = f"{key_path} must be {describe_requirement(first)}, got {first['input']!r:.60}"
    return DataError(path, message, find_line(text, loc))


def _find_model(loc: Sequence[str | int]) -> type[BaseModel]:
    """Return the Pydantic model class of the table at a location in a study."""
    model: Any = Study
    for part in loc:
        fields = {each.alias or name: each.annotation for name, each in model.model_fields.items()}
        model = next(_iter_models(fields.get(str(part))), model)
    return model  # type: ignore[no-any-return]


def _iter_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (tuple, Union, UnionType):
        yield from chain.from_iterable(map(_iter_models, get_args(annotation)))


def _list_keys(model: type[BaseModel]) -> list[str]:
    return [
        each.alias or name
        for name, each in model.model_fields.items()
        if model is not Study or name not in _INTERNAL_FIELDS
    ]


def _format_keys(model: type[BaseModel]) -> str:
    return ", ".join(_list_keys(model))


_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]")


def find_line(text: str, loc: Sequence[str | int]) -> int | None:
    """Return the line of a key in a TOML text, or of its table if the key is missing; `None` if neither is found.

    Args:
        text: The text, in which keys are not dotted.
        loc: The location: the table, its number if there are several such tables, and the key.
    """
    keys = [str(part) for part in loc if not isinstance(part, int)]
    number = next((part for part in loc[1:2] if isinstance(part, int)), 0)
    table, key = (keys[0], keys[1] if len(keys) > 1 else "") if keys else ("", "")
    current_table, table_number, header_line = "", -1, None
    for line, content in enumerate(text.splitlines(), start=1):
        if (header := _HEADER.match(content)) is not None:
            if (current_table := header[2]) == table:
                table_number += 1
                header_line = line if table_number == number else header_line
        else:
            wanted_key = table if not current_table else key if (current_table, table_number) == (table, number) else ""
            if wanted_key and re.match(rf"\s*[\"']?{re.escape(wanted_key)}[\"']?\s*=", content):
                return line
    return header_line


@dataclass(frozen=True)
class FileFunction:
    """A function in a Python file, which is imported when it is first called.

    Attributes:
        spec: `path/to/file.py:NAME`.
        folders: The folders in which a relative path is looked up, in order.
    """

    spec: str
    folders: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The path of the file in the first folder that contains it."""
        file = self.spec.rpartition(":")[0]
        paths = [path for folder in self.folders if (path := Path(folder, file)).is_file()]
        return (paths or [Path(self.folders[0], file)])[0]

    def load(self) -> Callable[..., Any]:
        """Return the function.

        Raises:
            StudyError: If the file or the function does not exist, or the file cannot be imported.
        """
        name = self.spec.rpartition(":")[2]
        try:
            module = _load_module(self.path, hashlib.sha256(self.path.read_bytes()).hexdigest())
        except FileNotFoundError as error:
            raise StudyError(f"{self.spec!r}: there is no file {format_path(self.path)}") from error
        except BindingError as error:
            why = error.__cause__
            raise StudyError(
                f"{self.spec!r}: {format_path(self.path)} cannot be imported: {type(why).__name__}: {why}"
            ) from why
        except OSError as error:
            raise StudyError(f"{self.spec!r}: {error}") from error
        function = getattr(module, name, None)
        if not callable(function):
            raise StudyError(f"{self.spec!r}: {format_path(self.path)} has no function or class {name!r}")
        return function  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """The function's name in messages."""
        return self.spec

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self.load()(*arguments)


@cache
def _load_module(path: Path, _digest: str) -> ModuleType:
    return load_file(path, str(path))


def format_path(path: Path) -> Path:
    """Return a path relative to the working folder if it is inside that folder; otherwise unchanged."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


class StudyError(DialoomError):
    """A study with a part that cannot be used. The message states the part and the correct form."""
