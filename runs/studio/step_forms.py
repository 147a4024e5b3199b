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
from dialoom.runs.stepping.paths import look

from . import acting
from .calls import message_block
from .elements import button, folded, on_opening
from .fields import Field, entered
from .looking import Looked, as_json, state_at
from .page import View
from .parts import card, element, text
from .wording import many

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
                words = Field(f"What {asked.role} says", lines=3)
                self._button("Say it", lambda: acting.say(who, words.value))
            with folded("Ask in other words", "form") as rewriting:
                pass
            on_opening(rewriting, lambda: self._rewrite(asked, who))
            with folded("Another model from here on", "form"):
                model = Field("Model", hint="openai/gpt-4o-mini", value="")
                self._button("Exchange it", lambda: acting.exchange(asked.role, model.value.strip()))

    def _rewrite(self, asked: NextRequest, who: str) -> None:
        """Every message of the request to come, to be changed."""
        fields: list[tuple[ChatMessage, Field]] = []
        for each in asked.request.messages:
            lines = min(_LONGEST, 2 + len(each["content"]) // 90 + each["content"].count("\n"))
            fields.append((each, Field(each["role"], each["content"], lines=lines)))

        def messages() -> list[ChatMessage]:
            return [{**message, "content": field.value} for message, field in fields]

        self._button("Ask this, and play the step", lambda: acting.ask_instead(who, messages()))

    def _edit(self) -> None:
        """A place in the state and its value."""
        with card("Edit the state", "stack"):
            path = Field("Place", hint="messages[-1].content")
            value = Field("Value", lines=3, hint="JSON, or a text as it is")

            async def read() -> None:
                try:
                    state = await state_at(self._page.run, self._page.view.scenario, self._page.place)
                    value.set(as_json(look(state, path.value.strip())))
                except (DialoomError, ValueError) as error:
                    value.set("")
                    told.set_text(str(error))
                else:
                    told.set_text("")

            with element("div", "row-of"):
                button("Read", read)
                self._button("Set", lambda: acting.edit(path.value, value.value))
            told = text("div", "", "small bad-text said")
            entered(path, read)
            with folded("The whole state") as part:
                pass
            on_opening(part, self._state)

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
                text("p", f"What came of {stop.branch} is not the scenario's outcome.", "quiet small")
                self._button("Make it the outcome", acting.promote)
            button("Save as a case", self._page.save)

    def _button(self, words: str, make: Callable[[], acting.Action]) -> None:
        def act() -> Awaitable[None]:
            return self._page.act(make)

        button(words, act)


def _blocks(messages: Iterable[ChatMessage]) -> None:
    for message in messages:
        message_block(message)
