"""Simulated users: the recipe that plays a study, which is read from a file or given as Python values."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from jinja2 import StrictUndefined, TemplateSyntaxError
from langchain_core.messages import BaseMessage
from pydantic import Field

from dialoom.errors import Advice, DialoomError
from dialoom.graphs.tables.diversity import build_variety_table, find_opening
from dialoom.inputs import DataError
from dialoom.prompts import Prompt, Utterance, shared_text
from dialoom.sandbox import Sandbox
from dialoom.text import to_well_formed

from .built_in_environments import find_environment_class
from .capabilities import WithLabels
from .check import Check, Conversation, make_gold_check, make_sql_check, reject_coroutine
from .conversation import TOOL, DialogueState, lines, said
from .dialogue import MAX_TURNS, DialogueRecipe, ExtraRole, Turns, has_word
from .gate.talk import Facts
from .judge import JUDGE_INPUTS, Judge
from .outcome import ENVIRONMENT, REVIEWER, SYSTEM, TRIAL_OF, USER_MODEL, Episode, Judgement, Outcome
from .recipe import RecipeOptions
from .scenario import MAX_LABEL_CHARACTERS
from .stage import Scene, Update
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
    find_line,
    format_path,
)
from .study_rows import (
    MAX_LISTED_NAMES,
    PERSON,
    PORTRAIT,
    TASK,
    RowSource,
    find_references,
    find_study_references,
    follow_path,
    pair_people_with_tasks,
    rubric_text,
)
from .tables.table import Facet, Table
from .traits import COLUMNS, STRESS, TraitedScenario, TraitFunction, load_traits

_MARKERS = {SATISFIED: "DONE", GIVES_UP: "QUIT"}
"""The words with which the simulated user ends a conversation. The shipped prompts instruct the user to write them."""

RESERVED_NAMES = ("person", "trial", TRIAL_OF, USER_MODEL)
"""Names of facets and columns that say whose, and which, conversation it is."""

_MAX_FACET_CHARACTERS = 80
"""Maximum number of characters of a facet's value. Longer values describe a single person or task, and are not useful
as groups.
"""


class SimulatedTalk(TraitedScenario):
    """A scenario of a study: a conversation with a person, who usually has a task.

    Attributes:
        name: The person's name, which is unique.
        person: The columns of the person's row.
        task: The columns of the task's row; empty if people have no tasks.
    """

    name: str
    person: dict[str, Any]
    task: dict[str, Any]

    @property
    def label(self) -> str:
        """The person's name and the beginning of the task."""
        return f"{self.name} {next(iter(self.task.values()), '')}"[:MAX_LABEL_CHARACTERS].strip()

    def facets(self) -> dict[str, Any]:
        """Return the person's name, and the short columns of both rows.

        If both rows have a column of the same name, the task's column is renamed to `task_COLUMN`. A column of either
        row that is named like one of `RESERVED_NAMES` is renamed as well, such as `person` to `person_person` or
        `task_person`, because the facet `person` is the name.
        """
        person = {
            f"person_{name}" if name in RESERVED_NAMES else name: value
            for name, value in self.person.items()
            if str(value) != self.name and name != PORTRAIT
        }
        short = {
            name: value
            for name, value in {**person, **self._task_columns()}.items()
            if isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _MAX_FACET_CHARACTERS)
        }
        return {"person": self.name, **short, **self.trait_facets()}

    def described(self) -> dict[str, Any]:
        """Return the facets, and all columns of the task's row."""
        return {**self.facets(), **self._task_columns()}

    def _task_columns(self) -> dict[str, Any]:
        used_names = {*RESERVED_NAMES, *self.person}
        return {f"task_{name}" if name in used_names else name: value for name, value in self.task.items()}

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


