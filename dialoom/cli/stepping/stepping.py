"""`dialoom step` and `dialoom replay`: opening runs and cases, reading lines, printing answers, and exit codes."""

from __future__ import annotations

import asyncio
import io
import sys
import traceback
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from dialoom import CallSettings, PlaySettings, ReplayResult, aplan, load_env_file, open_run, replay, step
from dialoom.api.expecting import check_replay_requirements
from dialoom.cli.console import SafeConsole, make_console
from dialoom.cli.errors import EXIT_DONE, EXIT_SOME_FAILED, EXIT_STOPPED, EXIT_USAGE, format_error
from dialoom.cli.option_flags import build_trust as trust
from dialoom.cli.setting_flags import CallCommand, RunCommand
from dialoom.cli.terminal import echo, echo_json
from dialoom.inputs import MAX_YAML_BYTES, read_text
from dialoom.roles.gateway.litellm_backend import tune_process
from dialoom.roles.gateway.secrets import redact
from dialoom.runs.configuration.recipes import is_file_spec, is_study
from dialoom.runs.control import Event, NodeMessage, Notice, Planned
from dialoom.runs.errors import FATAL, Fault, RunError, fault_of
from dialoom.runs.stepping import ConditionError, PathError, Stepper
from dialoom.settings import select_settings
from dialoom.text import pluralize

from .commands import COMMANDS_BY_NAME, CommandInterpreter, Quit
from .views import Answer

_INPUT_ERRORS = (ConditionError, PathError)
_MAX_FRAMES = 6
"""Number of stack frames shown for an unexpected error: the frames nearest to it."""
_DEFAULT_WIDTH = 120
"""Columns used when standard output is not a terminal."""


def step_run(path: Path, scenario: str, branch: str, script: Path | None, is_json: bool, command: CallCommand) -> int:
    """Step through a scenario of a run; return the exit code."""
    return _step_through(
        path, scenario, branch, _read_lines(script), script, is_json, select_settings(CallSettings, command)
    )


def find_first_scenario(path: Path, where: str, is_trusted: bool) -> str:
    """Return the number of the first scenario that matches an expression, and print the number of matches.

    Raises:
        RunError: If no scenario matches, or the expression is wrong.
    """
    numbers = [position + 1 for position, _ in open_run(path, trust=trust(is_trusted)).figures(where=where)]
    if not numbers:
        raise RunError(f"where {where!r} matches no scenario of {path}", setting="where")
    if rest := numbers[1:]:
        some = ", ".join(map(str, rest[:10])) + (", ..." if len(rest) > 10 else "")
        echo(f"scenario {numbers[0]} is the first of {len(numbers):,}; the others are {some}", err=True)
    return str(numbers[0])


def step_recipe(spec: str, script: Path | None, is_json: bool, command: RunCommand) -> int:
    """Plan a new run and step through its first scenario; return the exit code."""
    lines, settings = _read_lines(script), select_settings(PlaySettings, command)
    out = command["out"] or Path("step.db" if is_file_spec(spec) or is_study(spec) else f"step-{spec}.db")
    if out.exists():
        raise RunError(f"{out} exists; continue it with 'dialoom step {out} 1', or give another file with -o")
    settings["on_event"] = _print_notice
    tune_process()
    asyncio.run(aplan(spec, path=out, **settings))
    return _step_through(out, "1", "main", lines, script, is_json, select_settings(CallSettings, settings))


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
    result = replay(path, **arguments, trust=trust(is_trusted))
    requirement_results = []
    if requirements and result.outcome is not None:
        requirement_results = check_replay_requirements(result, requirements, allow=allowed)
    is_passed = (
        not result.departures and all(each.is_met for each in requirement_results) if requirements else result.is_same
    )
    if is_json:
        echo_json(_replay_as_json(result, is_passed) | {"requirements": [str(each) for each in requirement_results]})
    else:
        _print_replay(path, result, requirements)
        for each in requirement_results:
            echo(str(each))
        if requirements and not requirement_results:
            echo("NOT MET: the conversation did not reach its end")
    return EXIT_DONE if is_passed else EXIT_SOME_FAILED


