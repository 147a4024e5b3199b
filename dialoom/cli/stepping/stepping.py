"""`dialoom step` and `dialoom replay`: opening runs and cases, and exit codes."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from dialoom import CallSettings, aplan, open_run, step
from dialoom.cli.errors import EXIT_DONE, EXIT_SOME_FAILED
from dialoom.cli.settings import call_settings, play_settings
from dialoom.cli.terminal import say, say_json
from dialoom.cli.trusting import trust
from dialoom.graphs import Recipe
from dialoom.inputs import MOST_YAML_BYTES, read_text
from dialoom.roles.gateway.litellm_backend import tune_process
from dialoom.runs.configuration.recipes import is_file_spec, is_study
from dialoom.runs.errors import RunError
from dialoom.runs.progress import Event, NodeSaid, Noted, Planned
from dialoom.runs.stepping import Stepper, read_case, replay
from dialoom.settings import part

from .commands import CommandInterpreter
from .loop import converse, is_terminal, play_script
from .printer import Printer


def step_run(
    path: Path, scenario: str, branch: str, script: Path | None, is_json: bool, given: Mapping[str, Any]
) -> int:
    """Step through a scenario of a run; return the exit code."""
    return _stepped(path, scenario, branch, _lines(script), script, is_json, call_settings(given))


def first_where(path: Path, where: str, is_trusted: bool) -> str:
    """Return the number of the first scenario that an expression holds of, and print the number of matches.

    Raises:
        RunError: If there is none, or the expression is wrong.
    """
    run = open_run(path, trust=trust(is_trusted))
    numbers = [position + 1 for position, _ in run.figures(where=where)]
    if not numbers:
        raise RunError(f"where {where!r} holds of no scenario of {path}", setting="where")
    if rest := numbers[1:]:
        some = ", ".join(map(str, rest[:10])) + (", ..." if len(rest) > 10 else "")
        say(f"scenario {numbers[0]} is the first of {len(numbers):,}; the others are {some}", err=True)
    return str(numbers[0])


def step_recipe(
    spec: str,
    recipe: Recipe,
    options: Mapping[str, Any],
    flags: Mapping[str, Any],
    script: Path | None,
    is_json: bool,
) -> int:
    """Plan a new run and step through its first scenario; return the exit code."""
    lines = _lines(script)
    settings, command = play_settings(recipe, options, flags)
    out = command["out"] or Path("step.db" if is_file_spec(spec) or is_study(spec) else f"step-{spec}.db")
    if out.exists():
        raise RunError(f"{out} exists; go on in it with 'dialoom step {out} 1', or give another file with -o")
    settings["on_event"] = _told
    tune_process()
    asyncio.run(aplan(spec, path=out, **settings))
    return _stepped(out, "1", "main", lines, script, is_json, part(CallSettings, settings))


def replay_case(path: Path, is_json: bool, is_trusted: bool) -> int:
    """Replay a saved case; return the exit code."""
    replayed = asyncio.run(replay(read_case(path), trust(is_trusted)))
    if is_json:
        data = {"steps": replayed.steps, "replies": replayed.calls, "departures": list(replayed.departures)}
        say_json(data)
    elif replayed.departures:
        for line in replayed.departures:
            say(line)
        say(f"{path}: not the same path")
    else:
        say(f"{path}: the same path, {replayed.steps} steps with {replayed.calls} recorded replies")
    return EXIT_SOME_FAILED if replayed.departures else EXIT_DONE


def _lines(script: Path | None) -> Iterable[str] | None:
    """Return the script's lines, those of standard input, or `None` for a person at a terminal.

    Raises:
        DataError: If the script cannot be read.
    """
    if script is None:
        if is_terminal():
            return None
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        return sys.stdin
    return read_text(script, MOST_YAML_BYTES, streams=True).splitlines()


def _stepped(
    path: Path,
    scenario: str,
    branch: str,
    lines: Iterable[str] | None,
    script: Path | None,
    is_json: bool,
    calls: CallSettings,
) -> int:
    printer = Printer(is_json)
    tune_process()
    with asyncio.Runner() as runner:
        opened = AsyncExitStack()
        calls["on_event"] = _told
        opening = step(path, scenario, branch=branch, **calls)
        stepper: Stepper = runner.run(opened.enter_async_context(opening))
        try:
            interpreter = CommandInterpreter(stepper, printer.passed, inputs=[path, *([script] if script else [])])
            if lines is not None:
                return play_script(runner, interpreter, lines, printer, str(script or "standard input"))
            say(f"{stepper.scenario} in {path}: {_state(path, stepper.scenario)}")
            say("'help' lists the commands")
            printer.answer(runner.run(interpreter.stopped(runner.run(stepper.here()))))
            return converse(runner, interpreter, printer)
        finally:
            runner.run(opened.aclose())


def _told(event: Event) -> None:
    """Print messages of planning and of nodes to standard error, apart from answers."""
    match event:
        case Noted(text) | NodeSaid(_, text):
            say(text, err=True)
        case Planned(path, _, scenarios):
            say(f"planned {scenarios:,} scenarios in {path}", err=True)


def _state(path: Path, scenario: str) -> str:
    """Return a scenario's state, and the reason for it."""
    episode = open_run(path).episode(scenario)
    if episode is None:
        return "still to be played"
    if episode.state == "failed":
        return f"failed, {' '.join((episode.error or 'nobody knows why').split())}"
    return f"{episode.state}, ended by {episode.outcome.ended_by}"
