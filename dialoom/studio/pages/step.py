"""One conversation step by step: inspect, go back, edit, play on, compare, and make the result the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from dialoom.errors import DialoomError
from dialoom.roles.gateway.secrets import redact
from dialoom.runs.errors import Fault, fault_of
from dialoom.runs.report.health import Health
from dialoom.runs.stepping import Difference
from dialoom.runs.stepping.stop import format_label
from dialoom.runs.store import OWN_JUDGEMENTS
from dialoom.runs.store.connections import signature
from dialoom.studio import actions, stops
from dialoom.studio.actions import Action, Position, RunningAction
from dialoom.studio.components import button, card, details, element, text
from dialoom.studio.forms import Field, Forms, on_enter, promote_form
from dialoom.studio.labelling import add_judgement, show_hidden_scores_notice
from dialoom.studio.page import Page, View
from dialoom.studio.queries import get_navigation_query
from dialoom.studio.shell import show_error
from dialoom.studio.step_data import (
    StepData,
    check_condition,
    compare_branches,
    export_case,
    find_checkpoint,
    find_step_start,
    load_step_data,
)
from dialoom.text import pluralize

from .conversation import STEP_PATH as PATH
from .conversation import add_fault

_MAX_CONDITION_CHARACTERS = 2_000
"""Maximum length of a condition in characters, because the address contains it."""
_POLL_SECONDS = 2.0
"""Seconds between checks whether another process has continued the conversation."""
_REFOCUS_SCRIPT = """
(() => {
  const nameOf = (each) => each.labels?.[0]?.textContent ?? each.ariaLabel ?? each.textContent;
  let last = null, name = "";
  document.addEventListener("focusin", ({target}) => { last = target; name = nameOf(target); });
  window.dialoomRefocus = () => {
    if (!last || last.isConnected) return;
    const all = [...document.querySelectorAll(".stepping :is(a[href], button, input, select, textarea, summary)")];
    const same = all.find((each) => each.localName === last.localName && nameOf(each) === name);
    for (const each of [all.find((each) => each.closest(".moves")), same]) each?.focus({preventScroll: true});
  };
})();
"""
"""A script that focuses the button or field with the name of the one that an update has replaced, or the first move."""


class StepPage:
    """The page of one browser. The address contains its position, and the run's file the played steps."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.run = view.run.run
        self.position = Position(view.get("branch") or "main", view.number("at", 0) if view.get("at") else None)
        self.compare = view.get("with")
        self.breakpoints = tuple(dict.fromkeys(each for each in view.query.get("break", ()) if each.strip()))
        self._action: RunningAction | None = None
        self._lock = asyncio.Lock()
        self._is_acting = False
        self.drafts: dict[str, str] = {}
        self._fingerprint: Any = None
        self._shown_number: int | None = None
        self._file_signature: Any = signature(self.run.path)
        self._is_read_only = False

    async def build(self) -> None:
        """Build the page, and update it when the conversation changes."""
        if self.position.number is None and self.view.get("before"):
            number = await find_step_start(
                self.run, self.view.scenario, self.position.branch, self.view.number("before", 0)
            )
            self.position = Position(self.position.branch, number)
        data = await load_step_data(self.run, self.view.scenario, self.position)
        ui.add_head_html(f"<script>{_REFOCUS_SCRIPT}</script>")
        self._content = element("div", "stepping")
        self._status = element("div", "stack status", aria_live="polite")
        self._render(data, *await self._load_additions(data))
        ui.timer(_POLL_SECONDS, self._poll)

    async def go_to(self, position: Position, compare: str | None = None) -> None:
        """Go to another position."""
        self.position = position
        self.compare = self.compare if compare is None else compare
        with self._status:  # the clicked element may no longer exist, but the status line does
            ui.navigate.history.replace(self.url(position.number))
        await self._reload()

    def url(self, number: int | None, branch: str | None = None, compare: str | None = None) -> str:
        """Return the address of a position in this conversation."""
        at = "" if number is None else str(number)
        other = self.compare if compare is None else compare
        parameters = {"branch": branch or self.position.branch, "at": at, "with": other, "break": self.breakpoints}
        return self.view.url_for(PATH, {**get_navigation_query(self.view), **parameters})

    async def act(
        self, make: Callable[[], Action], position: Position | None = None, used: Sequence[Field] = ()
    ) -> None:
        """Carry out an action, and show the position afterwards; further clicks in the meantime have no effect.

        Args:
            make: Returns the action.
            position: The position from which it starts; by default the displayed one.
            used: The fields whose texts the action uses; the others keep what was typed if the position stays the same.
        """
        if self._is_acting:
            return
        self._is_acting = True
        try:
            async with self._lock:
                await self._act(make, position, used)
        finally:
            self._is_acting = False

    async def _act(self, make: Callable[[], Action], position: Position | None, used: Sequence[Field]) -> None:
        self._status.clear()
        try:
            self._action = RunningAction(self.run, self.view.scenario, position or self.position, make())
            self._show_working()
            target = await self._action.execute()
        except asyncio.CancelledError:
            await self._reload("Cancelled; recorded replies are kept.")
        except DialoomError as error:
            self._show_error(error)
        except Exception as error:  # a node of an unfinished recipe may raise any error
            unexpected = f"unexpected {type(error).__name__}: " if fault_of(error) is Fault.BUG else ""
            self._show_error(DialoomError(redact(f"{unexpected}{error}")))
        else:
            for field in used:
                field.discard_draft()
            await self.go_to(target)
        finally:
            self._action = None

    def _show_working(self) -> None:
        with self._status, element("div", "row-of card working"):
            shown = text("span", "Playing …", "badge live accent")
            button("Stop", self._stop, "button")
            action = self._action

            def refresh() -> None:
                if action is not None and action.passed_stops:
                    shown.set_text(f"Playing … {pluralize(action.passed_stops, 'steps')}")

            ui.timer(0.3, refresh)

    def _stop(self) -> None:
        if self._action is not None:
            self._action.cancel()

    def _show_error(self, error: DialoomError) -> None:
        self._status.clear()
        with self._status:
            show_error(error)

    async def _reload(self, note: str = "") -> None:
        self._status.clear()
        try:
            data = await load_step_data(self.run, self.view.scenario, self.position)
            additions = await self._load_additions(data)
        except DialoomError as error:
            self._show_error(error)
            return
        if note:
            with self._status:
                text("div", note, "card quiet")
        self._render(data, *additions)

    async def _poll(self) -> None:
        """Update the page if another process has changed the conversation, unless the person has typed something."""
        file_signature, position = signature(self.run.path), self.position
        if self._lock.locked() or (file_signature == self._file_signature and not self._is_read_only):
            return
        try:
            data = await load_step_data(self.run, self.view.scenario, position)
            is_new = _compute_fingerprint(data) != self._fingerprint
            additions = await self._load_additions(data) if is_new else None
        except DialoomError:
            return
        if self._lock.locked() or position != self.position:
            return
        self._file_signature = file_signature
        if additions is None:
            return
        if not self.drafts:
            self._render(data, *additions)
            return
        self._fingerprint = _compute_fingerprint(data)
        self._status.clear()
        with self._status, element("div", "row-of card"):
            change = data.read_only_reason or "Another process has changed this conversation."
            text("span", f"{change} The fields keep what you have typed.")
            button("Show the change", self._show_change)

    async def _show_change(self) -> None:
        async with self._lock:
            await self._reload()

    async def _load_additions(self, data: StepData) -> tuple[Mapping[str, Health], Difference | DialoomError | None]:
        """Return what is shown beside a position: the health of the judge, and the comparison with another branch."""
        return ({}, None) if data.stop is None else (await self._judge_health(), await self._load_comparison())

    def _render(
        self, data: StepData, health: Mapping[str, Health], comparison: Difference | DialoomError | None
    ) -> None:
        """Rebuild the content without awaiting: a browser must not get buttons while their clicks are ignored."""
        self._fingerprint, self._is_read_only = _compute_fingerprint(data), bool(data.read_only_reason)
        at = None if data.stop is None else data.stop.number
        if at != self._shown_number:
            self._shown_number = at
            self.drafts.clear()
        self._content.clear()
        with self._content:
            if data.read_only_reason:
                text("div", data.read_only_reason, "card closed").props('role="status"')
            if data.stop is None:
                self._add_begin_card(data)
                return
            with element("div", "step-grid"):
                with element("div", "stack stop"):
                    self._add_moves(data)
                    self._add_condition_form(data)
                    self._add_comparison(data, comparison, health)
                    self._add_stop_card(data, health)
                    if not data.read_only_reason:
                        Forms(self, data).build()
                with element("div", "beside", aria_label="The tree and the branches", role="region"):
                    with card("The tree of checkpoints"):
                        at, line = data.stop.number, data.branch_checkpoints
                        stops.add_checkpoint_tree(
                            data.history, at, line, lambda each: format_label(each.stop), self.url
                        )
                    self._add_branches(data)
            ui.run_javascript("dialoomRefocus()")

    async def _judge_health(self) -> Mapping[str, Health]:
        """Return the health of the run's own judge, whose scores the branches have."""
        is_judged = any(each.name == OWN_JUDGEMENTS for each in self.run.judgement_sets)
        return await self.view.run.judge_health(OWN_JUDGEMENTS) if is_judged else {}

    def _add_begin_card(self, data: StepData) -> None:
        with card("No steps yet"):
            explanation = "“Begin” calls no model; the lines of an imported conversation become its steps."
            text("p", f"The file contains no steps of this conversation yet. {explanation}", "quiet")
            if not data.read_only_reason:
                button("Begin", lambda: self.act(actions.begin, Position()), "button primary")

    def _add_branches(self, data: StepData) -> None:
        with card("Branches"), element("ul", "branches"):
            for each, stop in data.branches:
                with element("li"):
                    with element("div", "row-of"):
                        link = ui.link(each.name, self.url(None, each.name))
                        if each.name == self.position.branch:
                            link.props('aria-current="true"')
                        if each.name == data.outcome_branch:
                            text("span", "the outcome", "badge good")
                        text("span", f"step {stop.number}{' (end)' if stop.is_end else ''}", "quiet small push")
                    parts = [f"{role}: {model}" for role, model in each.models.items()]
                    parts += [f"from {each.origin}"] if each.origin else []
                    parts += [f"sample {each.sample}"] if each.sample else []
                    if parts:
                        text("div", ", ".join(parts), "quiet small said")
                    if each.name != self.position.branch:
                        target = self.url(self.position.number, compare=each.name)
                        ui.link(f"Compare {self.position.branch} with this branch", target).classes("small")

    def _add_moves(self, data: StepData) -> None:
        """Add the buttons that go back and forward without playing, and those that play the next step or to the end."""
        with element("div", "row-of moves", role="toolbar", aria_label="Moves"):
            for words, number in (("← Back", data.find_neighbour(-1)), ("Forward →", data.find_neighbour(1))):
                if number is None:
                    text("span", words, "button", aria_disabled="true")
                else:
                    ui.link(words, self.url(number)).classes("button")
            if data.read_only_reason or data.stop is None or data.stop.is_end:
                return
            button("Next step", lambda: self.act(actions.step_forward), "button primary")
            words = "Play to a breakpoint" if self.breakpoints else "Play to the end"
            button(words, lambda: self.act(lambda: actions.play_until(*self.breakpoints)))

    def _add_condition_form(self, data: StepData) -> None:
        """Add the form for a condition: go to the first match, play until it is met, or set a breakpoint."""
        with element("div", "row-of moves", role="toolbar", aria_label="Places"):
            field = Field(
                "Where",
                placeholder="turn 3, a role, a node, an expression",
                classes="field inline",
                max_characters=_MAX_CONDITION_CHARACTERS,
                drafts=self.drafts,
            )
            button("Go there", lambda: self._go_to_condition(field))
            if not data.read_only_reason and data.stop is not None and not data.stop.is_end:
                on_enter(field, lambda: self.act(lambda: actions.play_until(field.value, *self.breakpoints)))
                button("Play until there", lambda: self.act(lambda: actions.play_until(field.value, *self.breakpoints)))
            else:
                on_enter(field, lambda: self._go_to_condition(field))
            if not data.read_only_reason:
                button("Break there", lambda: self._add_breakpoint(field))
            for number, each in enumerate(self.breakpoints, start=1):
                with element("span", "chip"):
                    text("span", f"breakpoint: {each}")
                    button("×", partial(self._remove_breakpoint, each), "bare", aria_label=f"Clear breakpoint {number}")

    async def _go_to_condition(self, field: Field) -> None:
        async with self._lock:
            try:
                number = await find_checkpoint(self.run, self.view.scenario, self.position.branch, field.value)
            except DialoomError as error:
                self._show_error(error)
            else:
                await self.go_to(Position(self.position.branch, number))

    async def _add_breakpoint(self, field: Field) -> None:
        """Set a breakpoint, which is stored in the address and applies to all further steps."""
        async with self._lock:
            try:
                condition = field.value
                await check_condition(self.run, self.view.scenario, condition)
            except DialoomError as error:
                self._show_error(error)
            else:
                self.breakpoints = tuple(dict.fromkeys((*self.breakpoints, condition.strip())))
                field.discard_draft()
                await self.go_to(self.position)

    async def _remove_breakpoint(self, condition: str) -> None:
        async with self._lock:
            self.breakpoints = tuple(each for each in self.breakpoints if each != condition)
            await self.go_to(self.position)

    def _add_stop_card(self, data: StepData, health: Mapping[str, Health]) -> None:
        assert data.stop is not None
        with card(classes="stack"):
            stops.add_heading(data.stop)
            stops.add_calls(data.stop, data.parsed_replies)
            stops.add_changes(data.stop.changes)
            stops.add_states(data.stop.state)
            if data.outcome is not None and data.outcome.judgements and data.stop.is_end:
                with details(pluralize(len(data.outcome.judgements), "judgements"), is_open=True):
                    for judgement in data.outcome.judgements:
                        with element("div", "judgement"):
                            add_judgement(judgement, health)
            with element("div", "stack so-far"):
                text("h2", "The conversation")
                stops.add_transcript(data.stop.transcript)
                for fault in data.stop.faults:
                    add_fault(fault)

    async def _load_comparison(self) -> Difference | DialoomError | None:
        """Return the comparison with the other branch, or the error if that branch cannot be read."""
        if not self.compare or self.compare == self.position.branch:
            return None
        try:
            return await compare_branches(self.run, self.view.scenario, self.compare, self.position.branch)
        except DialoomError as error:
            return error

    def _add_comparison(
        self, data: StepData, comparison: Difference | DialoomError | None, health: Mapping[str, Health]
    ) -> None:
        if isinstance(comparison, DialoomError):
            show_error(comparison)
        elif comparison is not None:
            with card("Side by side", "stack"):
                stops.add_comparison(
                    comparison,
                    health,
                    None if data.read_only_reason else partial(self._add_side_actions, data, comparison),
                )
                ui.link("Close", self.url(self.position.number, compare="")).classes("small")

    def _add_side_actions(self, data: StepData, comparison: Difference, side: int) -> None:
        """Add the actions for a side of a comparison: a branch that has ended can become the outcome."""
        branch, (_, is_end) = comparison.names[side], comparison.positions[side]
        if branch == data.outcome_branch:
            text("span", "the outcome", "badge good")
        elif is_end:
            promote_form(branch, data.outcome_branch, partial(self._promote, branch, comparison.names[1 - side]))

    async def _promote(self, branch: str, other: str) -> None:
        """Make a side of the comparison the outcome, and keep showing the comparison."""
        self.compare = other
        await self.act(actions.promote, Position(branch))

    async def save_case(self) -> None:
        """Download this branch as a case that can be replayed."""
        try:
            case = await export_case(self.run, self.view.scenario, self.position)
        except DialoomError as error:
            self._show_error(error)
            return
        with self._status:
            ui.download.content(case, f"{self.view.scenario}-{self.position.branch}.json")


def _compute_fingerprint(data: StepData) -> Any:
    """Return a value that changes whenever the conversation was changed elsewhere."""
    return (
        tuple(each.number for each in data.history),
        tuple((each.name, stop.number, each.sample) for each, stop in data.branches),
        data.outcome_branch,
        data.read_only_reason,
    )


async def build(view: View) -> None:
    """Build the page."""
    if not show_hidden_scores_notice(view):
        await StepPage(view).build()


PAGE = Page(PATH, "Step", "scenario", build, is_wide=True)
