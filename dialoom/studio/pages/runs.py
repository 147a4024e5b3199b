"""The pages of all runs and of one run, with their progress, updated live while another process plays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nicegui import ui

from dialoom.errors import DialoomError
from dialoom.runs.control import RunProgress
from dialoom.runs.store import Status, Usage
from dialoom.settings import Budget
from dialoom.studio.background import ProgressMonitor
from dialoom.studio.components import badge, card, element, figure, link, table, table_row, text
from dialoom.studio.formatting import ABSENT, UNKNOWN, format_count, format_duration, format_money, format_short
from dialoom.studio.page import Page, View
from dialoom.studio.shell import show_error
from dialoom.studio.studio import StudioRun
from dialoom.text import pluralize

_UPDATE_SECONDS = 1.0
"""Seconds between updates of a browser; the file is read once for all browsers."""

Refresh = Callable[[RunProgress], None]
"""A function that updates a part of the page."""


async def build(view: View) -> None:
    """Build the page of all runs."""
    runs = [*view.studio.runs.values()]
    await asyncio.gather(*(run.monitor.read() for run in runs), return_exceptions=True)  # each card shows its own error
    text("h1", pluralize(len(runs), "runs"), "hidden-label")
    with element("div", "cards"):
        for run in runs:
            with card():
                try:
                    await _add_run(view, run)
                except DialoomError as error:
                    show_error(error)


async def _add_run(view: View, run: StudioRun) -> None:
    config = run.run.config
    with element("div", "section-head"):
        with element("h2"):
            link(run.name, view.url_for(RUN_PAGE.path, run=run.name))
        text("span", f"{config.recipe} · seed {config.seed}", "quiet small")
    refreshes = [_add_progress(config.units), _add_figures(run.monitor)]
    with element("div", "row-of small"):
        link("Scenarios", view.url_for("/runs/{run}/scenarios", run=run.name))
        link("Report", view.url_for("/runs/{run}/report", run=run.name))
    await _keep_updated(run, refreshes)


async def build_run(view: View) -> None:
    """Build the page of one run."""
    run = view.run
    progress, config = await run.monitor.read(), run.run.config
    with element("div", "section-head"):
        text("h1", run.name)
        text("span", f"{config.recipe} · seed {config.seed} · {run.run.path}", "quiet small said")
    with card():
        refreshes = [_add_progress(config.units), _add_figures(run.monitor)]
    refreshes += [
        _add_budget(progress.bounds.limits.budget),
        _add_usage_table(
            "Calls by role", "role", lambda progress: _collect_usage_by_role(progress.status, config.model_names)
        ),
        _add_usage_table("Calls by model", "model", lambda progress: progress.by_model),
        _add_causes(view),
    ]
    await _keep_updated(run, refreshes)


async def _keep_updated(run: StudioRun, refreshes: Sequence[Refresh]) -> None:
    """Fill the parts of the page now, and update them while it is open; below them, show why this has failed."""

    async def refresh_all() -> None:
        progress = await run.monitor.read()
        for refresh in refreshes:
            refresh(progress)

    async def update() -> None:
        message = ""
        try:
            await refresh_all()
        except DialoomError as error:
            message = f"The figures of {run.name} are not updated: {error}"
        if error_box.text != message:
            error_box.set_text(message)
            error_box.classes(replace="problem" if message else "")

    error_box = text("div", "", "", role="alert")
    await update()
    ui.timer(_UPDATE_SECONDS, update)


def _add_progress(units: str) -> Refresh:
    """Add a progress bar, and its figures as text. `units` is the noun for what the run plays, such as scenarios."""
    with element("div", "row-of"):
        state = badge("")
        done = text("span", "", "number")
        failed = text("span", "", "number quiet")
    with element("div", "meter", role="progressbar", aria_label="Scenarios done", aria_valuemin="0") as meter:
        bars = element("div"), element("div", "failed")

    def refresh(progress: RunProgress) -> None:
        status = progress.status
        label, kind = _describe_state(progress)
        state.set_text(label)
        state.classes(replace=f"badge {kind}")
        done.set_text(f"{status.done:,} of {status.total:,} {units} done")
        failed.set_text(f"{status.failed:,} failed" if status.failed else "")
        meter.props(f"aria-valuenow={status.done} aria-valuemax={status.total}")
        for bar, value in zip(bars, (status.done, status.failed), strict=True):
            bar.style(f"width: {100 * value / max(status.total, 1):.3f}%")

    return refresh


def _describe_state(progress: RunProgress) -> tuple[str, str]:
    """Return the run's state as a word, and the word's style."""
    if progress.is_played:
        return "playing" if progress.status.pending else "in use", "accent live"
    if progress.status.pending:
        return ("stopped", "warn") if progress.status.done or progress.status.failed else ("not begun", "")
    if progress.status.failed:
        return "done, some failed" if progress.status.done else "all failed", "bad"
    return "done", "good"


def _add_figures(monitor: ProgressMonitor) -> Refresh:
    """Add the most important figures."""
    with element("dl", "figures"):
        rate, left = figure("rate", "", "")
        in_flight, waiting = figure("in flight", "", "")
        cost, cost_rate = figure("cost", "", "")
        tokens, token_rate = figure("tokens", "", "")
        calls, troubles = figure("calls", "", "")
        (unparsed,) = figure("unparsed", "")

    def refresh(progress: RunProgress) -> None:
        usage, rates = progress.status.usage, monitor.rates
        rate.set_text(ABSENT if rates is None else f"{rates.scenarios * 60:,.1f}/min")
        left.set_text(_format_time_left(progress.status.pending, 0.0 if rates is None else rates.scenarios))
        in_flight.set_text(_format_in_flight(usage, progress))
        lost = f"{pluralize(usage.unanswered, 'calls')} lost" if usage.unanswered and not progress.is_played else ""
        waiting.set_text(
            f"{pluralize(progress.status.leased, 'scenarios')} in workers, not counted yet"
            if progress.status.leased
            else lost
        )
        cost.set_text(format_money(usage.cost))
        cost_rate.set_text("" if rates is None or rates.cost is None else f"{format_money(rates.cost * 3600)}/h")
        tokens.set_text(_format_tokens(usage))
        token_rate.set_text("" if rates is None or rates.tokens is None else f"{rates.tokens:,.0f}/s")
        calls.set_text(format_short(usage.calls))
        attempts = sum(each.attempts for each in progress.bounds.failed_attempts.values())
        troubles.set_text(f"{pluralize(attempts, 'attempts')} failed" if attempts else "")
        unparsed.set_text(f"{progress.unparsed:,}")

    return refresh


def _format_in_flight(usage: Usage, progress: RunProgress) -> str:
    if not progress.is_played:
        return ABSENT
    return UNKNOWN if progress.status.leased else f"{usage.unanswered:,}"


def _format_time_left(pending: int, rate: float) -> str:
    return f"{format_duration(pending / rate)} left" if pending and rate else ""


def _format_tokens(usage: Usage) -> str:
    if usage.input_tokens is None or usage.output_tokens is None:
        return UNKNOWN
    return format_short(usage.input_tokens + usage.output_tokens)


def _add_budget(budget: Budget) -> Refresh:
    """Add the used part of each bound of the budget; without bounds, add nothing."""
    if not budget.is_bounded:
        return lambda _progress: None
    limits = {"calls": budget.max_calls, "tokens": budget.max_tokens, "cost": budget.max_cost}
    bounds = {name: float(value) for name, value in limits.items() if value is not None}
    shown = []
    with card("Budget"), element("div", "stack"):
        for _ in bounds:
            with element("div"):
                label = text("div", "", "number small")
                with element("div", "meter") as meter:
                    bar = element("div")
            shown.append((label, meter, bar))

    def refresh(progress: RunProgress) -> None:
        spend: Any = progress.bounds.spend
        for (name, bound), (label, meter, bar) in zip(bounds.items(), shown, strict=True):
            value = float(getattr(spend, name))
            label.set_text(
                f"{format_money(value)} of {format_money(bound)}"
                if name == "cost"
                else f"{value:,.0f} of {bound:,.0f} {name}"
            )
            meter.classes(replace="meter over" if value >= bound else "meter")
            bar.style(f"width: {min(100.0, 100 * value / bound) if bound else 100:.3f}%")

    return refresh


_COLUMNS = (
    "calls",
    "in flight",
    "failed",
    "replayed",
    "input tokens",
    "cached",
    "output tokens",
    "cost",
    "incomplete replies",
)


def _add_usage_table(title: str, heading: str, read: Callable[[RunProgress], Mapping[str, Usage]]) -> Refresh:
    """Add a table of usage with a row for each name; rows of later names are added when they appear."""
    rows: dict[str, list[Any]] = {}
    with element("section"):
        with element("div", "section-head"):
            text("h2", title)
        with table([(heading, False), *((name, name != "incomplete replies") for name in _COLUMNS)], title) as body:
            pass

    def refresh(progress: RunProgress) -> None:
        for name, usage in read(progress).items():
            if name not in rows:
                with body:
                    rows[name] = table_row(
                        [(name, False), *(("", column != "incomplete replies") for column in _COLUMNS)]
                    )
            for cell, message in zip(rows[name][1:], _format_usage(usage, progress), strict=True):
                cell.set_text(message)

    return refresh


def _collect_usage_by_role(status: Status, roles: Iterable[str]) -> dict[str, Usage]:
    """Return the usage of each role, called or not, and of each later set of judgements."""
    usages = {role: status.by_role.get(role, Usage()) for role in roles}
    return usages | dict(status.by_role) | {f"judging {name}": usage for name, usage in status.by_judging.items()}


def _format_usage(usage: Usage, progress: RunProgress) -> list[str]:
    return [
        format_count(usage.calls),
        _format_in_flight(usage, progress),
        format_count(usage.failed),
        format_count(usage.replays),
        format_count(usage.input_tokens),
        format_count(usage.cached_tokens),
        format_count(usage.output_tokens),
        format_money(usage.cost),
        ", ".join(f"{number:,} {heading}" for heading, number in usage.broken_off.items()),
    ]


def _add_causes(view: View) -> Refresh:
    """Add the causes of failures, updated live, with an example of each."""
    section = element("section")
    shown: list[Any] = []

    def refresh(progress: RunProgress) -> None:
        if shown == [progress.causes]:
            return
        shown[:] = [progress.causes]
        section.clear()
        if not progress.causes:
            return
        with section:
            with element("div", "section-head"):
                text("h2", "Failures")
            with table(
                [("scenarios", True), ("fault", False), ("cause of failure", False), ("first", False)], "Failures"
            ):
                for cause in progress.causes:
                    with element("tr"):
                        text("td", f"{cause.scenarios:,}", "number")
                        text("td", cause.fault or "", "nowrap")
                        text("td", cause.error[:400], "said")
                        with element("td", "nowrap"):
                            target = "/runs/{run}/scenarios/{scenario}"
                            link(f"number {cause.first + 1:,}", view.url_for(target, scenario=cause.first + 1))

    return refresh


PAGE = Page("/", "Runs", "studio", build)
RUN_PAGE = Page("/runs/{run}", "Progress", "run", build_run, is_wide=False)
