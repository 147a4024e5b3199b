"""What can be done at a stop: say something, ask otherwise, edit the state, another model, a branch, promote, save."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol

from dialoom import Run
from dialoom.errors import DialoomError
from dialoom.prompts import ChatMessage
from dialoom.runs.stepping import NextRequest
from dialoom.runs.stepping.values import look

from . import acting
from .calls import message_block
from .elements import button, folded, on_opening
from .fields import Field, left
from .looking import Looked, as_json, state_at
from .page import View
from .parts import card, element, text
from .wording import many

_MEANING = (
    "The conversation of {branch} becomes the scenario's{instead}: lists, reports and exports, and the page of the "
    "conversation tell of it from then on, with the judgements of {branch}, and say that it is a person's branch. What "
    "other sets of judgements said of the conversation before is dropped; labels given to that do not count while "
    "it is not the outcome. No branch is lost, so another can be made the outcome again."
)
_LONGEST = 14
"""Lines of a field at the most."""


class Stepper(Protocol):
    """Who carries out what is asked for in a form: the page."""

    run: Run
    view: View
    place: acting.Spot

    async def act(self, make: Callable[[], acting.Action]) -> None:
        """Carry something out."""

    async def save(self) -> None:
        """Hand this branch out as a case."""


class Forms:
    """The forms below a stop.

    Args:
        page: Carries out what is asked for.
        seen: Where one stands.
    """

    def __init__(self, page: Stepper, seen: Looked) -> None:
        self._page = page
        self._seen = seen

    def build(self) -> None:
        """Make them."""
        if isinstance(self._seen.asked, str):
            text("div", self._seen.asked, "problem")
        else:
            nodes = [each.node for each in self._seen.asked]
            for each in self._seen.asked:
                self._asked(each, each.name if nodes.count(each.node) > 1 else each.node)
        with element("div", "cards"):
            self._edit()
            self._models()
            self._branch()

    def _asked(self, asked: NextRequest, who: str) -> None:
        """Who is asked next, and what can be done in their place."""
        with card(classes="stack"):
            with element("div", "section-head"):
                text("h2", f"Next, {asked.role} is asked" + ("" if who == asked.role else f" by {who}"))
                text("span", f"{asked.request.model} · {asked.request.prompt_id}", "quiet small")
            with folded(f"What will be asked: {many(len(asked.request.messages), 'message')}", "call") as part:
                pass
            on_opening(part, partial(_blocks, asked.request.messages))
            is_to_change = bool(self._page.view.one("before"))  # one has come by `change it`
            with folded("Say it in their place", "form", is_open=is_to_change):
                recorded = self._seen.recorded.get(asked.name, "")
                words = Field(f"What {asked.role} says", recorded, lines=_lines(recorded))
                if recorded:
                    text("p", "This is what was said here; change it.", "quiet small")
                self._button("Say it", lambda: acting.say(who, words.value))
            with folded("Ask in other words", "form") as rewriting:
                pass
            on_opening(rewriting, lambda: self._rewrite(asked, who))

    def _rewrite(self, asked: NextRequest, who: str) -> None:
        """Every message of the request to come, to be changed."""
        fields = [
            (each, Field(each["role"], each["content"], lines=_lines(each["content"])))
            for each in asked.request.messages
        ]

        def messages() -> list[ChatMessage]:
            return [{**message, "content": field.value} for message, field in fields]

        self._button("Ask this, and play the step", lambda: acting.ask_instead(who, messages()))

    def _edit(self) -> None:
        """A place in the state and its value, which stands there as soon as the place is chosen."""
        with card("Edit the state", "stack"):
            path = Field("Place", hint="messages[-1].content")
            value = Field("Value", lines=3, hint="what stands there comes here; JSON, or a text as it is")

            async def read() -> None:
                before, found, why = value.value, "", ""
                try:
                    state = await state_at(self._page.run, self._page.view.scenario, self._page.place)
                    found = as_json(look(state, path.value.strip()))
                except (DialoomError, ValueError) as error:
                    why = str(error)
                told.set_text(why)
                if value.value == before:  # nobody has been quicker
                    value.set(found)

            self._button("Set", lambda: acting.edit(path.value, value.value))
            told = text("div", "", "small bad-text said")
            left(path, read)
            with folded("The whole state") as part:
                pass
            on_opening(part, self._state)

    def _models(self) -> None:
        """Another model for one of the roles."""
        with card("Another model from here on", "stack"):
            asked = () if isinstance(self._seen.asked, str) else self._seen.asked
            now = {each.role: each.request.model for each in asked}
            role = Field("Role", next(iter(now), ""), options={each: each for each in self._seen.roles})
            model = Field("Model", now.get(role.value, ""), hint="openai/gpt-4o-mini")
            self._button("Exchange it", lambda: acting.exchange(role.value, model.value.strip()))

    async def _state(self) -> None:
        state = await state_at(self._page.run, self._page.view.scenario, self._page.place)
        for name, value in state.items():
            with folded(name), element("div", "block said mono"):
                text("span", await asyncio.to_thread(as_json, value))

    def _branch(self) -> None:
        """A branch of its own, other replies, and what is to become of this one."""
        stop = self._seen.stop
        assert stop is not None
        with card("This branch", "stack"):
            name = Field("A new branch from here", hint="by-train")
            self._button("Fork", lambda: acting.fork(name.value.strip()))
            if not stop.is_end:
                text("p", "Replies are taken from what was recorded, where the same is asked.", "quiet small")
                self._button("Ask anew from here on", acting.resample)
            elif stop.branch != self._seen.outcome_branch:
                promoting(stop.branch, self._seen.outcome_branch, lambda: self._page.act(acting.promote))
            button("Save as a case", self._page.save)

    def _button(self, words: str, make: Callable[[], acting.Action]) -> None:
        def act() -> Awaitable[None]:
            return self._page.act(make)

        button(words, act)


def promoting(branch: str, outcome: str | None, act: Callable[[], Awaitable[None]]) -> None:
    """The button that makes a branch the outcome, behind what that means.

    Args:
        branch: The branch.
        outcome: The branch that the outcome is from now; `None` if there is none yet.
        act: Does it.
    """
    with folded(f"Make {branch} the outcome …", "form promote"):
        instead = "" if outcome is None else f", instead of that of {outcome}"
        text("p", _MEANING.format(branch=branch, instead=instead), "small")
        button(f"Yes, make {branch} the outcome", act, "button primary")


def _lines(words: str) -> int:
    """How many lines high a field is."""
    return min(_LONGEST, 3 + len(words) // 90 + words.count("\n"))


def _blocks(messages: Iterable[ChatMessage]) -> None:
    for message in messages:
        message_block(message)
