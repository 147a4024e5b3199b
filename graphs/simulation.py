"""Simulated users: the recipe that a study makes, whether it comes from a file or from Python values."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from langchain_core.messages import BaseMessage
from pydantic import Field

from dialoom.errors import DialoomError
from dialoom.inputs import DataError
from dialoom.prompts import Prompt, Utterance
from dialoom.sandbox import Sandbox

from .built_in_environments import environment_of_file
from .check import Check, Conversation
from .conversation import TOOL, lines
from .dialogue import MAX_TURNS, DialogueRecipe, Extra, Turns, has_word
from .gate.talk import Facts
from .judge import Judge
from .outcome import Episode, Outcome
from .recipe import RecipeOptions
from .reporting.table import Facet, Table
from .scenario import Scenario
from .state_checks import gold_check, sql_check
from .study import (
    ASSISTANT,
    GIVES_UP,
    SATISFIED,
    USER,
    FileFunction,
    KeywordEnd,
    PythonEnd,
    Study,
    ToolEnd,
    line_of,
    shown,
)
from .study_rows import PORTRAIT, Source, pairs, references
from .variety import opening_of, variety_table

_MARKERS = {SATISFIED: "DONE", GIVES_UP: "QUIT"}
"""The words by which the simulated user ends a conversation, as the shipped rules tell it."""

_LONGEST_LABEL = 40
_LONGEST_FACET = 80
"""The most characters of a facet: longer values are descriptions, by which nothing can be grouped."""


class SimulatedTalk(Scenario):
    """One person with one task.

    Attributes:
        name: The person's name, which no other person has.
        person: The columns of the person's row.
        task: The columns of the task's row; empty if people have no tasks.
    """

    name: str
    person: dict[str, Any]
    task: dict[str, Any]

    @property
    def label(self) -> str:
        """The person's name and the beginning of the task."""
        return f"{self.name} {next(iter(self.task.values()), '')}"[:_LONGEST_LABEL].strip()

    def facets(self) -> dict[str, Any]:
        """Return the person's name, and the short columns of both rows.

        A column of the task that the person also has is renamed to `task_COLUMN`.
        """
        person = {key: value for key, value in self.person.items() if str(value) != self.name and key != PORTRAIT}
        task = {f"task_{name}" if name in self.person else name: value for name, value in self.task.items()}
        short = {
            name: value
            for name, value in {**person, **task}.items()
            if isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _LONGEST_FACET)
        }
        return {"person": self.name, **short}

    def described(self) -> dict[str, Any]:
        """Return the name and all columns, but for the portrait made from them."""
        return {**self.facets(), **{name: value for name, value in self.task.items() if name not in self.person}}

    def portrait(self) -> Mapping[str, Any]:
        """Return the person's columns."""
        return {name: value for name, value in self.person.items() if name != PORTRAIT}


class SimulationOptions(RecipeOptions):
    """The options of a study.

    Attributes:
        judge: Whether judges score the conversations.
        mcp: MCP servers whose tools the assistant is offered, besides those of the study.
    """

    judge: bool = Field(True, description="Let judges score the conversations.")
    mcp: tuple[str, ...] = Field(
        (), description="Offer the assistant the tools of this MCP server: its command, or its URL. Repeatable."
    )