class Simulation(DialogueRecipe, WithLabels):
    """Conversations of simulated users with an assistant.

    Attributes:
        study: The study from which the recipe was made.
        sources: The people and the tasks.
        file_functions: The functions of Python files that the study calls.
        missing_functions: Names of functions that were given as Python objects when the run was made but are not
            given now.
        environment_file: The file from which the built-in environment is created; `None` if there is none.
    """

    name = "study"
    prompts: ClassVar[Mapping[str, str]] = {}
    options_type = SimulationOptions
    scenario_type: ClassVar[type[SimulatedTalk]] = SimulatedTalk
    facets: ClassVar[tuple[Facet, ...]] = (Facet("person", splits=True),)
    study: ClassVar[Study]
    sources: ClassVar[tuple[RowSource, RowSource | None]]
    file_functions: ClassVar[tuple[FileFunction, ...]] = ()
    missing_functions: ClassVar[tuple[str, ...]] = ()
    environment_file: ClassVar[Path | None] = None

    @property
    def lacks_tools(self) -> bool:
        """Return whether tools or an environment that were given as Python objects are missing now."""
        return not {self.study.assistant.environment, *self.study.assistant.tools}.isdisjoint(self.missing_functions)

    def scenarios(
        self,
        options: SimulationOptions,
        draw: Random,
        note: Callable[[str], None],
    ) -> Iterator[SimulatedTalk]:
        """Yield the conversations in the order of the rows: all tasks of the first person, then the next person's.

        Conversations that exceed a quota are left out.

        Raises:
            DataError, DialoomError: If a column has the name of a metric, or a quota's column does not exist.
        """
        traits = self._load_traits(draw, note)
        remaining = {column: dict(values) for column, values in self.study.quotas.items()}
        known = set[str]()
        count, left_out_count, left_out = 0, 0, list[str]()
        for name, planned in groupby(pair_people_with_tasks(self.study, *self.sources, draw, note), key=itemgetter(0)):
            has_no_conversation = True
            for _, person, task in planned:
                row = {**person, **task}
                known.update(remaining.keys() & row.keys())
                matching = [
                    (each, str(row.get(column))) for column, each in remaining.items() if str(row.get(column)) in each
                ]
                if all(each[value] >= 1 for each, value in matching):
                    for each, value in matching:
                        each[value] -= 1
                    has_no_conversation = False
                    talk = SimulatedTalk(name=name, person=person, task=task, traits=traits(name, person))
                    self.check_columns(talk.facets())
                    yield talk
            count, left_out_count = count + 1, left_out_count + has_no_conversation
            left_out += [name] if has_no_conversation and len(left_out) < MAX_LISTED_NAMES else []
        if left_out_count:
            rest = f" and {left_out_count - len(left_out):,} more" if left_out_count > len(left_out) else ""
            note(
                f"quotas leave {left_out_count:,} of {count:,} people without a conversation: "
                f"{', '.join(left_out)}{rest}"
            )
        for column, values in remaining.items():
            if column not in known:
                message = f"[quotas] has the column {column!r}, which neither people nor tasks have"
                raise _make_error(self.study, ("quotas", column), message)
            for value, missing in values.items():
                if missing > 0:
                    quota = self.study.quotas[column][value]
                    note(f"quota {column} = {value}: {quota - missing:,} of {quota:,} scenarios")

    @cached_property
    def _metric_names(self) -> frozenset[str]:
        return frozenset(self.metrics)

    def check_columns(self, columns: Iterable[str]) -> None:
        """Check that no column has the name of a metric, because tables and filters find both by their names.

        Raises:
            DataError, DialoomError: If a column has the name of a metric.
        """
        if ambiguous := sorted(self._metric_names.intersection(columns)):
            message = f"{ambiguous[0]!r} is both a column of the rows and a metric of a judge or check; rename one"
            raise _make_error(self.study, (), message)

    def check_roles(self, other_roles: Iterable[str] = ()) -> None:
        """Check that all roles that are scored, or whose keyword ends the conversation, take part in the conversation.

        Args:
            other_roles: Roles besides those of the study, read only if the study's roles are not enough.

        Raises:
            DataError, DialoomError: If a role does not take part. The message lists the roles that do.
        """
        tables: dict[str, Sequence[Judge | Check]] = {"judge": self.judges, "check": self.checks}
        references: list[tuple[str, str, tuple[str | int, ...]]] = [
            (f"[[{kind}]] {each.metric!r} has the target", each.target, (kind, number, "target"))
            for kind, scorers in tables.items()
            for number, each in enumerate(scorers)
        ]
        ends = [each for each in self.study.dialogue.ends if isinstance(each, KeywordEnd) and each.by]
        references += [
            (f"the speaker of the keyword {each.keyword!r} is", each.by, ("dialogue", "ends")) for each in ends
        ]
        roles = dict.fromkeys([USER, ASSISTANT, *(each.name for each in self.study.roles)])
        if all(role in roles for _, role, _ in references):
            return
        roles |= dict.fromkeys(other_roles)
        for what, role, where in references:
            if role not in roles:
                message = f"{what} {role!r}, which is not a role; the roles are {', '.join(roles)}"
                raise _make_error(self.study, where, message)

    def check_rubric_columns(self, talks: Iterable[tuple[SimulatedTalk, Outcome]]) -> None:
        """Check, before a judge is called, that conversations have the columns that the study's rubrics use.

        Args:
            talks: The conversations to judge, with their outcomes.

        Raises:
            DataError, DialoomError: If a conversation lacks a column. The message states the metric, the column, and
                the number of these conversations.
        """
        uses = [
            (number, variable, each)
            for number, judge in enumerate(self.study.judges)
            for variable, named in find_references({f"the rubric of {judge.metric!r}": rubric_text(judge)}).items()
            for each in named
            if each.is_needed
        ]
        count, lacking = 0, Counter[int]()
        first: dict[int, tuple[SimulatedTalk, Mapping[str, Any]]] = {}
        for talk, outcome in talks:
            count += 1
            for place, (number, variable, each) in enumerate(uses):
                value, depth = follow_path(getattr(talk, variable), each.path)
                is_lacking = depth < len(each.path) and isinstance(value, Mapping)
                if is_lacking and self.judges[number].open_cases(talk, outcome):
                    lacking[place] += 1
                    first.setdefault(place, (talk, value))
        for place in sorted(first):
            number, variable, each = uses[place]
            (talk, value), used = first[place], ".".join([variable, *each.path])
            raise _make_error(
                self.study,
                ("judge", number, "rubric"),
                f"{each.where} uses {used}, which {lacking[place]:,} of {count:,} conversations lack (first: "
                f"{talk.id}, which has {', '.join(map(str, value)) or 'none'}); add it, or write "
                f"{{{{ {used} | default('unknown') }}}}",
                Advice("leave_out", "or leave these conversations out with 'where'"),
            )

    def _load_traits(self, draw: Random, note: Callable[[str], None]) -> TraitFunction:
        """Return a function that returns a person's traits. They are empty if the study specifies no traits."""
        if not (spec := self.study.user.traits):
            return lambda _name, _row: {}
        is_file = spec not in (COLUMNS, *STRESS)
        return load_traits(str(format_path(Path(self.study.folder, spec))) if is_file else spec, draw, note)

    def check_inputs(self, library: Mapping[str, Prompt], servers: Sequence[str] = ()) -> None:
        """Check inputs as the base class does, and check that the environment's file exists.

        Raises:
            DataError: If the file does not exist.
        """
        if self.environment_file is not None and not self.environment_file.is_file():
            file = format_path(self.environment_file)
            message = f"environment = {self.study.assistant.environment!r}: there is no file {file}"
            raise _make_error(self.study, ("assistant", "environment"), message)
        super().check_inputs(library, servers)

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return tables of every metric, overall and by each facet with few values, and of the variety of openings."""
        openings: list[str] = []

        def collect_openings() -> Iterator[Episode]:
            for episode in episodes:
                openings.append(find_opening(episode.outcome))
                yield episode

        tables = super().tables(collect_openings())
        return [*tables, build_variety_table(openings)] if openings else tables

    def prompt_texts(self, sets: Sequence[str]) -> Mapping[str, str]:
        """Return the text of each role's prompt, assembled from the given sets of prompts."""
        return _build_prompts(self.study, sets)

    def build_history(self, role: str, messages: Sequence[BaseMessage]) -> list[Utterance]:
        """Return the conversation for a role.

        With more than two participants, other roles' messages begin with their names.
        """
        utterances = super().build_history(role, messages)
        for each in utterances if len(self.turns.roles) > 2 else ():
            if each["speaker"] not in (role, SYSTEM, TOOL):
                each["content"] = f"{each['speaker']}: {each['content']}"
        return utterances

    def speaker(self, role: str) -> Callable[[Any, Scene], Awaitable[Update]]:
        """Return the node function of a role.

        If the study gives the user's first line, the user is not asked for it.
        """
        speak = super().speaker(role)
        if role != USER or not self.study.user.opening:
            return speak
        opening = Sandbox(undefined=StrictUndefined).from_string(self.study.user.opening)

        async def open_dialogue(state: DialogueState, scene: Scene) -> Update:
            messages = state["messages"]
            if any(message.name == USER for message in messages):
                return await speak(state, scene)
            talk: SimulatedTalk = scene.scenario
            line = said(USER, opening.render(person=talk.person, task=talk.task).strip(), len(messages))
            reason = self.turns.reason(talk, USER, [*messages, line], "")
            return {"messages": [line], "ended_by": state["ended_by"] or reason}

        open_dialogue.__name__ = role
        return open_dialogue

    def judged_about(self, scenario: SimulatedTalk, judgement: Judgement) -> Mapping[str, Any]:
        """Return the columns of the person's and the task's row, which annotators see besides the conversation."""
        return {"person": {"name": scenario.name, **scenario.portrait()}, "task": scenario.task}

    def facts(self, scenario: SimulatedTalk) -> Facts:
        """Return the facts for the gate's rules: the task and the end markers."""
        return Facts(
            languages=self.languages,
            task=" ".join(str(value) for value in scenario.task.values()),
            end_markers=tuple(self.turns.markers),
            user_ends=SATISFIED,
            limit=MAX_TURNS,
        )


