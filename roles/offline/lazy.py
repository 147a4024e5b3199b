"""Regular expressions compiled on first use: importing the package stays cheap."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property


class Lazy:
    """A pattern with the methods of `re.Pattern` that are used here."""

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        """Keep the pattern; it is compiled when it is first asked for something."""
        self._pattern, self._flags = pattern, flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Give the compiled pattern."""
        return re.compile(self._pattern, self._flags)

    def search(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.search`."""
        return self.compiled.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.match`."""
        return self.compiled.match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.fullmatch`."""
        return self.compiled.fullmatch(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """As `re.Pattern.finditer`."""
        return self.compiled.finditer(text)

    def findall(self, text: str) -> list[tuple[str, ...]]:
        """As `re.Pattern.findall` of a pattern with several groups."""
        return self.compiled.findall(text)

    def sub(self, repl: str | Callable[[re.Match[str]], str], text: str) -> str:
        """As `re.Pattern.sub`."""
        return self.compiled.sub(repl, text)
