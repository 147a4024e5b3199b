"""The progress display on a terminal: a line with the important figures at any width, and notices below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from dialoom.roles.gateway.availability import CallInFlight
from dialoom.roles.gateway.limits import LimitState
from dialoom.runs.store import Usage
from dialoom.text import pluralize

_BAR_WIDTH = 20
_MIN_WIDTH_FOR_NAME, _MIN_WIDTH_FOR_BAR = 70, 100
"""Minimum widths of a terminal, in columns, on which the name and the bar are displayed."""

_MAX_REMAINING_SECONDS = 100 * 3600.0
"""Maximum estimate of the remaining time in seconds; a longer one is not displayed."""

_SLOW_CALL_SECONDS = 60.0
"""Seconds after which a call in flight is reported."""


def format_figures(
    finished: int,
    failed: int,
    total: int,
    unparsed: int,
    seconds: float,
    usage: Usage,
    limits: Mapping[str, LimitState],
) -> list[str]:
    """Return figures about work in progress, the most important first: rate, failures and time left are always shown.

    Args:
        finished: The number of scenarios that are done or failed.
        failed: The number of scenarios that failed.
        total: The number of scenarios to work on.
        unparsed: The number of unparsed judgements in the set that is being written.
        seconds: Seconds since the work began.
        usage: The usage of all calls.
        limits: The limit of each model that was called.
    """
    left = (total - finished) * seconds / finished if finished else _MAX_REMAINING_SECONDS
    minutes, rest = divmod(round(left), 60)
    time_left = f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if left < _MAX_REMAINING_SECONDS else "-:--:--"
    has_tokens = usage.input_tokens is not None and usage.output_tokens is not None
    tokens = ((usage.input_tokens or 0) + (usage.output_tokens or 0)) / 1000
    return [
        f"{finished / max(seconds, 1e-9):.1f}/s",
        f"{failed:,} failed",
        f"{unparsed:,} unparsed",
        f"{time_left} left",
        "cost unknown" if usage.cost is None else f"${usage.cost:,.2f}",
        f"{tokens:,.0f}k tokens" if has_tokens else "tokens unknown",
        *(_format_in_flight(model, state) for model, state in limits.items()),
    ]


def join_to_width(parts: Sequence[str], width: int) -> str:
    """Join as many of the parts as fit into the width; the first is always included."""
    text = parts[0]
    for part in parts[1:]:
        if len(longer := f"{text} · {part}") > width:
            break
        text = longer
    return text


class ProgressDisplay(Progress):
    """A progress bar with figures, and below it a line for each notice, such as a provider that the work waits for.

    Args:
        action: The work.
        total: The number of its scenarios.
        console: The console to draw on.
        notices: Returns the lines below the bar.
    """

    def __init__(self, action: str, total: int, console: Console, notices: Callable[[], Sequence[str]]) -> None:
        self._notices = notices
        self._action, self._total = action, total
        super().__init__(
            *([TextColumn("{task.description}", markup=False)] if console.width >= _MIN_WIDTH_FOR_NAME else []),
            *([BarColumn(_BAR_WIDTH)] if console.width >= _MIN_WIDTH_FOR_BAR else []),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            console=console,
        )
        self._task = self.add_task(action, total=total, figures="")

    def show(self, finished: int, figures: Sequence[str] | None = None) -> None:
        """Draw the progress.

        Args:
            finished: Number of finished scenarios.
            figures: The texts beside the bar, the most important first; by default unchanged.
        """
        fields: dict[str, Any] = {} if figures is None else {"figures": join_to_width(figures, self._figures_width())}
        super().update(self._task, completed=finished, **fields)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar and the notices; each is one line of the terminal."""
        yield self.make_tasks_table(self.tasks)
        for notice in self._notices():
            yield Text(f"  {notice}", no_wrap=True, overflow="ellipsis", style="yellow")

    def _figures_width(self) -> int:
        """Return the columns left for figures beside the description, the bar, the count and separators."""
        width = self.console.width
        name = len(self._action) + 1 if width >= _MIN_WIDTH_FOR_NAME else 0
        bar = _BAR_WIDTH + 1 if width >= _MIN_WIDTH_FOR_BAR else 0
        return width - name - bar - len(f"{self._total}/{self._total} ")


def _format_in_flight(model: str, state: LimitState) -> str:
    """Return, as text, a model's calls in flight, its limit, and the number of calls that its provider rejected."""
    text = f"{model} {state.in_flight}/{state.limit} in flight"
    return text + (f", {state.throttled:,} throttled" if state.throttled else "")


def format_pauses(limits: Mapping[str, LimitState]) -> list[str]:
    """Return a line for each model whose provider has asked for a pause."""
    return [f"{model}: paused for {state.paused:.0f} s" for model, state in limits.items() if state.paused]


def format_slow_calls(calls: Sequence[CallInFlight]) -> str:
    """Return the number of slow calls in flight, with age and role of the longest; empty if there are none.

    Args:
        calls: The calls in flight, the longest first.
    """
    slow = [call for call in calls if call.age >= _SLOW_CALL_SECONDS]
    if not slow:
        return ""
    minutes, seconds = divmod(int(slow[0].age), 60)
    hours, minutes = divmod(minutes, 60)
    age = f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"
    return f"{pluralize(len(slow), 'calls')} in flight for {'up to ' if len(slow) > 1 else ''}{age} ({slow[0].role})"
