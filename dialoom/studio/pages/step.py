"""One conversation step by step: inspect, go back, edit, play on, compare, and make the result the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from dialoom.errors import DialoomError
from dialoom.roles.gateway.secrets import redacted
from dialoom.runs.errors import Fault, fault_of
from dialoom.runs.report.health import Health
from dialoom.runs.stepping import Difference
from dialoom.runs.stepping.stop import label
from dialoom.runs.store import OWN_JUDGEMENTS
from dialoom.runs.store.connections import signature
from dialoom.studio import acting, stops
from dialoom.studio.acting import Action, Spot, Work
from dialoom.studio.forms import Field, Forms, entered, promoting
from dialoom.studio.labelling import hides_scores, score_lines
from dialoom.studio.looking import Looked, checked, compared, looked, number_before, number_where, saved
from dialoom.studio.page import Page, View
from dialoom.studio.parts import button, card, element, folded, text
from dialoom.studio.shell import problem
from dialoom.studio.wording import list_parameters
from dialoom.text import counted

from .conversation import STEP_PATH as PATH
from .conversation import fault_line

_CONDITION = 2_000
"""Maximum length of a condition in characters, because the address contains it."""
_POLL = 2.0
"""Seconds between checks whether another process has continued the conversation."""
_REFOCUS = """
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
        self.place = Spot(view.one("branch") or "main", view.number("at", 0) if view.one("at") else None)
        self.compare = view.one("with")
        self.breaks = tuple(dict.fromkeys(each for each in view.query.get("break", ()) if each.strip()))
        self._work: Work | None = None
        self._turn = asyncio.Lock()
        self._is_acting = False
        self.drafts: dict[str, str] = {}
        self._seen: Any = None
        self._at: int | None = None
        self._stamp: Any = signature(self.run.path)
        self._is_closed = False

    async def build(self) -> None:
        """Build the page, and update it when the conversation changes."""
        if self.place.number is None and self.view.one("before"):
            number = await number_before(self.run, self.view.scenario, self.place.branch, self.view.number("before", 0))
            self.place = Spot(self.place.branch, number)
        seen = await looked(self.run, self.view.scenario, self.place)
        ui.add_head_html(f"<script>{_REFOCUS}</script>")
        self._content = element("div", "stepping")
        self._status = element("div", "stack status", aria_live="polite")
        self._show(seen, *await self._beside(seen))
        ui.timer(_POLL, self._poll)

    async def go(self, place: Spot, compare: str | None = None) -> None:
        """Go to another position."""
        self.place = place
        self.compare = self.compare if compare is None else compare
        with self._status:  # the clicked element may no longer exist, but the status line does
            ui.navigate.history.replace(self.address(place.number))
        await self._look()

    def address(self, number: int | None, branch: str | None = None, compare: str | None = None) -> str:
        """Return the address of a position in this conversation."""
        at = "" if number is None else str(number)
        other = self.compare if compare is None else compare
        stands = {"branch": branch or self.place.branch, "at": at, "with": other, "break": self.breaks}
        return self.view.path(PATH, {**list_parameters(self.view), **stands})

    async def act(self, make: Callable[[], Action], place: Spot | None = None, used: Sequence[Field] = ()) -> None:
        """Carry out an action, and show the position afterwards; further clicks in the meantime have no effect.

        Args:
            make: Returns the action.
            place: The position from which it starts; by default the displayed one.
            used: The fields whose texts the action uses; the others keep what was typed if the position stays the same.
        """
        if self._is_acting:
            return
        self._is_acting = True
        try:
            async with self._turn:
                await self._act(make, place, used)
        finally:
            self._is_acting = False

    async def _act(self, make: Callable[[], Action], place: Spot | None, used: Sequence[Field]) -> None:
        self._status.clear()
        try:
            self._work = Work(self.run, self.view.scenario, place or self.place, make())
            self._show_working()
            target = await self._work.done()
        except asyncio.CancelledError:
            await self._look("Cancelled; recorded replies are kept.")
        except DialoomError as error:
            self._show_error(error)
        except Exception as error:  # a node of an unfinished recipe may raise any error
            unexpected = f"unexpected {type(error).__name__}: " if fault_of(error) is Fault.BUG else ""
            self._show_error(DialoomError(redacted(f"{unexpected}{error}")))
        else:
            for field in used:
                field.drop()
            await self.go(target)
        finally:
            self._work = None

    def _show_working(self) -> None:
        with self._status, element("div", "row-of card working"):
            shown = text("span", "Playing …", "badge live accent")
            button("Stop", self._stop, "button")
            work = self._work

            def refresh() -> None:
                if work is not None and work.passed:
                    shown.set_text(f"Playing … {counted(work.passed, 'steps')}")

            ui.timer(0.3, refresh)

    def _stop(self) -> None:
        if self._work is not None:
            self._work.stop()

    def _show_error(self, error: DialoomError) -> None:
        self._status.clear()
        with self._status:
            problem(error)

    async def _look(self, note: str = "") -> None:
        self._status.clear()
        try:
            seen = await looked(self.run, self.view.scenario, self.place)
            beside = await self._beside(seen)
        except DialoomError as error:
            self._show_error(error)
            return
        if note:
            with self._status:
                text("div", note, "card quiet")
        self._show(seen, *beside)

    async def _poll(self) -> None:
        """Update the page if another process has changed the conversation, unless the person has typed something."""
        stamp, place = signature(self.run.path), self.place
        if self._turn.locked() or (stamp == self._stamp and not self._is_closed):
            return
        try:
            seen = await looked(self.run, self.view.scenario, place)
            is_new = _signature(seen) != self._seen
            beside = await self._beside(seen) if is_new else None
        except DialoomError:
            return
        if self._turn.locked() or place != self.place:
            return
        self._stamp = stamp
        if beside is None:
            return
        if not self.drafts:
            self._show(seen, *beside)
            return
        self._seen = _signature(seen)
        self._status.clear()
        with self._status, element("div", "row-of card"):
            change = seen.closed or "Another process has changed this conversation."
            text("span", f"{change} The fields keep what you have typed.")
            button("Show the change", self._again)

    async def _again(self) -> None:
        async with self._turn:
            await self._look()

    async def _beside(self, seen: Looked) -> tuple[Mapping[str, Health], Difference | DialoomError | None]:
        """Return what is shown beside a position: the health of the judge, and the comparison with another branch."""
        return ({}, None) if seen.stop is None else (await self._judge_health(), await self._comparison())

    def _show(self, seen: Looked, health: Mapping[str, Health], comparison: Difference | DialoomError | None) -> None:
        """Build the content anew, without awaiting: a browser must not get buttons while their clicks are ignored."""
        self._seen, self._is_closed = _signature(seen), bool(seen.closed)
        at = None if seen.stop is None else seen.stop.number
        if at != self._at:
            self._at = at
            self.drafts.clear()
        self._content.clear()
        with self._content:
            if seen.closed:
                text("div", seen.closed, "card closed").props('role="status"')
            if seen.stop is None:
                self._not_begun(seen)
                return
            with element("div", "step-grid"):
                with element("div", "stack stop"):
                    self._moves(seen)
                    self._places(seen)
                    self._compared(seen, comparison, health)
                    self._stop_card(seen, health)
                    if not seen.closed:
                        Forms(self, seen).build()
                with element("div", "beside", aria_label="The tree and the branches", role="region"):
                    with card("The tree of checkpoints"):
                        at, line = seen.stop.number, seen.line
                        stops.checkpoint_tree(seen.history, at, line, lambda each: label(each.stop), self.address)
                    self._branches(seen)
            ui.run_javascript("dialoomRefocus()")

    async def _judge_health(self) -> Mapping[str, Health]:
        """Return the health of the run's own judge, whose scores the branches have."""
        is_judged = any(each.name == OWN_JUDGEMENTS for each in self.run.judgement_sets)
        return await self.view.run.judge_health(OWN_JUDGEMENTS) if is_judged else {}

    def _not_begun(self, seen: Looked) -> None:
        with card("No steps yet"):
            explanation = "“Begin” calls no model; the lines of an imported conversation become its steps."
            text("p", f"The file contains no steps of this conversation yet. {explanation}", "quiet")
            if not seen.closed:
                button("Begin", lambda: self.act(acting.begin, Spot()), "button primary")

    def _branches(self, seen: Looked) -> None:
        with card("Branches"), element("ul", "branches"):
            for each, stop in seen.branches:
                with element("li"):
                    with element("div", "row-of"):
                        link = ui.link(each.name, self.address(None, each.name))
                        if each.name == self.place.branch:
                            link.props('aria-current="true"')
                        if each.name == seen.outcome_branch:
                            text("span", "the outcome", "badge good")
                        text("span", f"step {stop.number}{' (end)' if stop.is_end else ''}", "quiet small push")
                    parts = [f"{role}: {model}" for role, model in each.models.items()]
                    parts += [f"from {each.origin}"] if each.origin else []
                    parts += [f"sample {each.sample}"] if each.sample else []
                    if parts:
                        text("div", ", ".join(parts), "quiet small said")
                    if each.name != self.place.branch:
                        target = self.address(self.place.number, compare=each.name)
                        ui.link(f"Compare {self.place.branch} with this branch", target).classes("small")

    def _moves(self, seen: Looked) -> None:
        """Add the buttons that go back and forward without playing, and those that play the next step or to the end."""
        with element("div", "row-of moves", role="toolbar", aria_label="Moves"):
            for words, number in (("← Back", seen.neighbour(-1)), ("Forward →", seen.neighbour(1))):
                if number is None:
                    text("span", words, "button", aria_disabled="true")
                else:
                    ui.link(words, self.address(number)).classes("button")
            if seen.closed or seen.stop is None or seen.stop.is_end:
                return
            button("Next step", lambda: self.act(acting.go_on), "button primary")
            words = "Play to a breakpoint" if self.breaks else "Play to the end"
            button(words, lambda: self.act(lambda: acting.play_on(*self.breaks)))

    def _places(self, seen: Looked) -> None:
        """Add the form for a condition: go to the first match, play until it is met, or set a breakpoint."""
        with element("div", "row-of moves", role="toolbar", aria_label="Places"):
            place = Field(
                "Where",
                hint="turn 3, a role, a node, an expression",
                classes="field inline",
                most=_CONDITION,
                drafts=self.drafts,
            )
            button("Go there", lambda: self._go_where(place))
            if not seen.closed and seen.stop is not None and not seen.stop.is_end:
                entered(place, lambda: self.act(lambda: acting.play_on(place.value, *self.breaks)))
                button("Play until there", lambda: self.act(lambda: acting.play_on(place.value, *self.breaks)))
            else:
                entered(place, lambda: self._go_where(place))
            if not seen.closed:
                button("Break there", lambda: self._break(place))
            for number, each in enumerate(self.breaks, start=1):
                with element("span", "chip"):
                    text("span", f"breakpoint: {each}")
                    button("×", partial(self._clear, each), "bare", aria_label=f"Clear breakpoint {number}")

    async def _go_where(self, place: Field) -> None:
        async with self._turn:
            try:
                number = await number_where(self.run, self.view.scenario, self.place.branch, place.value)
            except DialoomError as error:
                self._show_error(error)
            else:
                await self.go(Spot(self.place.branch, number))

    async def _break(self, place: Field) -> None:
        """Set a breakpoint, which is stored in the address and applies to all further steps."""
        async with self._turn:
            try:
                where = place.value
                await checked(self.run, self.view.scenario, where)
            except DialoomError as error:
                self._show_error(error)
            else:
                self.breaks = tuple(dict.fromkeys((*self.breaks, where.strip())))
                place.drop()
                await self.go(self.place)

    async def _clear(self, each: str) -> None:
        async with self._turn:
            self.breaks = tuple(one for one in self.breaks if one != each)
            await self.go(self.place)

    def _stop_card(self, seen: Looked, health: Mapping[str, Health]) -> None:
        assert seen.stop is not None
        with card(classes="stack"):
            stops.heading(seen.stop)
            stops.calls(seen.stop, seen.parsed)
            stops.changed(seen.stop.changes)
            stops.states(seen.stop.state)
            if seen.outcome is not None and seen.outcome.judgements and seen.stop.is_end:
                with folded(counted(len(seen.outcome.judgements), "judgements"), is_open=True):
                    for judgement in seen.outcome.judgements:
                        with element("div", "judgement"):
                            score_lines(judgement, health)
            with element("div", "stack so-far"):
                text("h2", "The conversation")
                stops.transcript(seen.stop.transcript)
                for fault in seen.stop.faults:
                    fault_line(fault)

    async def _comparison(self) -> Difference | DialoomError | None:
        """Return the comparison with the other branch, or the error if that branch cannot be read."""
        if not self.compare or self.compare == self.place.branch:
            return None
        try:
            return await compared(self.run, self.view.scenario, self.compare, self.place.branch)
        except DialoomError as error:
            return error

    def _compared(self, seen: Looked, found: Difference | DialoomError | None, health: Mapping[str, Health]) -> None:
        if isinstance(found, DialoomError):
            problem(found)
        elif found is not None:
            with card("Side by side", "stack"):
                stops.difference(found, health, None if seen.closed else partial(self._side, seen, found))
                ui.link("Close", self.address(self.place.number, compare="")).classes("small")

    def _side(self, seen: Looked, found: Difference, place: int) -> None:
        """Add the actions for a side of a comparison: a branch that has ended can become the outcome."""
        branch, (_, is_end) = found.names[place], found.stands[place]
        if branch == seen.outcome_branch:
            text("span", "the outcome", "badge good")
        elif is_end:
            promoting(branch, seen.outcome_branch, partial(self._promote, branch, found.names[1 - place]))

    async def _promote(self, branch: str, other: str) -> None:
        """Make a side of the comparison the outcome, and keep showing the comparison."""
        self.compare = other
        await self.act(acting.promote, Spot(branch))

    async def save(self) -> None:
        """Download this branch as a case that can be replayed."""
        try:
            case = await saved(self.run, self.view.scenario, self.place)
        except DialoomError as error:
            self._show_error(error)
            return
        with self._status:
            ui.download.content(case, f"{self.view.scenario}-{self.place.branch}.json")


def _signature(seen: Looked) -> Any:
    """Return a value that changes whenever the conversation was changed elsewhere."""
    return (
        tuple(each.number for each in seen.history),
        tuple((each.name, stop.number, each.sample) for each, stop in seen.branches),
        seen.outcome_branch,
        seen.closed,
    )


async def build(view: View) -> None:
    """Build the page."""
    if not hides_scores(view):
        await StepPage(view).build()


PAGE = Page(PATH, "Step", "scenario", build, is_wide=True)