class Simulation(DialogueRecipe):
    """Conversations of simulated users with an assistant.

    Attributes:
        study: What the recipe was made from.
        sources: The people and the tasks.
        named: The functions of files that it calls.
        missing: Names of functions that were given as Python objects when the run was made, and not now.
        begins_with: The file that a built-in environment begins with; `None` for none.
    """

    name = "study"
    prompts: ClassVar[Mapping[str, str]] = {}
    options_type = SimulationOptions
    scenario_type = SimulatedTalk
    facets = (Facet("person", splits=True),)
    study: ClassVar[Study]
    sources: ClassVar[tuple[Source, Source | None]]
    named: ClassVar[tuple[FileFunction, ...]] = ()
    missing: ClassVar[tuple[str, ...]] = ()
    begins_with: ClassVar[Path | None] = None

    def scenarios(
        self,
        options: SimulationOptions,
        draw: Random,
        note: Callable[[str], None],
    ) -> Iterator[SimulatedTalk]:
        """Yield the conversations in the order of the rows: all tasks of the first person, then those of the next.

        Conversations beyond a quota are left out.
        """
        left = {column: dict(values) for column, values in self.study.quotas.items()}
        known = set[str]()
        for name, person, task in pairs(self.study, *self.sources, draw):
            row = {**person, **task}
            known.update(left.keys() & row.keys())
            wanted = [(each, str(row.get(column))) for column, each in left.items() if str(row.get(column)) in each]
            if any(each[value] < 1 for each, value in wanted):
                continue
            for each, value in wanted:
                each[value] -= 1
            yield SimulatedTalk(name=name, person=person, task=task)
        for column, values in left.items():
            if column not in known:
                message = f"[quotas] names the column {column!r}, which neither people nor tasks have"
                raise _wrong(self.study, ("quotas", column), message)
            for value, missing in values.items():
                if missing > 0:
                    wanted_count = self.study.quotas[column][value]
                    note(f"quota {column} = {value}: {wanted_count - missing:,} of {wanted_count:,} conversations")

    def check_inputs(self, library: Mapping[str, Prompt], servers: Sequence[str] = ()) -> None:
        """Check also that the file exists that the environment begins with.

        Raises:
            DataError: If it does not.
        """
        if self.begins_with is not None and not self.begins_with.is_file():
            message = f"environment = {self.study.assistant.environment!r}: there is no file {shown(self.begins_with)}"
            raise _wrong(self.study, ("assistant", "environment"), message)
        super().check_inputs(library, servers)

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return every metric, overall and by each facet with few values, and the variety of openings."""
        openings: list[str] = []

        def read() -> Iterator[Episode]:
            for episode in episodes:
                openings.append(opening_of(episode.outcome))
                yield episode

        found = super().tables(read())
        return [*found, variety_table(openings)] if openings else found

    def heard(self, role: str, messages: Sequence[BaseMessage]) -> list[Utterance]:
        """Return the conversation; among more than two participants, others' messages begin with their names."""
        said = super().heard(role, messages)
        if len(self.turns.roles) > 2:
            for each in said:
                if each["speaker"] not in (role, TOOL):
                    each["content"] = f"{each['speaker']}: {each['content']}"
        return said

    def facts(self, scenario: SimulatedTalk) -> Facts:
        """Return the facts for the gate's rules: the task and the end markers."""
        return Facts(
            languages=self.languages,
            task=" ".join(str(value) for value in scenario.task.values()),
            end_markers=tuple(self.turns.markers),
            user_ends=SATISFIED,
            limit=MAX_TURNS,
        )


