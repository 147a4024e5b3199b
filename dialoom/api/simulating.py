"""Conversations of simulated users with an assistant, given as Python values: people, tasks, judges and checks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Unpack

from pydantic import ValidationError

from dialoom.graphs import Check, Environment, Judge
from dialoom.graphs.simulation import Simulation, build_simulation, hash_rows
from dialoom.graphs.study import GIVES_UP, SATISFIED, JudgeTable, Study
from dialoom.graphs.study_rows import convert_rows
from dialoom.grouping import group_pairs
from dialoom.personas.rows import normalize_row
from dialoom.roles.fingerprints import fingerprint
from dialoom.roles.players import get_player_name, is_async
from dialoom.runs.configuration.config import config_diff
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile
from dialoom.settings import FLAG_FAULTS, ModelLike, PathLike, Players, check_lists, describe_requirement

from .blocking import blocking
from .operation_settings import CallSettings, PlaySettings, resolve_new_run
from .operations import Run, aplay, aresume


async def asimulate(
    people: Any,
    tasks: Any = None,
    *,
    assistant: ModelLike,
    path: PathLike,
    user: Players | None = None,
    judge: Players | None = None,
    judges: Sequence[Judge] = (),
    checks: Sequence[Check | Callable[..., Any]] = (),
    brief: str = "",
    rules: bool = True,
    system: str = "",
    max_turns: int = 10,
    opens: Literal["user", "assistant"] = "user",
    ends: Sequence[str | Mapping[str, str] | Callable[..., Any]] = (SATISFIED, GIVES_UP),
    roles: Sequence[Mapping[str, Any]] = (),
    environment: Callable[[], Environment] | PathLike | None = None,
    tools: Sequence[Callable[..., Any]] = (),
    mcp: Sequence[str] = (),
    per_person: int | None = None,
    in_sequence: bool = False,
    trials: int = 1,
    seed: int = 0,
    on_user_fault: str = FLAG_FAULTS,
    **calls: Unpack[CallSettings],
) -> Run:
    """Let simulated users talk to an assistant, score the conversations, and store every step.

    The arguments define a study (see `docs/studies.md`). Called again with the same arguments after an interruption,
    the function continues the run.

    Example:
        >>> run = dialoom.simulate(
        ...     people=[{"name": "Ada", "style": "in a hurry"}],
        ...     tasks=["return a kettle"],
        ...     assistant=my_agent,
        ...     judges=[dialoom.Judge("resolved", rubric="The goal was reached: {{ task.goal }}")],
        ...     path="shop.db",
        ... )

    Args:
        people: Rows: mappings, strings (used as `description`), a pandas frame, a `datasets.Dataset`, or a file's path.
        tasks: Rows in the same forms (a string is used as `goal`). Without tasks, each person has one conversation.
        assistant: The assistant to test: a LiteLLM name, an async function that gets chat messages and returns text,
            a graph, ...
        path: The run's file.
        user: The model of the user; by default an offline model. With several, in a list, each conversation is played
            with each of them.
        judge: The model of the judges; by default an offline model. Several, in a list, judge one after the other.
        judges: The judges; their rubrics may use `person` and `task`, as in `{{ task.goal }}`.
        checks: Checks, or functions of a `Conversation`. A function's name is its metric; that of a lambda is
            `check-N`.
        brief: The system prompt of the simulated user, a template that may use `person` and `task`; by default a
            shipped one.
        rules: Whether dialoom's rules for simulated users are appended to the brief.
        system: The system prompt of the assistant; by default none.
        max_turns: The maximum number of turns; a turn is one message of each side.
        opens: The role that speaks first.
        ends: Conditions that end a conversation before `max_turns`: `user_satisfied`, `user_gives_up`, `{"keyword":
            WORD}`, `{"tool": NAME}`, or a function that gets a `Conversation` and returns true, or the reason as text,
            to end it.
        roles: Further participants: `{"name": ..., "brief": ..., "speaks": ...}`.
        environment: The environment that the assistant's tools act on: a class or function that makes it, or a file
            with the initial state of a built-in environment; see `docs/environments.md`.
        tools: Functions that the assistant gets as tools, in addition to those of its environment.
        mcp: MCP servers, by command or URL; the assistant gets their tools.
        per_person: The number of tasks of each person, drawn with the seed; by default all tasks.
        in_sequence: Whether one person's conversations are played one after another, in the order of the tasks, so that
            an assistant that keeps state can remember the earlier ones.
        trials: How often each conversation is played; the trials are independent. A repeated call may increase the
            number.
        seed: The seed from which all random draws are derived.
        on_user_fault: `flag`, or `retry N`; see `play`.
        **calls: How calls are made; see `CallSettings`.

    Returns:
        The run, as from `play`.

    Raises:
        DataError, RunError: If the rows, judges or checks are wrong.
        RunError: If the file holds another run: other rows, another seed, or a function with another name or other code
            (see `docs/python.md` for what counts as code).
    """
    if assistant is None:
        raise RunError("assistant must be a model's name or a player, got None", setting="assistant")
    check_lists(judges=judges, checks=checks, ends=ends, roles=roles, tools=tools, mcp=mcp)
    dialogue = {"max_turns": max_turns, "opens": opens, "ends": ends, "in_sequence": in_sequence}
    combination = {} if per_person is None else {"per_person": per_person}
    tool_functions: dict[str, Callable[..., Any]] = {get_player_name(each): each for each in tools}
    factory_or_file: Any = environment
    environment_name = ""
    if callable(factory_or_file):
        environment_name = get_player_name(factory_or_file)
        tool_functions[environment_name] = factory_or_file
    elif isinstance(factory_or_file, str | os.PathLike):
        environment_name = os.fspath(factory_or_file)
    elif factory_or_file is not None:
        raise RunError(
            f"environment must be a class or function that creates it, or a file, got {factory_or_file!r:.60}",
            setting="environment",
        )
    agent = {
        "system": system,
        "environment": environment_name,
        "tools": [get_player_name(each) for each in tools],
        "mcp": list(mcp),
    }
    tables = {"dialogue": dialogue, "user": {"brief": brief, "rules": rules}, "assistant": agent}
    recipe = _build_recipe(people, tasks, combination, judges, checks, {**tables, "role": roles}, tool_functions)
    _reject_lambdas(recipe, checks, [*ends, *tool_functions.values()], calls)
    cast = {"user": user, "assistant": assistant, "judge": judge if judges else None}
    models: dict[str, Players] = {role: player for role, player in cast.items() if player is not None}
    settings: Any = {"models": models, "seed": seed, "on_user_fault": on_user_fault}
    if Path(path).exists():
        await asyncio.to_thread(_check_existing_run, Path(path), recipe, settings)
        players = {role: each[0] if isinstance(each, list | tuple) else each for role, each in models.items()}
        return await aresume(path, recipe=recipe, models=players, trials=trials, **calls)
    return await aplay(recipe, path=path, trials=trials, **settings, **calls)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of people or tasks, given as Python values or as the path of a file.

    Attributes:
        rows: The rows; `None` if a file was given.
        source: The entries of the study's table that state where the rows come from: the file, if one was given.
        content: A hash of the rows; empty for a file.
    """

    rows: Iterable[Any] | None
    source: Mapping[str, Any]
    content: str

    @classmethod
    def of(cls, values: Any, table: str, text: str) -> _Rows:
        """Return the rows of an argument of `simulate`."""
        if isinstance(values, os.PathLike):
            return cls(None, {"file": os.fspath(values)}, "")
        rows = convert_rows(values, table)
        normalized = (normalize_row(row, text, table, number) for number, row in enumerate(rows, start=1))
        return cls(rows, {}, hash_rows(normalized))


