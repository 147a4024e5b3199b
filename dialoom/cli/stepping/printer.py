"""Output of answers: text for people, a JSON line each for programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from dialoom.cli.console import HarmlessConsole, make_console
from dialoom.cli.terminal import say, say_json

from .views import Answer

_WIDTH = 120
"""Columns used when standard output is no terminal."""


class Printer:
    """A printer of answers.

    Args:
        is_json: Whether as JSON.
    """

    def __init__(self, is_json: bool) -> None:
        self._is_json = is_json
        self._console = make_console(_WIDTH)
        self._is_terminal = self._console.is_terminal

    def answer(self, answer: Answer, line: str = "") -> None:
        """Print the answer to a line."""
        if self._is_json:
            self._json({"line": line, "ok": True, **answer.data} if line else answer.data)
        else:
            self._show(answer)

    def passed(self, answer: Answer) -> None:
        """Print a stop on the way; a program finds it in the next answer."""
        if not self._is_json:
            self._show(answer)

    def echo(self, branch: str, line: str) -> None:
        """Print a line that was not typed on the terminal, before its answer."""
        if not self._is_json and line:
            self._console.print(Text(f"{branch}> {line}", style="bold blue"))

    def error(self, text: str, line: str, place: str = "") -> None:
        """Print an error in one line."""
        text = " ".join(text.split())
        if self._is_json:
            self._json({"line": line, "ok": False, "error": text})
        else:
            sys.stdout.flush()
            HarmlessConsole(stderr=True, soft_wrap=True).print(f"{place}{text}", style="red")

    def _json(self, data: Mapping[str, Any]) -> None:
        say_json(data)

    def _show(self, answer: Answer) -> None:
        shown = Group(*answer.shown)
        if self._is_terminal:
            self._console.print(shown)
            return
        with self._console.capture() as captured:  # a table fills its last column with blanks
            self._console.print(shown)
        say("\n".join(line.rstrip() for line in captured.get().splitlines()))