def build_simulation(
    study: Study,
    folders: Iterable[str] = (),
    *,
    people: Iterable[Any] | None = None,
    tasks: Iterable[Any] | None = None,
    judges: Sequence[Judge] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    base: type[Simulation] = Simulation,
) -> Simulation:
    """Return the recipe of a study.

    Args:
        study: The study.
        folders: The folders in which the study's Python files are looked up; by default the study's own folder.
        people: People as Python values, in place of the study's people.
        tasks: Tasks as Python values, in place of the study's tasks.
        judges: Judges as Python values, in place of the study's judges.
        functions: Functions and other Python objects, by the names that the study uses for them.
        base: The class of the recipe. A class other than `Simulation` keeps its own name and facets.

    Raises:
        DataError: If a part is wrong. The message states the study's file and line.
        DialoomError: If a part is wrong and the study was not read from a file.
    """
    search_folders = tuple(folders) or (study.folder,)
    _check_templates(study, base.scenario_type)
    file_functions = {spec: FileFunction(spec, search_folders) for spec in study.functions}
    objects = dict(functions or {})
    attributes: dict[str, Any] = {
        "__doc__": base.__doc__,
        "__module__": __name__,
        "study": study,
        "sources": _build_sources(study, people, tasks),
        "prompts": _build_prompts(study, ()),
        "turns": _build_turns(study, {**file_functions, **objects}),
        "judges": tuple(map(_require_speaking_target, _build_judges(study) if judges is None else judges)),
        "checks": tuple(
            _build_check(study, number, {**file_functions, **objects}) for number in range(len(study.checks))
        ),
        "file_functions": tuple(file_functions.values()),
        "tools": tuple({**file_functions, **objects}.get(name, _raise_not_stored) for name in study.assistant.tools),
        "mcp": study.assistant.mcp,
        "max_tool_turns": study.assistant.max_tool_turns,
        **_build_environment_attributes(study, {**file_functions, **objects}, search_folders),
        "missing_functions": () if judges is not None else tuple(name for name in study.given if name not in objects),
    }
    _check_metrics(study, attributes["judges"], attributes["checks"])
    _check_role_names(study, attributes["judges"])
    if base is Simulation:
        attributes["name"] = study.name
        attributes["facets"] = (Facet("person", splits=True, in_sequence=study.dialogue.in_sequence),)
    recipe: Simulation = type(base.__name__, (base,), attributes)()
    if base is Simulation:
        recipe.check_roles()
    return recipe


