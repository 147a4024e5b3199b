"""`dialoom step` and `dialoom replay`: opening runs and cases, and exit codes."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from dialoom import CallSettings, PlaySettings, ReplayResult, aplan, load_env_file, open_run, replay, step
from dialoom.api.expecting import require_of_replay
from dialoom.cli.errors import EXIT_DONE, EXIT_SOME_FAILED
from dialoom.cli.option_flags import trust
from dialoom.cli.setting_flags import CallCommand, RunCommand
from dialoom.cli.terminal import say, say_json
from dialoom.inputs import MOST_YAML_BYTES, read_text
from dialoom.roles.gateway.litellm_backend import tune_process
from dialoom.runs.configuration.recipes import is_file_spec, is_study
from dialoom.runs.control import Event, NodeMessage, Notice, Planned
from dialoom.runs.errors import RunError
from dialoom.runs.stepping import Stepper
from dialoom.settings import part

from .commands import CommandInterpreter
from .loop import Printer, converse, is_terminal, play_script


def step_run(path: Path, scenario: str, branch: str, script: Path | None, is_json: bool, given: CallCommand) -> int:
    """Step through a scenario of a run; return the exit code."""
    return _stepped(path, scenario, branch, _lines(script), script, is_json, part(CallSettings, given))


def first_where(path: Path, where: str, is_trusted: bool) -> str:
    """Return the number of the first scenario that matches an expression, and print the number of matches.

    Raises:
        RunError: If no scenario matches, or the expression is wrong.
    """
    run = open_run(path, trust=trust(is_trusted))
    numbers = [position + 1 for position, _ in run.figures(where=where)]
    if not numbers:
        raise RunError(f"where {where!r} matches no scenario of {path}", setting="where")
    if rest := numbers[1:]:
        some = ", ".join(map(str, rest[:10])) + (", ..." if len(rest) > 10 else "")
        say(f"scenario {numbers[0]} is the first of {len(numbers):,}; the others are {some}", err=True)
    return str(numbers[0])


def step_recipe(spec: str, script: Path | None, is_json: bool, given: RunCommand) -> int:
    """Plan a new run and step through its first scenario; return the exit code."""
    lines, settings = _lines(script), part(PlaySettings, given)
    out = given["out"] or Path("step.db" if is_file_spec(spec) or is_study(spec) else f"step-{spec}.db")
    if out.exists():
        raise RunError(f"{out} exists; continue it with 'dialoom step {out} 1', or give another file with -o")
    settings["on_event"] = _print_notice
    tune_process()
    asyncio.run(aplan(spec, path=out, **settings))
    return _stepped(out, "1", "main", lines, script, is_json, part(CallSettings, settings))


def replay_case(
    path: Path,
    requirements: list[str],
    allowed: list[str],
    env_file: Path | None,
    is_json: bool,
    is_trusted: bool,
    **arguments: Any,
) -> int:
    """Replay a saved case; return the exit code."""
    if requirements and not arguments["live"]:
        raise RunError("requirements apply to roles that reply again; name one with --live")
    if env_file is not None:
        load_env_file(env_file)
    played = replay(path, **arguments, trust=trust(is_trusted))
    checked = []
    if requirements and played.outcome is not None:
        checked = require_of_replay(played, requirements, allow=allowed)
    is_passed = not played.departures and all(each.is_met for each in checked) if requirements else played.is_same
    if is_json:
        say_json(_replayed(played, is_passed) | {"requirements": [str(each) for each in checked]})
    else:
        _print_replayed(path, played, requirements)
        for each in checked:
            say(str(each))
        if requirements and not checked:
            say("NOT MET: the conversation did not reach its end")
    return EXIT_DONE if is_passed else EXIT_SOME_FAILED


def _replayed(played: ReplayResult, is_passed: bool) -> dict[str, Any]:
    """Return the result of a replay as JSON-compatible data."""
    found: dict[str, Any] = {"steps": played.steps, "replies": played.calls, "is_passed": is_passed}
    for name in ("departures", "changed", "lines", "scores"):
        found[name] = list(getattr(played, name))
    outcome = None if played.outcome is None else played.outcome.model_dump(mode="json")
    return found | {"live": dict(played.live), "kept": played.kept, "outcome": outcome}


def _print_replayed(path: Path, played: ReplayResult, requirements: list[str]) -> None:
    """Print what was replayed, the differences, and what has changed since the case was saved."""
    for line in [*played.lines, *played.scores, *played.departures]:
        say(line)
    for line in played.changed:
        say(f"changed since the case was saved: {line}")
    if played.live:
        replies = ", ".join(f"{role} {count}" for role, count in played.live.items())
        to_changed = f", {played.kept} of them to changed requests" if played.kept else ""
        say(f"{path}: new replies: {replies}; recorded replies: {played.calls}{to_changed}")
        if not requirements:
            what = "judgements" if played.scores or (played.outcome and played.outcome.judgements) else "words"
            say(f"{path}: {f'the same {what}' if played.is_same else 'NOT as recorded'}")
        return
    same = "not the same path" if played.departures else "the same path"
    judge = ", and --live judge for new scores" if "judge" in played.bindings.by_role else ""
    counted = f"{played.steps} steps with {played.calls} recorded replies"
    say(f"{path}: {same}, {counted}; no role replied again (--live ROLE{judge})")


def _lines(script: Path | None) -> Iterable[str] | None:
    """Return the lines of the script or of standard input; `None` if a person is at a terminal.

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
        calls["on_event"] = _print_notice
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


def _print_notice(event: Event) -> None:
    """Print messages from planning and from nodes on standard error, separately from answers."""
    match event:
        case Notice(text) | NodeMessage(_, text):
            say(text, err=True)
        case Planned(path, _, scenarios):
            say(f"planned {scenarios:,} scenarios in {path}", err=True)


def _state(path: Path, scenario: str) -> str:
    """Return a scenario's state, and why it failed or ended."""
    episode = open_run(path).episode(scenario)
    if episode is None:
        return "pending"
    if episode.state == "failed":
        return f"failed, {' '.join((episode.error or 'for an unknown reason').split())}"
    return f"{episode.state}, ended by {episode.outcome.ended_by}"
