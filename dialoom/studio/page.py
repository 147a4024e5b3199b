"""The pages of the studio, and the view that a page shows at a URL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Literal, TypedDict
from urllib.parse import quote, urlencode

from dialoom.runs.errors import RunError

from .studio import Studio, StudioRun

Scope = Literal["studio", "run", "scenario"]
"""The subject of a page: all runs, a run (`/runs/{run}/...`), or a scenario (`/runs/{run}/scenarios/{scenario}...`)."""

Query = Mapping[str, str | Sequence[str] | None]
"""The query of an address: one or several values by name; `None` and empty strings are left out."""


class Selection(TypedDict):
    """The selection of scenarios: by an expression, and by words in their messages."""

    where: str | None
    search: str | None


@dataclass(frozen=True, slots=True)
class View:
    """The view of one page. The address contains all of it, so that the address can be shared.

    Attributes:
        studio: The runs.
        path_parameters: The values of the path's placeholders, such as `run` and `scenario`.
        query: The query parameters, with all values of each name.
        pattern: The path of the page with its placeholders.
    """

    studio: Studio
    path_parameters: Mapping[str, str]
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pattern: str = "/"

    @property
    def run(self) -> StudioRun:
        """The run that the page is about.

        Raises:
            RunError: If there is no run of that name.
        """
        return self.studio.run(self.path_parameters["run"])

    @property
    def scenario(self) -> str:
        """The scenario that the page is about, in a form that `Run.episode` accepts."""
        return self.path_parameters["scenario"]

    @property
    def selection(self) -> Selection:
        """The expression and the words by which scenarios are selected."""
        return {"where": self.get("where") or None, "search": self.get("search") or None}

    def get(self, name: str, default: str = "") -> str:
        """Return the last value of a query parameter, or the default if it has none."""
        values = self.query.get(name, ())
        return values[-1] if values else default

    def number(self, name: str, default: int) -> int:
        """Return the value of a query parameter as a whole number, or the default if it has none.

        Raises:
            RunError: If the value is not a whole number.
        """
        text = self.get(name)
        if not text:
            return default
        if not (text.isdecimal() and len(text) < 10):
            raise RunError(f"{name} must be a whole number, got {text!r:.40}")
        return int(text)

    def url(self, query: Query) -> str:
        """Return the address of this page with another query."""
        return self.url_for(self.pattern, query)

    def url_for(self, pattern: str, query: Query | None = None, **names: str | int) -> str:
        """Return the address of a page; it has the same run and scenario unless others are given."""
        return build_url(pattern, query, **{**self.path_parameters, **names})


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the studio.

    Attributes:
        path: The page's address, such as `/runs/{run}/scenarios`.
        title: The label of the page's tab.
        scope: What the page is about; the tabs of the run or scenario are shown above the page.
        build: Builds the page's content within its frame; a `DialoomError` is shown in its place. The function may be
            asynchronous, and must do long work in a thread (`asyncio.to_thread`).
        has_tab: Returns whether the page has a tab in a view.
        is_wide: Whether the page uses the whole width of the window.
    """

    path: str
    title: str
    scope: Scope
    build: Callable[[View], Awaitable[None] | None]
    has_tab: Callable[[View], bool] = lambda _view: True
    is_wide: bool = False


def build_url(pattern: str, query: Query | None = None, **names: Any) -> str:
    """Return an address in which every part is quoted.

    Args:
        pattern: A page's path.
        query: The query parameters.
        names: Values of the path's placeholders; others are ignored.
    """
    quoted = {name: quote(str(names[name]), safe="") for _, name, _, _ in Formatter().parse(pattern) if name}
    pairs = []
    for name, value in (query or {}).items():
        pairs += [(name, each) for each in ([value] if isinstance(value, str) or value is None else value) if each]
    return pattern.format(**quoted) + (f"?{urlencode(pairs)}" if pairs else "")