def _check_role_names(study: Study, judges: Sequence[Judge]) -> None:
    """Check that no participant has the name of a role that does not speak, whose model it would share.

    Raises:
        DataError, DialoomError: If a participant has such a name.
    """
    reserved = {"judge", REVIEWER, SYSTEM, TOOL, *(judge.role for judge in judges)}
    for number, each in enumerate(study.roles):
        if each.name in reserved:
            message = f"[[role]] has the name {each.name!r}, which is reserved or the role of a judge; rename it"
            raise _make_error(study, ("role", number, "name"), message)


def _check_metrics(study: Study, judges: Sequence[Judge], checks: Sequence[Check]) -> None:
    """Check that no two scores have the same name, and that scores of different targets have the same scale.

    Raises:
        DataError, DialoomError: If two scores have the same name, or a metric has two scales. The message states the
            metric.
    """
    scores = [(metric, judge.target, judge.per_turn) for judge in judges for metric in judge.metrics]
    judged = {metric for metric, _, _ in scores}
    scores += [(check.metric, check.target, False) for check in checks]
    for number, check in enumerate(checks):
        if check.metric in judged:
            message = f"[[check]] {check.metric!r} has the same metric as a judge; rename one"
            raise _make_error(study, ("check", number, "metric"), message)
    for number, (metric, target, _) in enumerate(scores):
        if scores[number] in scores[:number]:
            raise _make_error(study, (), f"two judges or two checks score {metric!r} of {target}; rename one")
    forms = [(metric, (judge.scale, judge.lower_is_better)) for judge in judges for metric in judge.metrics]
    forms += [(check.metric, (check.scale, check.lower_is_better)) for check in checks]
    first = dict(reversed(forms))
    if inconsistent := [metric for metric, form in forms if form != first[metric]]:
        message = (
            f"the metric {inconsistent[0]!r} has two scales, or is lower_is_better for one target only; rename one"
        )
        raise _make_error(study, (), message)


