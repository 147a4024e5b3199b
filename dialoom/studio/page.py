"""The pages of the studio, and the view of one address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Literal
from urllib.parse import quote, urlencode

from dialoom.runs.errors import RunError

from .studio import Studio, StudioRun

Scope = Literal["studio", "run", "scenario"]
"""All runs, one of them (`/runs/{run}/...`), or one of its scenarios (`/runs/{run}/scenarios/{scenario}...`)."""

Query = Mapping[str, str | Sequence[str] | None]
"""The query of an address: one value or several by name; `None` and an empty text are left out."""


@dataclass(frozen=True, slots=True)
class View:
    """The view of one page: all of it is in the address, so that the address can be shared.

    Attributes:
        studio: The runs.
        names: The parts of the path that have a name: `run`, `scenario`.
        query: What stands behind the path, all values of each name.
        pattern: The path of the page, as the page has it.
    """

    studio: Studio
    names: Mapping[str, str]
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pattern: str = "/"

    @property
    def run(self) -> StudioRun:
        """The run that the page is of.

        Raises:
            RunError: If there is none of that name.
        """
        return self.studio.run(self.names["run"])

    @property
    def scenario(self) -> str:
        """The scenario that the page is of, as `Run.episode` takes it."""
        return self.names["scenario"]

    def one(self, name: str, default: str = "") -> str:
        """Return a value of the query."""
        values = self.query.get(name, ())
        return values[-1] if values else default

    def number(self, name: str, default: int) -> int:
        """Return a whole number of the query.

        Raises:
            RunError: If it is none.
        """
        text = self.one(name)
        if not text:
            return default
        if not (text.isdecimal() and len(text) < 10):
            raise RunError(f"{name} {text!r:.40} is no whole number")
        return int(text)

    def here(self, query: Query) -> str:
        """Return the address of this page with another query."""
        return self.path(self.pattern, query)

    def path(self, pattern: str, query: Query | None = None, **names: str | int) -> str:
        """Return the address of a page, of the same run and scenario unless others are named."""
        return address(pattern, query, **{**self.names, **names})


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the studio.

    Attributes:
        path: Its address, such as `/runs/{run}/scenarios`.
        title: What its tab says.
        scope: What it is of; the tabs of that are shown above it.
        build: Makes what is on it, within the page's frame. `DialoomError`s are shown in its place. It may be
            asynchronous; what takes long is to be awaited in a thread (`asyncio.to_thread`).
        has_tab: Whether the tabs above a run or a scenario name it, by what is looked at.
        is_wide: Whether it uses the whole width of the window.
    """

    path: str
    title: str
    scope: Scope
    build: Callable[[View], Awaitable[None] | None]
    has_tab: Callable[[View], bool] = lambda _view: True
    is_wide: bool = False


def address(pattern: str, query: Query | None = None, **names: Any) -> str:
    """Return an address, with every part of it quoted.

    Args:
        pattern: A page's path.
        query: What stands behind it.
        names: The parts that the path leaves open; others are ignored.
    """
    needed = {name: quote(str(names[name]), safe="") for _, name, _, _ in Formatter().parse(pattern) if name}
    pairs = []
    for name, value in (query or {}).items():
        values = [value] if isinstance(value, str) or value is None else value
        pairs += [(name, each) for each in values if each]
    return pattern.format(**needed) + (f"?{urlencode(pairs)}" if pairs else "")
