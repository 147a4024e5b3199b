"""The display of a running command: a progress bar on a terminal, plain log lines elsewhere."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import structlog

from dialoom.api.operation_settings import CallSettings
from dialoom.api.run import RunReader
from dialoom.roles.gateway.availability import ProviderReachable, ProviderUnreachable
from dialoom.runs.configuration.config import DEFAULT_MODELS
from dialoom.runs.control import (
    Control,
    Ended,
    Event,
    NodeMessage,
    Notice,
    Planned,
    Retrying,
    ScenarioDone,
    ScenarioFailed,
    Started,
    Stopping,
    Worked,
)
from dialoom.runs.errors import Fault
from dialoom.settings import DEFAULT_CONCURRENCY, select_settings
from dialoom.text import format_duration, format_safe_json, pluralize, sanitize

from .console import SafeConsole
from .errors import EXIT_DONE, EXIT_SOME_FAILED, EXIT_STOPPED, get_flag
from .progress import ProgressDisplay, format_figures, format_pauses, format_slow_calls
from .terminal import echo, echo_lines

SettingsT = TypeVar("SettingsT", bound=CallSettings)

_REPORT_INTERVAL_SECONDS = 5.0
"""Seconds between two log lines, which is also the minimum interval for reading the ledger."""

_MAX_ERROR_CHARACTERS = 100
"""Maximum length of an error message when it is repeated after being printed in full."""

_DRAINING = "interrupted: the current steps are being finished; a second Ctrl-C cancels the calls in flight"
_STOPPING_EARLY = "interrupted: stopping before the work begins"


class Watcher:
    """A listener that displays events, used as a context manager around the work.

    Args:
        settings: The settings of the work; a control and this listener are added to them.
        format_resume: Returns the command that continues work that has ended; by default `resume` with the given
            concurrency.
        format_retry: Returns the command that retries failures; by default that of `format_resume` with --retry-failed,
            or `retry`.
        is_kept: Whether the file of the work is kept, so that the work can be continued.
        log_format: The format of lines on standard error: `text` or `json`.

    Attributes:
        control: The control of the work.
    """

    def __init__(
        self,
        settings: CallSettings,
        *,
        format_resume: Callable[[Ended], str] | None = None,
        format_retry: Callable[[Ended], str] | None = None,
        is_kept: bool = True,
        log_format: str | None = None,
    ) -> None:
        self.control = Control()
        settings["control"], settings["on_event"] = self.control, self
        count = settings.get("concurrency", DEFAULT_CONCURRENCY)
        concurrency_flag = "" if count == DEFAULT_CONCURRENCY else f" {get_flag('concurrency')} {count}"
        self._format_resume = format_resume or (lambda ended: f"dialoom resume {ended.path}{concurrency_flag}")
        self._format_retry = format_retry or (
            lambda ended: f"{format_resume(ended)} --retry-failed" if format_resume else f"dialoom retry {ended.path}"
        )
        self._is_kept = is_kept
        self._is_json = log_format == "json"
        self._done = self._failed = self._total = 0
        self._action = ""
        self._judging: str | None = None
        self._results: list[Ended] = []
        self._worker_usage: Worked | None = None
        self._throttled: dict[str, int] = {}
        self._unreachable: set[str] = set()
        self._failures: Counter[tuple[str, str]] = Counter()
        self._run: RunReader | None = None
        self._started = self._shown = time.monotonic()
        self._console = SafeConsole(stderr=True)
        self._bar: ProgressDisplay | None = None
        self._log = _configure_logger(self._is_json)

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Notice(text):
                echo(text)
            case Planned():
                self._report_plan(event)
            case Retrying():
                _report_retry(event)
            case Started():
                self._begin(event)
            case ScenarioDone():
                self._done += 1
                self._update()
            case ScenarioFailed():
                self._failed += 1
                self._report_failed(event)
                self._update()
            case NodeMessage():
                self._log.info(event.text)
            case ProviderUnreachable():
                self._unreachable.add(event.provider)
                text = f"provider {event.provider} cannot be reached ({event.reason}): paused, next attempt in "
                text += f"{format_duration(event.pause)}, stopping after {format_duration(event.patience)}"
                self._report_provider(self._log.warning, event, "provider unavailable", text)
            case ProviderReachable():
                self._unreachable.discard(event.provider)
                text = f"provider {event.provider} is available again after {format_duration(event.seconds)}"
                self._report_provider(self._log.info, event, "provider available", text)
            case Stopping():
                self._log.warning("stopping", reason=_format_reason(event))
            case Worked():
                self._worker_usage = event
            case Ended():
                self._end(event)

    async def watch(self) -> None:
        """Show the progress every few seconds, even while nothing finishes, until this coroutine is cancelled."""
        while True:
            await asyncio.sleep(_REPORT_INTERVAL_SECONDS)
            if self._run is not None:
                self._report_throttled()
                self._update()

    def interrupt(self) -> None:
        """Handle Ctrl-C, as described at `Control`; the first time, print what happens now."""
        is_first = not self.control.is_draining
        self.control.interrupt()  # before printing, which fails if standard error is closed
        if is_first:
            self._log.warning(_DRAINING if self._action else _STOPPING_EARLY)

    def exit_code(self) -> int:
        """Return the exit code of the command."""
        if not self._results:
            return EXIT_STOPPED
        last = self._results[-1]
        if last.stopped is not None:
            return EXIT_SOME_FAILED if last.stopped.fault is None else EXIT_STOPPED
        if not last.is_complete:
            return EXIT_STOPPED
        has_failures = any(each.failed for each in self._results)
        if any(each.judging is None for each in self._results):  # the file of a trial run has been deleted already
            run = RunReader(last.path)
            has_failures = has_failures or bool(run.status().failed or run.check_errors())
        return EXIT_SOME_FAILED if has_failures else EXIT_DONE

    def _report_plan(self, event: Planned) -> None:
        casts = event.config.players
        for model in DEFAULT_MODELS:
            if offline := [
                role for role in event.config.speaking_models if any(cast[role].model == model for cast in casts)
            ]:
                echo(
                    f"{', '.join(offline)}: played by {model}, a scripted stand-in; --model [ROLE=]MODEL names another"
                )
        trials, users = event.config.trials, len(casts)
        factors = [f"{users} user models"] * (users > 1) + [f"{trials} trials each"] * (trials > 1)
        each = (
            f" ({', '.join([pluralize(event.scenarios // (trials * users), 'scenarios'), *factors])})"
            if factors
            else ""
        )
        echo(f"planned {pluralize(event.scenarios, event.config.units)}{each} in {event.path}")

    def _begin(self, event: Started) -> None:
        self._action = event.action if event.judging is None else f"{event.action} as {event.judging!r}"
        self._total, self._done, self._failed = event.scenarios, 0, 0
        self._started = self._shown = time.monotonic()
        self._run = RunReader(event.path)
        self._judging = event.judging or next((each.name for each in self._run.judgement_sets), None)
        if self._console.is_terminal and self._total and not self._is_json:
            self._bar = ProgressDisplay(self._action, self._total, self._console, self._notices)
            self._bar.start()

    def _end(self, event: Ended) -> None:
        """Print the last lines: what was done, and how to continue."""
        assert self._run is not None, "an operation that ends has begun"
        self._results.append(event)
        status, errors = self._run.status(), self._run.check_errors() if event.judging is None else []
        units, unparsed = self._run.config.units, self._unparsed(self._run)
        self.close()
        for (_, error), times in self._failures.items():  # each was printed once
            if times > 1 and not self._is_json:
                shown = error if len(error) <= _MAX_ERROR_CHARACTERS else error[:_MAX_ERROR_CHARACTERS] + "..."
                echo(f"the same error {pluralize(times - 1, 'more times')}: {shown}")
        self._failures.clear()
        echo(
            f"{event.done:,} done, {event.failed:,} failed in {time.monotonic() - self._started:,.1f} s "
            f"({status.done:,} of {status.total:,} {units} of the run are done)"
        )
        echo_lines(f"failed check: {each}" for each in errors)
        if unparsed:
            retry = f"; for new replies: dialoom retry {event.path} --unparsed --judging {self._judging!r}"
            echo(f"unparsed judgements, which have no score: {unparsed:,}{retry if self._is_kept else ''}")
        command = self._format_resume(event)
        if self._worker_usage is not None:
            echo(_format_busy(self._worker_usage))
            self._worker_usage = None
        if event.stopped is not None:
            echo(f"stopped: {_format_reason(event.stopped)}")
        if not self._is_kept:
            if event.failed or not event.is_complete:
                echo("without -o RUN nothing is saved; with it, the same command continues the work")
        elif event.stopped is not None:
            continuation = _format_continuation(event.stopped, command, self._format_retry(event))
            echo(f"recorded replies are kept. Continue with: {continuation}")
        elif not event.is_complete:
            echo(f"stopped early; nothing is lost. Continue with: {command}")
        elif event.failed:
            echo(f"retry what failed with: {self._format_retry(event)}")
        elif event.judging is None and status.failed:
            echo(f"{pluralize(status.failed, 'scenarios')} failed earlier; retry with: dialoom retry {event.path}")
        if event.is_complete and event.stopped is None and event.judging is None and status.pending:
            echo(
                f"{pluralize(status.pending, 'scenarios')} still pending; play the rest with: "
                f"dialoom resume {event.path}"
            )

    def close(self) -> None:
        """Remove the progress bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._run = None

    def _update(self) -> None:
        finished, now = self._done + self._failed, time.monotonic()
        is_due = now - self._shown >= _REPORT_INTERVAL_SECONDS
        if is_due:
            self._shown = now
        if self._bar is not None:
            self._bar.show(finished, self._figures() if is_due or finished == 1 else None)
        elif is_due:
            self._log_progress(finished)

    def _log_progress(self, finished: int) -> None:
        assert self._run is not None
        if not self._is_json:
            figures = " · ".join([*self._figures(), *self._notices()])
            self._log.info(self._action, scenarios=f"{finished:,}/{self._total:,}", figures=figures)
            return
        usage = self._run.status().usage
        in_flight = [
            {"role": each.role, "model": each.model, "seconds": round(each.age, 1)} for each in self.control.in_flight
        ]
        self._log.info(
            self._action,
            finished=finished,
            total=self._total,
            failed=self._failed,
            waiting_for=sorted(self._unreachable),
            unparsed=self._unparsed(self._run),
            calls=usage.calls,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=usage.cost,
            models={model: asdict(state) for model, state in self.control.limits.items()},
            **({"longest_call": in_flight[0]} if in_flight else {}),
        )

    def _report_failed(self, event: ScenarioFailed) -> None:
        """Report a failure. Each cause is printed once, and its count at the end; JSON output reports every failure."""
        cause = (str(event.fault), event.error)
        self._failures[cause] += 1
        if self._is_json or self._failures[cause] == 1:
            self._log.warning("scenario failed", scenario=event.id, fault=cause[0], error=event.error)

    def _report_provider(
        self, log: Callable[..., None], event: ProviderUnreachable | ProviderReachable, name: str, text: str
    ) -> None:
        if self._is_json:
            log(name, **asdict(event))
        else:
            log(text)

    def _report_throttled(self) -> None:
        """Report each model whose provider has rejected calls since the last report."""
        for model, state in self.control.limits.items():
            rejected = state.throttled - self._throttled.get(model, 0)
            self._throttled[model] = state.throttled
            if rejected:
                paused = {"paused": f"{state.paused:.0f} s"} if state.paused else {}
                self._log.warning("throttled", model=model, calls=rejected, limit=state.limit, **paused)

    def _figures(self) -> list[str]:
        assert self._run is not None
        return format_figures(
            self._done + self._failed,
            self._failed,
            self._total,
            self._unparsed(self._run),
            time.monotonic() - self._started,
            self._run.status().usage,
            self.control.limits,
        )

    def _unparsed(self, run: RunReader) -> int:
        return 0 if self._judging is None else run.unparsed(self._judging)

    def _notices(self) -> list[str]:
        """Return a line for each reason for waiting; the lines are shown below the bar or at the end of a log line."""
        slow = format_slow_calls(self.control.in_flight)
        return [
            *(f"waiting for {provider}" for provider in sorted(self._unreachable)),
            *format_pauses(self.control.limits),
            *([slow] if slow else []),
        ]