def simulation(
    study: Study,
    folders: Iterable[str] = (),
    *,
    people: Iterable[Any] | None = None,
    tasks: Iterable[Any] | None = None,
    judges: Sequence[Judge] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Simulation:
    """Return the recipe of a study.

    Args:
        study: The study.
        folders: The folders in which its Python files are looked up; by default its own.
        people: Rows given as Python values, in place of the study's.
        tasks: The tasks, likewise.
        judges: Judges given as Python values, in place of the study's.
        functions: Functions given as Python objects, by the names of their checks or ends.

    Raises:
        DataError: If a part is wrong, naming the study's file and line.
        DialoomError: If the study has no file.
    """
    looked = tuple(folders) or (study.folder,)
    named = {spec: FileFunction(spec, looked) for spec in study.functions}
    given = dict(functions or {})
    attributes: dict[str, Any] = {
        "__doc__": Simulation.__doc__,
        "__module__": __name__,
        "name": study.name,
        "study": study,
        "sources": _sources(study, people, tasks),
        "prompts": _prompts(study),
        "facets": (Facet("person", splits=True, in_sequence=study.dialogue.in_sequence),),
        "turns": _turns(study, {**named, **given}),
        "judges": tuple(_judges(study)) if judges is None else tuple(judges),
        "checks": tuple(_check(study, number, {**named, **given}) for number in range(len(study.checks))),
        "named": tuple(named.values()),
        "tools": tuple({**named, **given}.get(name, _not_given) for name in study.assistant.tools),
        "mcp": study.assistant.mcp,
        "max_tool_turns": study.assistant.max_tool_turns,
        **_environment(study, {**named, **given}, looked),
        "missing": () if judges is not None else tuple(name for name in study.given if name not in given),
    }
    made: Simulation = type("Simulation", (Simulation,), attributes)()
    return made


def _environment(study: Study, functions: Mapping[str, Callable[..., Any]], folders: Sequence[str]) -> dict[str, Any]:
    """Return the attributes of a recipe with the study's environment."""
    spec = study.assistant.environment
    if not spec:
        return {}
    if spec in functions or spec in study.given:
        return {"environment": staticmethod(functions.get(spec, _not_given))}
    path = FileFunction(f"{spec}:", tuple(folders)).path
    factory = environment_of_file(path)
    if factory is None:
        kinds = "file.py:NAME, or a file .db, .sqlite, .sqlite3, .sql or .json"
        raise _wrong(study, ("assistant", "environment"), f"environment = {spec!r} must be {kinds}")
    return {"environment": factory, "begins_with": path}


def _sources(study: Study, people: Iterable[Any] | None, tasks: Iterable[Any] | None) -> tuple[Source, Source | None]:
    named = references(study)
    first = Source("people", study.people, study.folder, "description", people, named["person"])
    if study.tasks is None:
        return first, None
    return first, Source("tasks", study.tasks, study.folder, "goal", tasks, named["task"])


def _prompts(study: Study) -> dict[str, str]:
    user = study.user.brief or _shipped("user")
    if study.user.rules:
        ends = [each for each in study.dialogue.ends if isinstance(each, str)]
        user += "\n\n" + Sandbox(trim_blocks=True).from_string(_shipped("user-rules")).render(ends=ends)
    found = {USER: user, ASSISTANT: study.assistant.system, **{each.name: each.brief for each in study.roles}}
    if study.roles:
        found = {role: f"{text}\n\n{_shipped('several')}".strip() for role, text in found.items()}
    return found


def _turns(study: Study, functions: Mapping[str, Callable[..., Any]]) -> Turns:
    dialogue = study.dialogue
    known = {USER, ASSISTANT, *(each.name for each in study.roles)}
    if len(known) < 2 + len(study.roles):
        raise _wrong(
            study, ("role",), "the names of [[role]] must differ from each other, from user and from assistant"
        )
    in_turn = [each.name for each in study.roles if isinstance(each.speaks, str)]
    extras = []
    for number, each in enumerate(study.roles):
        if isinstance(each.speaks, str):
            continue
        if each.speaks.after and each.speaks.after not in known - {each.name}:
            others = ", ".join(sorted(known - {each.name}))
            message = f"[[role]] {each.name!r} speaks after {each.speaks.after!r}; there are {others}"
            raise _wrong(study, ("role", number, "speaks"), message)
        extras.append(Extra(each.name, each.speaks.after, each.speaks.keyword))
    sides = (USER, ASSISTANT) if dialogue.opens == USER else (ASSISTANT, USER)
    markers = {_MARKERS[each]: each for each in dialogue.ends if isinstance(each, str)}
    return Turns(
        (*sides, *in_turn),
        dialogue.max_turns,
        ended_by=USER,
        until=_until(study, functions),
        other_markers=markers,
        extras=tuple(extras),
        ending_tools=tuple(each.tool for each in dialogue.ends if isinstance(each, ToolEnd)),
    )


def _until(study: Study, functions: Mapping[str, Callable[..., Any]]) -> Callable[[Any, list[BaseMessage]], str] | None:
    """Return the function that ends a conversation by keywords and Python functions."""
    ends = [each for each in study.dialogue.ends if isinstance(each, KeywordEnd | PythonEnd)]
    if not ends:
        return None

    def until(scenario: Any, messages: list[BaseMessage]) -> str:
        talk = Conversation(scenario, Outcome(messages=lines(messages), ended_by=""))
        return next(filter(None, (_reason(end, messages[-1], talk, functions) for end in ends)), "")

    return until


def _reason(
    end: KeywordEnd | PythonEnd, last: BaseMessage, talk: Conversation, functions: Mapping[str, Callable[..., Any]]
) -> str:
    """Return the reason for which a conversation is over after its last message; empty if it goes on."""
    if isinstance(end, KeywordEnd):
        is_by = end.by in ("", last.name)
        return f"keyword {end.keyword}" if is_by and has_word(str(last.content), end.keyword) else ""
    found = functions[end.python](talk)
    return found if isinstance(found, str) else end.python.rpartition(":")[2] if found else ""


def _judges(study: Study) -> Iterator[Judge]:
    for number, each in enumerate(study.judges):
        levels = {int(key): text for key, text in each.rubric.items()} if isinstance(each.rubric, dict) else each.rubric
        try:
            yield Judge(**{**each.model_dump(), "rubric": levels})
        except DialoomError as error:
            message = str(error).replace("scale=(1, 5)", "scale = [1, 5]") if study.text else str(error)
            raise _wrong(study, ("judge", number), message) from error


def _check(study: Study, number: int, functions: Mapping[str, Callable[..., Any]]) -> Check:
    each = study.checks[number]
    if each.pattern:
        return Check(each.metric, _matches(re.compile(each.pattern), each.target), each.scale, each.target)
    try:
        if each.sql:
            return Check(each.metric, sql_check(each.sql, each.expected), each.scale, each.target)
        if each.gold:
            return Check(each.metric, gold_check(each.gold), each.scale, each.target)
    except DialoomError as error:
        raise _wrong(study, ("check", number), str(error)) from error
    function = functions.get(each.python or each.metric, _not_given)
    return Check(each.metric, function, each.scale, each.target)


def _matches(pattern: re.Pattern[str], target: str) -> Callable[[Conversation], bool]:
    def is_found(conversation: Conversation) -> bool:
        return pattern.search(conversation.text(target)) is not None

    return is_found


def _not_given(*_: Any) -> Any:
    raise ValueError("the function was given as a Python object, and is in no file")


def _wrong(study: Study, loc: tuple[str | int, ...], message: str) -> DialoomError:
    if not study.text:
        return DialoomError(message)
    return DataError(shown(Path(study.folder, study.file)), message, line_of(study.text, loc))


@cache
def _shipped(name: str) -> str:
    return (resources.files("dialoom.prompts") / "dialogue" / f"{name}.txt").read_text(encoding="utf-8").strip()


def content_of(rows: Iterable[Any]) -> str:
    """Return the first 16 hex digits of the SHA-256 of rows of JSON values."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, default=str).encode() + b"\n")
    return digest.hexdigest()[:16]