def _build_recipe(
    people: Any,
    tasks: Any,
    combination: Mapping[str, Any],
    judges: Sequence[Judge],
    checks: Sequence[Check | Callable[..., Any]],
    tables: Mapping[str, Any],
    tool_functions: Mapping[str, Callable[..., Any]],
) -> Simulation:
    """Return the recipe that the arguments of `simulate` define."""
    for judge in judges:
        if not isinstance(judge, Judge):
            raise RunError(f"judges must be dialoom.Judge objects, got {judge!r:.60}", setting="judges")
    for check in checks:
        if not isinstance(check, Check) and not callable(check):
            raise RunError(f"checks must be functions or dialoom.Check objects, got {check!r:.60}", setting="checks")
    people_rows = _Rows.of(people, "people", "description")
    task_rows = None if tasks is None else _Rows.of(tasks, "tasks", "goal")
    built_checks = [_build_check(each, number) for number, each in enumerate(checks, start=1)]
    ends = [{"python": get_player_name(end)} if callable(end) else end for end in tables["dialogue"]["ends"]]
    scoring: list[tuple[str, Callable[..., Any]]] = [(each.metric, each.function) for each in built_checks]
    ending = [(get_player_name(end), end) for end in tables["dialogue"]["ends"] if callable(end)]
    for setting, named_functions in (("checks", scoring), ("ends", ending)):
        if async_names := [name for name, function in named_functions if is_async(function)]:
            raise RunError(f"{setting}: {async_names[0]} is async; it must be a plain function", setting=setting)
    functions: dict[str, Callable[..., Any]] = {}
    for name, function in (*tool_functions.items(), *scoring, *ending):
        if functions.setdefault(name, function) is not function:
            raise RunError(
                f"tools, checks, ends: two functions have the name {name!r}; give each check, and each function (not a "
                "lambda), a name of its own",
                setting="checks",
            )
    judge_texts = group_pairs(
        (f"the judge of {judge.metric}", found) for judge in judges if (found := _split_judge_fields(judge)[1])
    )
    code_hashes = {name: fingerprint(function) for name, function in functions.items()}
    sources = [each.source for each in (people_rows, task_rows) if each is not None]
    uses_files = any(sources) or tables["assistant"]["environment"] not in ("", *tool_functions)
    values = {
        **tables,
        "name": "simulation",
        "people": people_rows.source,
        "tasks": None if task_rows is None else {**task_rows.source, **combination},
        "dialogue": {**tables["dialogue"], "ends": ends},
        "judge": [_split_judge_fields(judge)[0] for judge in judges],
        "check": [{name: getattr(each, name) for name in _CHECK_FIELDS} for each in built_checks],
        "folder": str(Path.cwd()) if uses_files else "",
        "content": people_rows.content + ("" if task_rows is None else task_rows.content),
        "given": code_hashes | {name: hash_rows(found) for name, found in judge_texts.items()},
    }
    try:
        study = Study.model_validate(values)
    except ValidationError as error:
        raise _build_study_error(error, ends, tables["role"]) from error
    given_tasks = None if task_rows is None else task_rows.rows
    return build_simulation(study, people=people_rows.rows, tasks=given_tasks, judges=judges, functions=functions)


