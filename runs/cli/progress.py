"""What a user sees while a run is under way: a bar on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

import structlog
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dialoom.roles import Gateway
from dialoom.roles.gateway.limits import LimitState
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
        retry: The command that tries again what failed; by default the same with `--retry-failed`.
        log_format: `text` or `json`, of the lines on standard error.

    Attributes:
        stopped: Why the work was stopped early, if by the budget or by too many failures: whose fault (`None` for
            failures), and a sentence.
    """

    def __init__(
        self,
        store: RunStore,
        total: int,
        what: str,
        again: str,
        retry: str | None = None,
        log_format: str = "text",
    ) -> None:
        self.done = self.errors = 0
        self.stopped: tuple[Fault | None, str] | None = None
        self._gateway: Gateway | None = None
        self._throttled: dict[str, int] = {}
        self._json = log_format == "json"
        self._store = store
        self._total = total
        self._what = what
        self._again = again
        self._retry = retry or f"{again} --retry-failed"
        self._started = self._shown = time.monotonic()
        self._console = Console(stderr=True)
        self._bar: Progress | None = None
        self._task: Any = None
        self._log = _logger(self._json)

    def __enter__(self) -> Self:
        if self._console.is_terminal and self._total and not self._json:
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

    def calling(self, gateway: Gateway) -> None:
        """Show how the limits of this gateway's models stand."""
        self._gateway = gateway

    def stopping(self, fault: Fault | None, reason: str) -> None:
        """Say why the work is stopped early."""
        self.stopped = (fault, reason)
        self._log.warning("stopping", reason=reason)

    async def watch(self) -> None:
        """Show how things stand every few seconds, also while nothing is finished; until it is cancelled."""
        while True:
            await asyncio.sleep(_EVERY)
            self._tell_throttled()
            self._show()

    def summary(self, complete: bool) -> None:
        """The last lines: what was done, and how to go on."""
        seconds = time.monotonic() - self._started
        status = self._store.status()
        typer.echo(
            f"{self.done:,} done, {self.errors:,} failed in {seconds:,.1f} s "
            f"({status.done:,} of {status.total:,} scenarios of the run are done)"
        )
        if self.stopped is not None:
            fault, reason = self.stopped
            typer.echo(f"stopped: {reason}")
            on = f"{self._again} {reason.split()[0]} MORE" if fault is Fault.BUDGET else self._retry
            typer.echo(f"what was answered is kept. Go on with: {on}")
        elif not complete:
            typer.echo(f"stopped early; nothing is lost. Go on with: {self._again}")
        elif self.errors:
            typer.echo(f"what failed can be tried again with: {self._retry}")

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
            self._log_standing(finished)

    def _log_standing(self, finished: int) -> None:
        if not self._json:
            self._log.info(self._what, scenarios=f"{finished:,}/{self._total:,}", figures=self._figures())
            return
        usage = self._store.status().usage
        self._log.info(
            self._what,
            finished=finished,
            total=self._total,
            failed=self.errors,
            calls=usage.calls,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=usage.cost,
            models={model: asdict(state) for model, state in self._states().items()},
        )

    def _states(self) -> dict[str, LimitState]:
        return {} if self._gateway is None else self._gateway.states

    def _tell_throttled(self) -> None:
        """Say of each model whose provider has turned calls away since this was asked last."""
        for model, state in self._states().items():
            more = state.throttled - self._throttled.get(model, 0)
            self._throttled[model] = state.throttled
            if more:
                paused = {"paused": f"{state.paused:.0f} s"} if state.paused else {}
                self._log.warning("throttled", model=model, calls=more, limit=state.limit, **paused)

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
        parts += [_standing(model, state) for model, state in self._states().items()]
        return " · ".join(parts)


def _standing(model: str, state: LimitState) -> str:
    """A model's calls in flight, its limit, and how often its provider has turned calls away."""
    text = f"{model} {state.in_flight}/{state.limit} in flight"
    if state.throttled:
        text += f", {state.throttled:,} throttled"
    return text + (f", paused for {state.paused:.0f} s" if state.paused else "")


def _logger(as_json: bool) -> Any:
    """Plain lines on standard error, without colours where they would be noise; or JSON, one event a line."""
    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="iso" if as_json else "%H:%M:%S", utc=as_json),
            structlog.processors.add_log_level,
            structlog.processors.JSONRenderer(ensure_ascii=False)
            if as_json
            else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    return structlog.get_logger()