def _build_environment_attributes(
    study: Study, functions: Mapping[str, Callable[..., Any]], folders: Sequence[str]
) -> dict[str, Any]:
    """Return the attributes of the recipe's class that define the study's environment."""
    if not (spec := study.assistant.environment):
        return {}
    if spec in functions or spec in study.given:
        return {"environment": staticmethod(functions.get(spec, _raise_not_stored))}
    path = FileFunction(f"{spec}:", tuple(folders)).path
    if (factory := find_environment_class(path)) is None:
        kinds = "file.py:NAME, or a file .db, .sqlite, .sqlite3, .sql or .json"
        raise _make_error(study, ("assistant", "environment"), f"environment = {spec!r} must be {kinds}")
    return {"environment": factory, "environment_file": path}


def _build_sources(
    study: Study, people: Iterable[Any] | None, tasks: Iterable[Any] | None
) -> tuple[RowSource, RowSource | None]:
    references = find_study_references(study)
    people_source = RowSource("people", study.people, study.folder, "description", people, references["person"])
    if study.tasks is None:
        return people_source, None
    return people_source, RowSource("tasks", study.tasks, study.folder, "goal", tasks, references["task"])


def _build_prompts(study: Study, sets: Sequence[str]) -> dict[str, str]:
    def shared(name: str) -> str:
        return shared_text(name, sets).strip()

    user = study.user.brief or shared("user")
    if study.user.traits:
        user += f"\n\n{shared('traits')}"
    if study.user.rules:
        ends = [each for each in study.dialogue.ends if isinstance(each, str)]
        user += "\n\n" + Sandbox(trim_blocks=True).from_string(shared("user-rules")).render(ends=ends)
    texts = {USER: user, ASSISTANT: study.assistant.system, **{each.name: each.brief for each in study.roles}}
    if study.roles:
        texts = {role: f"{text}\n\n{shared('several')}".strip() for role, text in texts.items()}
    return texts