def prepare_watcher(
    settings_type: type[SettingsT], command: Mapping[str, Any], **options: Any
) -> tuple[SettingsT, Watcher]:
    """Return those settings of a command that its operation takes, and a display of the operation, added to them.

    Args:
        settings_type: The typed dictionary of the operation's settings.
        command: The command's settings.
        **options: The other arguments of `Watcher`.
    """
    settings = select_settings(settings_type, command)
    return settings, Watcher(settings, log_format=command["log_format"], **options)


def _format_reason(stopping: Stopping) -> str:
    """Return the reason for stopping, with flags in place of option names."""
    if stopping.setting is None:
        return stopping.reason
    return stopping.reason.replace(stopping.setting, get_flag(stopping.setting), 1)


def _format_continuation(stopping: Stopping, again: str, retry: str) -> str:
    """Return the command that continues work that was stopped."""
    match stopping.fault:
        case None:
            return f"{again} (to retry what failed: {retry})"
        case Fault.PROVIDER_AWAY:
            return again
        case Fault.PROVIDER_PERMANENT:
            return f"{again} (to retry what failed: {retry}); for other models or parameters, start a new run"
        case _:
            return f"{again} {get_flag(stopping.setting or '')} MORE"


def _format_busy(usage: Worked) -> str:
    shares = [f"{busy / usage.seconds:.0%}" if usage.seconds else "0%" for busy in sorted(usage.busy)]
    if len(shares) == 1:
        return f"1 worker, busy {shares[0]} of the time"
    return f"{len(shares):,} workers, busy {shares[0]} to {shares[-1]} of the time"