def _replay_as_json(result: ReplayResult, is_passed: bool) -> dict[str, Any]:
    """Return the result of a replay as JSON-compatible data."""
    return {
        "steps": result.steps,
        "replies": result.calls,
        "is_passed": is_passed,
        "departures": list(result.departures),
        "changed": list(result.changed),
        "lines": list(result.lines),
        "scores": list(result.scores),
        "live": dict(result.live),
        "kept": result.kept,
        "outcome": None if result.outcome is None else result.outcome.model_dump(mode="json"),
    }


def _print_replay(path: Path, result: ReplayResult, requirements: list[str]) -> None:
    """Print what was replayed, the differences, and what has changed since the case was saved."""
    for line in [*result.lines, *result.scores, *result.departures]:
        echo(line)
    for line in result.changed:
        echo(f"changed since the case was saved: {line}")
    if result.live:
        replies = ", ".join(f"{role} {count}" for role, count in result.live.items())
        to_changed = f", {result.kept} of them to changed requests" if result.kept else ""
        echo(f"{path}: new replies: {replies}; recorded replies: {result.calls}{to_changed}")
        if not requirements:
            compared = "judgements" if result.scores or (result.outcome and result.outcome.judgements) else "words"
            echo(f"{path}: {f'the same {compared}' if result.is_same else 'NOT as recorded'}")
        return
    path_text = "not the same path" if result.departures else "the same path"
    judge = ", and --live judge for new scores" if "judge" in result.bindings.by_role else ""
    counted = f"{result.steps} steps with {result.calls} recorded replies"
    echo(f"{path}: {path_text}, {counted}; no role replied again (--live ROLE{judge})")


def _read_lines(script: Path | None) -> Iterable[str] | None:
    """Return the lines of the script or of standard input; `None` if a person is at a terminal.

    Raises:
        DataError: If the script cannot be read.
    """
    if script is None:
        if is_terminal():
            return None
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8-sig", errors="replace")
        return sys.stdin
    return read_text(script, MAX_YAML_BYTES, streams=True).split("\n")