def _check_templates(study: Study, kind: type[SimulatedTalk]) -> None:
    """Check that the study's texts are templates over names that they can use.

    Args:
        study: The study.
        kind: The type of the scenarios, whose fields prompts and rubrics can use.

    Raises:
        DataError: If a text is not a template or uses an unknown name. The message states the study's file and line.
    """
    fields = {*kind.model_fields}
    texts: list[tuple[str, str, tuple[str | int, ...], Set[str]]] = [
        ("[user] brief", study.user.brief, ("user", "brief"), fields),
        ("[user] opening", study.user.opening, ("user", "opening"), {PERSON, TASK}),
        ("[assistant] system", study.assistant.system, ("assistant", "system"), fields),
    ]
    for number, each in enumerate(study.roles):
        texts.append((f"[[role]] {each.name!r} brief", each.brief, ("role", number, "brief"), fields))
    for number, judge in enumerate(study.judges):
        levels = judge.rubric.values() if isinstance(judge.rubric, dict) else [judge.rubric]
        where = f"[[judge]] {judge.metric!r} rubric"
        texts += [(where, text, ("judge", number, "rubric"), fields | JUDGE_INPUTS | {ENVIRONMENT}) for text in levels]
    for where, text, loc, names in texts:
        try:
            unknown = Sandbox().template_variables(text) - names
        except TemplateSyntaxError as error:
            line = f" in line {error.lineno} of the text" if "\n" in text.strip() else ""
            raise _make_error(study, loc, f"{where} is not a template: {error.message}{line}") from error
        if unknown:
            name = min(unknown)
            known = f"it can use {PERSON!r} and {TASK!r}, as in {{{{ {TASK}.{name} }}}}"
            raise _make_error(study, loc, f"{where} uses {name!r}; {known}")


def _build_turns(study: Study, functions: Mapping[str, Callable[..., Any]]) -> Turns:
    dialogue = study.dialogue
    known = {USER, ASSISTANT, *(each.name for each in study.roles)}
    if len(known) < 2 + len(study.roles):
        raise _make_error(
            study, ("role",), "the names of [[role]] must differ from each other, from user and from assistant"
        )
    in_turn = [each.name for each in study.roles if isinstance(each.speaks, str)]
    extras = []
    for number, each in enumerate(study.roles):
        if isinstance(each.speaks, str):
            continue
        if each.speaks.after and each.speaks.after not in known - {each.name}:
            others = ", ".join(sorted(known - {each.name}))
            message = f"[[role]] {each.name!r} speaks after {each.speaks.after!r}; the other roles are {others}"
            raise _make_error(study, ("role", number, "speaks"), message)
        extras.append(ExtraRole(each.name, each.speaks.after, each.speaks.keyword))
    sides = (USER, ASSISTANT) if dialogue.opens == USER else (ASSISTANT, USER)
    return Turns(
        (*sides, *in_turn),
        dialogue.max_turns,
        ended_by=USER,
        until=_make_until(study, functions),
        other_markers={_MARKERS[each]: each for each in dialogue.ends if isinstance(each, str)},
        extras=tuple(extras),
        ending_tools=tuple(each.tool for each in dialogue.ends if isinstance(each, ToolEnd)),
    )