def _report_retry(event: Retrying) -> None:
    if event.failed is not None:
        echo(f"{event.failed:,} failed {'scenarios' if event.judging is None else 'judgings'} are retried")
        if event.too_long:
            echo(
                f"{event.too_long:,} stay failed, because a request exceeded the model's context window; if the "
                "window is larger now, state it with --context MODEL=N"
            )
    if event.anew is not None:
        echo(f"scenarios to be played again: {event.anew:,}; their judgements are deleted")
    if event.unparsed is not None:
        echo(
            f"scenarios with unparsed judgements in {event.judging!r}: {event.unparsed:,}; these judgements are "
            "repeated"
        )


def _configure_logger(as_json: bool) -> Any:
    """Return a logger to standard error: of plain lines, coloured only on a terminal, or of one JSON event per line."""
    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="iso" if as_json else "%H:%M:%S", utc=as_json),
            structlog.processors.add_log_level,
            # Values must not contain terminal control sequences.
            lambda _logger, _method, values: {
                key: sanitize(value) if isinstance(value, str) else value for key, value in values.items()
            },
            structlog.processors.JSONRenderer(serializer=lambda values, **_: format_safe_json(values))
            if as_json
            else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # The current standard error is used for each line, so that a progress bar can print lines above itself.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
    return structlog.get_logger()