def _build_study_error(error: ValidationError, ends: Sequence[Any], roles: Sequence[Any]) -> RunError:
    """Return the error of an invalid study, with the names of the arguments of `simulate`."""
    problem = error.errors()[0]
    table, *keys = (str(part) for part in problem["loc"])
    if keys[:1] == ["ends"] and len(keys) > 1:
        return RunError(
            f"ends contains {ends[int(keys[1])]!r:.60}; it can contain {SATISFIED!r}, {GIVES_UP!r}, "
            '{"keyword": WORD}, {"tool": NAME} and functions',
            setting="ends",
        )
    if table == "role" and (problem["type"] in ("model_type", "missing", "extra_forbidden") or "speaks" in keys):
        form = '{"name": ROLE, "brief": PROMPT}; "speaks" may be "in turn", {"after": ROLE} or {"keyword": WORD}'
        return RunError(f"roles must contain mappings such as {form}, got {roles[int(keys[0])]!r:.80}", setting="roles")
    name = keys[0] if keys and table in ("dialogue", "user", "assistant", "tasks") else table
    if table in ("role", "judge", "check"):
        name = f"{table}s: {keys[-1]}" if len(keys) > 1 else f"{table}s"
    requirement = describe_requirement(problem)
    must = f": {requirement}" if problem["type"] == "value_error" else f" must be {requirement}"
    return RunError(f"{name}{must}, got {problem['input']!r:.60}", setting=name.partition(":")[0])


_CHECK_FIELDS = [each.name for each in fields(Check) if each.name != "function"]
"""The fields of a check that a study's file can express."""


def _split_judge_fields(judge: Judge) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of a judge that a study's file can express and, if it has functions, all fields as texts."""
    values = {each.name: getattr(judge, each.name) for each in fields(judge)}
    file_fields = {name: value for name, value in values.items() if name in JudgeTable.model_fields}
    if isinstance(judge.rubric, Mapping):
        file_fields["rubric"] = {str(level): text for level, text in judge.rubric.items()}
    texts = {name: fingerprint(value) if callable(value) else str(value) for name, value in values.items()}
    return file_fields, texts if any(map(callable, values.values())) else {}


def _build_check(check: Check | Callable[..., Any], number: int) -> Check:
    if isinstance(check, Check):
        return check
    name = getattr(check, "__name__", "")
    return Check(name if name.isidentifier() else f"check-{number}", check)


def _reject_lambdas(recipe: Simulation, checks: Iterable[Any], ends: Iterable[Any], calls: CallSettings) -> None:
    """Reject lambdas if there are several processes: another process cannot import a lambda by name.

    Raises:
        RunError: If workers are requested and a function is a lambda.
    """
    if calls.get("workers") is None and calls.get("ray") is None:
        return
    functions = [each.function if isinstance(each, Check) else each for each in (*checks, *ends)]
    if any(getattr(each, "__name__", "") == "<lambda>" for each in functions):
        raise RunError(
            f"workers: a lambda cannot be sent to another process; define a function ({', '.join(recipe.study.given)})",
            setting="workers",
        )


def _check_existing_run(path: Path, recipe: Simulation, settings: PlaySettings) -> None:
    """Raise an error if the existing run has different rows, settings, functions or models."""
    with RunFile(path) as run:
        config = run.config
    if config.study != (study := recipe.study.to_dict()):
        was = (config.study or {}).get("given", {})
        changed = [name for name, code in study.get("given", {}).items() if was.get(name, code) != code]
        others = f"other code of {', '.join(changed)}" if changed else "other rows, prompts, turns, judges or checks"
        raise RunError(f"path {path} contains a run with {others}; give another path", setting="path")
    requested: PlaySettings = {**settings, "trials": config.trials}
    if differing := config_diff(config, resolve_new_run(recipe, False, **requested).config):
        raise RunError(
            f"path {path} contains a run with other settings ({'; '.join(differing)}); give another path",
            setting="path",
        )


simulate = blocking("simulate", asimulate)