def _make_until(
    study: Study, functions: Mapping[str, Callable[..., Any]]
) -> Callable[[Any, list[BaseMessage]], str] | None:
    """Return the function that ends a conversation by keywords and Python functions."""
    if not (ends := [each for each in study.dialogue.ends if isinstance(each, KeywordEnd | PythonEnd)]):
        return None

    def until(scenario: Any, messages: list[BaseMessage]) -> str:
        talk = Conversation(scenario, Outcome(messages=lines(messages), ended_by=""))
        return next(filter(None, (_find_end_reason(end, messages[-1], talk, functions) for end in ends)), "")

    return until


def _find_end_reason(
    end: KeywordEnd | PythonEnd, last: BaseMessage, talk: Conversation, functions: Mapping[str, Callable[..., Any]]
) -> str:
    """Return the reason why a conversation is over after its last message; empty if it goes on."""
    if isinstance(end, KeywordEnd):
        is_by = end.by in ("", last.name)
        return f"keyword {end.keyword}" if is_by and has_word(str(last.content), end.keyword) else ""
    found = functions[end.python](talk)
    reject_coroutine(found)
    return to_well_formed(found) if isinstance(found, str) else end.python.rpartition(":")[2] if found else ""


def _build_judges(study: Study) -> Iterator[Judge]:
    for number, each in enumerate(study.judges):
        levels = {int(key): text for key, text in each.rubric.items()} if isinstance(each.rubric, dict) else each.rubric
        try:
            yield Judge(**{**each.model_dump(), "rubric": levels})
        except DialoomError as error:
            message = str(error).replace("scale=(1, 5)", "scale = [1, 5]") if study.text else str(error)
            raise _make_error(study, ("judge", number), message) from error


def _require_speaking_target(judge: Judge) -> Judge:
    """Return a judge that does not judge conversations in which its target does not speak.

    A judge of turns has no turns to judge there, and one with cases of its own knows itself what to judge.
    """
    if judge.per_turn or judge.cases is not None:
        return judge

    def when(scenario: Any, outcome: Outcome) -> bool:
        return _has_spoken(judge.target, outcome) and (judge.when is None or judge.when(scenario, outcome))

    return replace(judge, when=when)


def _has_spoken(role: str, outcome: Outcome) -> bool:
    return any(line.role == role for line in outcome.messages)


def _build_check(study: Study, number: int, functions: Mapping[str, Callable[..., Any]]) -> Check:
    each = study.checks[number]
    try:
        if each.pattern:
            function: Callable[..., Any] = _make_pattern_check(re.compile(each.pattern), each.target)
        elif each.sql:
            function = make_sql_check(each.sql, each.expected)
        elif each.gold:
            function = make_gold_check(each.gold)
        else:
            function = functions.get(each.python or each.metric, _raise_not_stored)
        return Check(each.metric, function, each.scale, each.target, each.lower_is_better)
    except DialoomError as error:
        raise _make_error(study, ("check", number), str(error)) from error


def _make_pattern_check(pattern: re.Pattern[str], target: str) -> Callable[[Conversation], bool | None]:
    """Return a check's function; the check does not apply to a conversation in which its target does not speak."""

    def is_found(conversation: Conversation) -> bool | None:
        is_match = pattern.search(conversation.text(target)) is not None
        return is_match if _has_spoken(target, conversation.outcome) else None

    return is_found


def _raise_not_stored(*_: Any) -> Any:
    raise ValueError("the function was passed as a Python object, and is not stored in the run")


def _make_error(study: Study, loc: tuple[str | int, ...], message: str, advice: Advice | None = None) -> DialoomError:
    if not study.text:
        return DialoomError(message, advice=advice)
    return DataError(format_path(Path(study.folder, study.file)), message, find_line(study.text, loc), advice=advice)


def hash_rows(rows: Iterable[Any]) -> str:
    """Return a hash of rows of JSON values: the first 16 hex digits of their SHA-256."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, default=str).encode() + b"\n")
    return digest.hexdigest()[:16]
