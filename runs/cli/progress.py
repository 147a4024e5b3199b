"""What a user sees while a run is under way: a bar on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType
from typing import Any, Self

import structlog
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dialoom.runs.errors import Fault
from dialoom.runs.store import RunStore, Work

_EVERY = 5.0
"""Seconds between log lines, and at the least between readings of the ledger."""


class Watcher:
    """Counts results and shows them. Used as a context around the work.

    Args:
        store: The run, for calls, tokens and cost.
        total: How much is to be done.
        what: What is being done, for the display.
        again: The command that goes on with it.
    """

    def __init__(self, store: RunStore, total: int, what: str, again: str) -> None:
        self.done = self.errors = 0
        self._store = store
        self._total = total
        self._what = what
        self._again = again
        self._started = self._shown = time.monotonic()
        self._console = Console(stderr=True)
        self._bar: Progress | None = None
        self._task: Any = None
        self._log = _logger()

    def __enter__(self) -> Self:
        if self._console.is_terminal and self._total:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[figures]}"),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._task = self._bar.add_task(self._what, total=self._total, figures="")
            self._bar.start()
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def finished(self, work: Work) -> None:  # noqa: ARG002
        """Count a result; figures are shown every few seconds."""
        self.done += 1
        self._show()

    def failed(self, work: Work, fault: Fault, error: str) -> None:
        """Count a failure, and show it at once."""
        self.errors += 1
        self._log.warning("scenario failed", scenario=work.scenario.id, fault=str(fault), error=error)
        self._show()

    def told(self, work: Work, text: str) -> None:  # noqa: ARG002
        """Print what a node has to say."""
        self._log.info(text)

    def summary(self, complete: bool) -> None:
        """The last lines: what was done, and how to go on."""
        seconds = time.monotonic() - self._started
        status = self._store.status()
        typer.echo(
            f"{self.done:,} done, {self.errors:,} failed in {seconds:,.1f} s "
            f"({status.done:,} of {status.total:,} scenarios of the run are done)"
        )
        if not complete:
            typer.echo(f"stopped early; nothing is lost. Go on with: {self._again}")
        elif self.errors:
            typer.echo(f"what failed can be tried again with: {self._again} --retry-failed")

    def _show(self) -> None:
        finished, now = self.done + self.errors, time.monotonic()
        due = now - self._shown >= _EVERY
        if due:
            self._shown = now
        if self._bar is not None:
            if due or finished == 1:
                self._bar.update(self._task, figures=self._figures())
            self._bar.update(self._task, completed=finished)
        elif due:
            self._log.info(self._what, scenarios=f"{finished:,}/{self._total:,}", figures=self._figures())

    def _figures(self) -> str:
        usage = self._store.status().usage
        rate = (self.done + self.errors) / max(time.monotonic() - self._started, 1e-9)
        parts = [f"{rate:.1f}/s"]
        if usage.input_tokens is None or usage.output_tokens is None:
            parts.append("tokens unknown")
        else:
            parts.append(f"{(usage.input_tokens + usage.output_tokens) / 1000:,.0f}k tokens")
        parts.append("cost unknown" if usage.cost is None else f"${usage.cost:,.2f}")
        if self.errors:
            parts.append(f"{self.errors:,} failed")
        return " · ".join(parts)


def _logger() -> Any:
    """Plain lines on standard error, without colours where they would be noise."""
    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    return structlog.get_logger()