def _step_through(
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
        stepper: Stepper = runner.run(opened.enter_async_context(step(path, scenario, branch=branch, **calls)))
        try:
            interpreter = CommandInterpreter(
                stepper, printer.print_passed, inputs=[path, *([script] if script else [])]
            )
            if lines is not None:
                return play_script(runner, interpreter, lines, printer, str(script or "standard input"))
            echo(f"{stepper.scenario} in {path}: {_describe_state(path, stepper.scenario)}")
            echo("'help' lists the commands")
            printer.print_answer(runner.run(interpreter.show_stop(runner.run(stepper.here()))))
            return run_interactively(runner, interpreter, printer)
        finally:
            runner.run(opened.aclose())


def _print_notice(event: Event) -> None:
    """Print messages from planning and from nodes on standard error, separately from answers."""
    match event:
        case Notice(text) | NodeMessage(_, text):
            echo(text, err=True)
        case Planned(path, _, scenarios):
            echo(f"planned {pluralize(scenarios, 'scenarios')} in {path}", err=True)


def _describe_state(path: Path, scenario: str) -> str:
    """Return a scenario's state, and why it failed or ended."""
    episode = open_run(path).episode(scenario)
    if episode is None:
        return "pending"
    if episode.state == "failed":
        return f"failed, {' '.join((episode.error or 'for an unknown reason').split())}"
    return f"{episode.state}, ended by {episode.outcome.ended_by}"


class Printer:
    """A printer of answers.

    Args:
        is_json: Whether answers are printed as JSON.
    """

    def __init__(self, is_json: bool) -> None:
        self._is_json = is_json
        self._console = make_console(_DEFAULT_WIDTH)

    def print_answer(self, answer: Answer, line: str = "") -> None:
        """Print the answer to a line."""
        if self._is_json:
            echo_json({"line": line, "ok": True, **answer.data} if line else answer.data)
        else:
            self._show(answer)

    def print_passed(self, answer: Answer) -> None:
        """Print a passed stop; in JSON mode it is included in the next answer instead."""
        if not self._is_json:
            self._show(answer)

    def print_line(self, branch: str, line: str) -> None:
        """Print a command line that was not typed on the terminal, before its answer."""
        if not self._is_json and line:
            self._console.print(Text(f"{branch}> {line}", style="bold blue"))

    def print_error(self, text: str, line: str, place: str = "") -> None:
        """Print an error in one line."""
        text = " ".join(text.split())
        if self._is_json:
            echo_json({"line": line, "ok": False, "error": text})
        else:
            sys.stdout.flush()
            SafeConsole(stderr=True, soft_wrap=True).print(f"{place}{text}", style="red")

    def _show(self, answer: Answer) -> None:
        shown = Group(*answer.shown)
        if self._console.is_terminal:
            self._console.print(shown)
            return
        with self._console.capture() as captured:  # rich pads the last column of a table with spaces
            self._console.print(shown)
        echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def play_script(
    runner: asyncio.Runner, interpreter: CommandInterpreter, lines: Iterable[str], printer: Printer, name: str
) -> int:
    """Carry out lines until one fails; return the exit code."""
    for number, line in enumerate(lines, start=1):
        words = line.strip()
        place = f"{name}, line {number} ({words}): "
        printer.print_line(interpreter.stepper.branch, words)
        try:
            answer = runner.run(interpreter.execute(words))
        except Quit:
            return EXIT_DONE
        except KeyboardInterrupt:
            printer.print_error("interrupted; recorded replies are kept", words, place)
            return EXIT_STOPPED
        except Exception as error:
            printer.print_error(_format_error_message(error), words, place)
            return _get_exit_code(error)
        if answer is not None:
            printer.print_answer(answer, words)
    return EXIT_DONE


def run_interactively(runner: asyncio.Runner, interpreter: CommandInterpreter, printer: Printer) -> int:
    """Read lines from the person at the terminal until they quit; return the exit code."""
    _enable_completion()
    while True:
        try:
            line = input(f"{interpreter.stepper.branch}> ")
        except EOFError:
            echo()
            return EXIT_DONE
        except KeyboardInterrupt:
            echo("\n'quit' leaves")
            continue
        try:
            if (answer := runner.run(interpreter.execute(line))) is not None:
                printer.print_answer(answer, line.strip())
        except Quit:
            return EXIT_DONE
        except KeyboardInterrupt:
            here = runner.run(interpreter.stepper.here())
            echo()
            printer.print_error(f"interrupted at {here.branch} {here.number}; recorded replies are kept", line)
        except Exception as error:
            printer.print_error(_format_error_message(error), line)


def _get_exit_code(error: Exception) -> int:
    """Return a script's exit code for an error, by its cause."""
    fault = fault_of(error)
    if isinstance(error, _INPUT_ERRORS) or fault in FATAL:
        return EXIT_USAGE
    return EXIT_STOPPED if fault is Fault.BUDGET else EXIT_SOME_FAILED


def _format_error_message(error: Exception) -> str:
    """Return the message of an error; for an unexpected error, print its traceback first.

    A debugger is used to find errors in the nodes of a recipe under development, so such errors do not end it.
    """
    if isinstance(error, _INPUT_ERRORS) or fault_of(error) is not Fault.BUG:
        return format_error(error)
    echo(redact("".join(traceback.format_exception(error, limit=-_MAX_FRAMES))), err=True, nl=False)
    return redact(f"unexpected {type(error).__name__}: {error}")


def _enable_completion() -> None:
    """Enable the terminal's history and completion of command names, where available."""
    with suppress(ImportError):
        import readline

        names = sorted(name for name in COMMANDS_BY_NAME if len(name) > 1)

        def matching(text: str, state: int) -> str | None:
            found = [f"{name} " for name in names if name.startswith(text)]
            return found[state] if state < len(found) else None

        readline.set_completer(matching)
        readline.parse_and_bind("tab: complete")


def is_terminal() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin.isatty()
