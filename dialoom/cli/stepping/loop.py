"""The loop of lines and answers: for a person at a terminal, a script, or a program."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress

from dialoom.cli.errors import EXIT_DONE, EXIT_SOME_FAILED, EXIT_STOPPED, EXIT_USAGE, worded
from dialoom.cli.terminal import say
from dialoom.runs.errors import FATAL, Fault, fault_of
from dialoom.runs.stepping import ConditionError, PathError

from .commands import BY_NAME, CommandInterpreter, Quit
from .printer import Printer

_OF_THE_LINE = (ConditionError, PathError)
_FRAMES = 6
"""Stack frames shown for an unexpected error: those nearest to it."""


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
            printer.error("interrupted; what was answered is kept", words, place)
            return EXIT_STOPPED
        except Exception as error:
            printer.error(_told(error), words, place)
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
            printer.error(f"broken off at {here.branch} {here.number}; what was answered is kept", line)
        except Exception as error:
            printer.error(_told(error), line)


def _exit_code(error: Exception) -> int:
    """Return a script's exit code by the cause of the error."""
    fault = fault_of(error)
    if isinstance(error, _OF_THE_LINE) or fault in FATAL:
        return EXIT_USAGE
    return EXIT_STOPPED if fault is Fault.BUDGET else EXIT_SOME_FAILED


def _told(error: Exception) -> str:
    """Return the message of an error. The traceback of an unexpected error is printed first.

    A debugger is meant to show the errors of nodes in a recipe under development, so they do not end the stepping.
    """
    if isinstance(error, _OF_THE_LINE) or fault_of(error) is not Fault.BUG:
        return worded(error)
    say("".join(traceback.format_exception(error, limit=-_FRAMES)), err=True, nl=False)
    return f"nobody foresaw this {type(error).__name__}: {error}"


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
