"""Lines in, answers out: a person at a terminal, a script, or a program."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from contextlib import suppress

from rich.console import Console
from rich.text import Text

from dialoom.runs.errors import EXIT_DONE, EXIT_SOME_FAILED, EXIT_USAGE, Fault, fault_of
from dialoom.runs.stepping import ConditionError, PathError

from .commands import BY_NAME, Desk, Quit
from .views import Answer

_OF_THE_LINE = (ConditionError, PathError)


class Printer:
    """Prints answers: as text, or as a line of JSON each.

    Args:
        is_json: Whether as JSON.
    """

    def __init__(self, is_json: bool) -> None:
        self._is_json = is_json
        self._console = Console(highlight=False, soft_wrap=False)
        if not self._console.is_terminal:
            self._console = Console(highlight=False, width=120)

    def answer(self, answer: Answer, line: str = "") -> None:
        """Print an answer."""
        if self._is_json:
            told = {"line": line, "ok": True} if line else {}
            print(json.dumps({**told, **answer.data}, ensure_ascii=False), flush=True)  # noqa: T201
            return
        for shown in answer.shown:
            self._console.print(shown)

    def echo(self, branch: str, line: str) -> None:
        """Print a line that nobody sees being typed, before its answer."""
        if not self._is_json and line:
            self._console.print(Text(f"{branch}> {line}", style="bold blue"))

    def error(self, text: str, line: str, place: str = "") -> None:
        """Print what went wrong."""
        if self._is_json:
            print(json.dumps({"line": line, "ok": False, "error": text}, ensure_ascii=False), flush=True)  # noqa: T201
        else:
            Console(stderr=True, highlight=False, soft_wrap=True).print(f"{place}{text}", style="red", markup=False)


def play_script(runner: asyncio.Runner, desk: Desk, lines: Iterable[str], printer: Printer, name: str) -> int:
    """Carry out lines until one fails; returns the exit code."""
    for number, line in enumerate(lines, start=1):
        words = line.strip()
        printer.echo(desk.session.branch, words)
        try:
            answer = runner.run(desk.do(words))
        except Quit:
            return EXIT_DONE
        except Exception as error:
            if (text := _told(error)) is None:
                raise
            printer.error(text, words, f"{name}, line {number} ({words}): ")
            return EXIT_USAGE if _is_of_the_line(error) else EXIT_SOME_FAILED
        if answer is not None:
            printer.answer(answer, words)
    return EXIT_DONE


def converse(runner: asyncio.Runner, desk: Desk, printer: Printer) -> int:
    """Read lines from the person at the terminal until they quit; returns the exit code."""
    _complete()
    while True:
        try:
            line = input(f"{desk.session.branch}> ")
        except EOFError:
            print()  # noqa: T201
            return EXIT_DONE
        except KeyboardInterrupt:
            print("\n'quit' leaves")  # noqa: T201
            continue
        try:
            if (answer := runner.run(desk.do(line))) is not None:
                printer.answer(answer)
        except Quit:
            return EXIT_DONE
        except KeyboardInterrupt:
            print("\nbroken off: nothing of this step was kept but the calls that were answered")  # noqa: T201
        except Exception as error:
            if (text := _told(error)) is None:
                raise
            printer.error(text, line)


def _is_of_the_line(error: Exception) -> bool:
    return isinstance(error, _OF_THE_LINE) or fault_of(error) is Fault.CONFIGURATION


def _told(error: Exception) -> str | None:
    """What is said of an error; `None` if nobody foresaw it."""
    if isinstance(error, _OF_THE_LINE) or fault_of(error) is not Fault.BUG:
        return str(error)
    return None


def _complete() -> None:
    """Let the terminal remember lines and complete the commands' names, where it can."""
    with suppress(ImportError):
        import readline

        names = sorted(name for name in BY_NAME if len(name) > 1)

        def matching(text: str, state: int) -> str | None:
            found = [f"{name} " for name in names if name.startswith(text)]
            return found[state] if state < len(found) else None

        readline.set_completer(matching)
        readline.parse_and_bind("tab: complete")


def is_terminal() -> bool:
    """Whether a person sits at standard input."""
    return sys.stdin.isatty()
