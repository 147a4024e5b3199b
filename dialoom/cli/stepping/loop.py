"""The loop that reads lines and prints answers: for a person at a terminal, a script, or a program."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress

from rich.console import Group
from rich.text import Text

from dialoom.cli.console import HarmlessConsole, make_console
from dialoom.cli.errors import EXIT_DONE, EXIT_SOME_FAILED, EXIT_STOPPED, EXIT_USAGE, worded
from dialoom.cli.terminal import say, say_json
from dialoom.runs.errors import FATAL, Fault, fault_of
from dialoom.runs.stepping import ConditionError, PathError

from .commands import BY_NAME, CommandInterpreter, Quit
from .views import Answer

_OF_THE_LINE = (ConditionError, PathError)
_FRAMES = 6
"""Number of stack frames shown for an unexpected error: the frames nearest to it."""
_WIDTH = 120
"""Columns used when standard output is not a terminal."""


class Printer:
    """A printer of answers.

    Args:
        is_json: Whether answers are printed as JSON.
    """

    def __init__(self, is_json: bool) -> None:
        self._is_json = is_json
        self._console = make_console(_WIDTH)
        self._is_terminal = self._console.is_terminal

    def answer(self, answer: Answer, line: str = "") -> None:
        """Print the answer to a line."""
        if self._is_json:
            say_json({"line": line, "ok": True, **answer.data} if line else answer.data)
        else:
            self._show(answer)

    def passed(self, answer: Answer) -> None:
        """Print a passed stop; in JSON mode it is included in the next answer instead."""
        if not self._is_json:
            self._show(answer)

    def echo(self, branch: str, line: str) -> None:
        """Print a command line that was not typed on the terminal, before its answer."""
        if not self._is_json and line:
            self._console.print(Text(f"{branch}> {line}", style="bold blue"))

    def error(self, text: str, line: str, place: str = "") -> None:
        """Print an error in one line."""
        text = " ".join(text.split())
        if self._is_json:
            say_json({"line": line, "ok": False, "error": text})
        else:
            sys.stdout.flush()
            HarmlessConsole(stderr=True, soft_wrap=True).print(f"{place}{text}", style="red")

    def _show(self, answer: Answer) -> None:
        shown = Group(*answer.shown)
        if self._is_terminal:
            self._console.print(shown)
            return
        with self._console.capture() as captured:  # rich pads the last column of a table with spaces
            self._console.print(shown)
        say("\n".join(line.rstrip() for line in captured.get().splitlines()))


def play_script(
    runner: asyncio.Runner, interpreter: CommandInterpreter, lines: Iterable[str], printer: Printer, name: str
) -> int:
    """Carry out lines until one fails; return the exit code."""
    for number, line in enumerate(lines, start=1):
        words = line.strip()
        place = f"{name}, line {number} ({words}): "
        printer.echo(interpreter.stepper.branch, words)
        try:
            answer = runner.run(interpreter.do(words))
        except Quit:
            return EXIT_DONE
        except KeyboardInterrupt:
            printer.error("interrupted; recorded replies are kept", words, place)
            return EXIT_STOPPED
        except Exception as error:
            printer.error(_error_text(error), words, place)
            return _exit_code(error)
        if answer is not None:
            printer.answer(answer, words)
    return EXIT_DONE


def converse(runner: asyncio.Runner, interpreter: CommandInterpreter, printer: Printer) -> int:
    """Read lines from the person at the terminal until they quit; return the exit code."""
    _complete()
    while True:
        try:
            line = input(f"{interpreter.stepper.branch}> ")
        except EOFError:
            say()
            return EXIT_DONE
        except KeyboardInterrupt:
            say("\n'quit' leaves")
            continue
        try:
            if (answer := runner.run(interpreter.do(line))) is not None:
                printer.answer(answer, line.strip())
        except Quit:
            return EXIT_DONE
        except KeyboardInterrupt:
            here = runner.run(interpreter.stepper.here())
            say()
            printer.error(f"interrupted at {here.branch} {here.number}; recorded replies are kept", line)
        except Exception as error:
            printer.error(_error_text(error), line)


def _exit_code(error: Exception) -> int:
    """Return a script's exit code for an error, by its cause."""
    fault = fault_of(error)
    if isinstance(error, _OF_THE_LINE) or fault in FATAL:
        return EXIT_USAGE
    return EXIT_STOPPED if fault is Fault.BUDGET else EXIT_SOME_FAILED


def _error_text(error: Exception) -> str:
    """Return the message of an error; for an unexpected error, print its traceback first.

    A debugger is used to find errors in the nodes of a recipe under development, so such errors do not end it.
    """
    if isinstance(error, _OF_THE_LINE) or fault_of(error) is not Fault.BUG:
        return worded(error)
    say("".join(traceback.format_exception(error, limit=-_FRAMES)), err=True, nl=False)
    return f"unexpected {type(error).__name__}: {error}"


def _complete() -> None:
    """Enable the terminal's history and completion of command names, where available."""
    with suppress(ImportError):
        import readline

        names = sorted(name for name in BY_NAME if len(name) > 1)

        def matching(text: str, state: int) -> str | None:
            found = [f"{name} " for name in names if name.startswith(text)]
            return found[state] if state < len(found) else None

        readline.set_completer(matching)
        readline.parse_and_bind("tab: complete")


def is_terminal() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin.isatty()
