"""`dialoom step` and `dialoom replay`: opening what they work on, and their exit codes."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import typer

from dialoom.graphs import Recipe
from dialoom.runs import session as running
from dialoom.runs.cli.conduct import conduct_of, synchronous_of
from dialoom.runs.cli.play import begin_run, keep_limits
from dialoom.runs.errors import EXIT_DONE, EXIT_SOME_FAILED, RunError
from dialoom.runs.limits import RunLimits
from dialoom.runs.recipes import is_file_spec
from dialoom.runs.session import Conduct
from dialoom.runs.stepping import Session, read_case, replay
from dialoom.runs.store import RunStore

from .commands import CommandInterpreter
from .loop import converse, is_terminal, play_script
from .printer import Printer


def step_run(
    path: Path, scenario: str, branch: str, script: Path | None, is_json: bool, given: Mapping[str, Any]
) -> int:
    """Step through a scenario of a run; returns the exit code."""
    lines = _lines(script)
    store = running.reopen(path, lambda line: typer.echo(line, err=True), synchronous_of(given))
    try:
        conduct = conduct_of(RunLimits.of(store), given)
        keep_limits(store, conduct)
        return _stepped(store, scenario, branch, lines, script, is_json, conduct)
    finally:
        store.close()


def step_recipe(spec: str, recipe: Recipe, given: dict[str, Any], common: dict[str, Any]) -> int:
    """Plan a new run and step through its first scenario; returns the exit code."""
    script, is_json = common.pop("script"), common.pop("json")
    lines = _lines(script)
    config = common.pop("config")
    if common["out"] is None:
        common["out"] = Path("step.db" if is_file_spec(spec) else f"step-{spec}.db")
    out = common["out"]
    if out.exists():
        raise RunError(f"{out} exists; go on in it with 'dialoom step {out} 1', or give another file with -o")
    begun = begin_run(spec, recipe, given, config, common, lambda line: typer.echo(line, err=True))
    assert begun is not None  # nobody has asked for an estimate
    store, conduct, _ = begun
    try:
        return _stepped(store, "1", "main", lines, script, is_json, conduct)
    finally:
        store.close()


def replay_case(path: Path, is_json: bool) -> int:
    """Play a saved case again; returns the exit code."""
    import json

    replayed = asyncio.run(replay(read_case(path)))
    if is_json:
        data = {"steps": replayed.steps, "replies": replayed.calls, "departures": list(replayed.departures)}
        typer.echo(json.dumps(data, ensure_ascii=False))
    elif replayed.departures:
        for line in replayed.departures:
            typer.echo(line)
        typer.echo(f"{path}: not the same path")
    else:
        typer.echo(f"{path}: the same path, {replayed.steps} steps with {replayed.calls} recorded replies")
    return EXIT_SOME_FAILED if replayed.departures else EXIT_DONE


def _lines(script: Path | None) -> Iterable[str] | None:
    """The script's lines, those of standard input, or `None` for a person at a terminal.

    Raises:
        RunError: If the script cannot be read.
    """
    if script is None:
        if is_terminal():
            return None
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        return sys.stdin
    try:
        return script.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise RunError(f"--script {script} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RunError(f"--script {script} cannot be read: it is not UTF-8") from error


def _stepped(
    store: RunStore,
    scenario: str,
    branch: str,
    lines: Iterable[str] | None,
    script: Path | None,
    is_json: bool,
    conduct: Conduct,
) -> int:
    printer = Printer(is_json)
    with asyncio.Runner() as runner:
        opened = AsyncExitStack()
        session: Session = runner.run(
            opened.enter_async_context(
                Session.open(
                    store, scenario, branch=branch, conduct=conduct, tell=lambda line: typer.echo(line, err=True)
                )
            )
        )
        try:
            interpreter = CommandInterpreter(session, printer.passed)
            if lines is not None:
                return play_script(runner, interpreter, lines, printer, str(script or "standard input"))
            typer.echo(f"{session.scenario} in {store.path}: {_standing(store, session.scenario)}")
            typer.echo("'help' lists the commands")
            printer.answer(runner.run(interpreter.stopped(runner.run(session.here()))))
            return converse(runner, interpreter, printer)
        finally:
            runner.run(opened.aclose())


def _standing(store: RunStore, scenario: str) -> str:
    """What has become of a scenario, and why."""
    episode = store.episode(store.resolve(scenario))
    if episode is None:
        return "still to be played"
    if episode.state == "failed":
        return f"failed, {' '.join((episode.error or 'nobody knows why').split())}"
    return f"{episode.state}, ended by {episode.outcome.ended_by}"
