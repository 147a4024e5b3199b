"""How answers reach who asked: text for people, a line of JSON each for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from .views import Answer

_WIDTH = 120
"""Columns where there is no terminal to fit."""
_OBEYED = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
"""What a terminal would obey instead of showing it: a model's reply may hold it."""


class Printer:
    """Prints answers.

    Args:
        is_json: Whether as JSON.
    """

    def __init__(self, is_json: bool) -> None:
        self._is_json = is_json
        self._console = Console(highlight=False)
        self._is_terminal = self._console.is_terminal
        if not self._is_terminal:
            self._console = Console(highlight=False, width=_WIDTH)

    def answer(self, answer: Answer, line: str = "") -> None:
        """Print the answer to a line."""
        if self._is_json:
            self._json({"line": line, "ok": True, **answer.data} if line else answer.data)
        else:
            self._show(answer)

    def passed(self, answer: Answer) -> None:
        """Print a stop on the way; a program finds it in the answer that follows."""
        if not self._is_json:
            self._show(answer)

    def echo(self, branch: str, line: str) -> None:
        """Print a line that nobody sees being typed, before its answer."""
        if not self._is_json and line:
            self._console.print(Text(f"{branch}> {line}", style="bold blue"))

    def error(self, text: str, line: str, place: str = "") -> None:
        """Print what went wrong, in one line."""
        text = " ".join(text.split()).translate(_OBEYED)
        if self._is_json:
            self._json({"line": line, "ok": False, "error": text})
        else:
            sys.stdout.flush()
            Console(stderr=True, highlight=False, soft_wrap=True).print(f"{place}{text}", style="red", markup=False)

    def _json(self, data: Mapping[str, Any]) -> None:
        print(json.dumps(data, ensure_ascii=False), flush=True)  # noqa: T201

    def _show(self, answer: Answer) -> None:
        shown = _Harmless(Group(*answer.shown))
        if self._is_terminal:
            self._console.print(shown)
            return
        with self._console.capture() as captured:  # a table fills its last column with blanks
            self._console.print(shown)
        print("\n".join(line.rstrip() for line in captured.get().splitlines()), flush=True)  # noqa: T201


@dataclass(frozen=True, slots=True)
class _Harmless:
    """Something of which the terminal obeys nothing but the colours."""

    shown: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its pieces."""
        for segment in console.render(self.shown, options):
            yield segment if segment.control else Segment(segment.text.translate(_OBEYED), segment.style)
