"""Fields, forms whose values are sent in an address, and the forms of the step debugger."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from nicegui import ui

from dialoom import Run
from dialoom.errors import DialoomError
from dialoom.prompts import ChatMessage
from dialoom.runs.errors import RunError
from dialoom.runs.stepping import NextRequest
from dialoom.runs.stepping.values import value_at
from dialoom.studio import acting
from dialoom.text import counted, harmless

from .calls import message_blocks
from .looking import Looked, as_json, state_at
from .page import View
from .parts import begun_with, button, card, element, folded, late, text

_ONLY_WHAT_IS_SAID = "(event) => { for (const each of event.target.elements) if (!each.value) each.disabled = true; }"
_MOST_OF_ADDRESS = 8_000
"""Maximum size in bytes of a field encoded in an address; servers and browsers limit the length of addresses."""
_MEASURED = f"""(event) => {{
  const field = event.target, isTooLong = encodeURIComponent(field.value).length > {_MOST_OF_ADDRESS};
  field.setCustomValidity(isTooLong ? "This text is too long for an address: shorten it." : "");
  if (isTooLong) field.reportValidity();
}}"""
_AT_ONCE = "(event) => event.target.form.requestSubmit()"


@contextmanager
def form(target: str, label: str) -> Iterator[Any]:
    """Add a form whose fields become the query of an address; empty fields are left out.

    Args:
        target: The address without a query.
        label: The form's name for screen readers.
    """
    with element("form", "stack", action=target, method="get", role="search", aria_label=label) as made:
        made.on("submit", js_handler=_ONLY_WHAT_IS_SAID)
        made.on("input", js_handler=_MEASURED)
        yield made


class Entry:
    """A text field.

    Args:
        name: Its name in the address.
        label: The text above the field.
        value: The initial value.
        hint: The text that is shown in the empty field.
        classes: Its classes.
    """

    def __init__(self, name: str, label: str, value: str, hint: str = "", classes: str = "") -> None:
        self._name = name
        with element("div", f"field {classes}") as self._field:
            text("label", label, for_=name)
            usual = {"type": "search", "autocomplete": "off", "spellcheck": "false"}
            self._made = element("input", "input", name=name, id_=name, placeholder=hint, **usual)
            begun_with(self._made, value)

    def refuse(self, words: str) -> None:
        """Show below the field what is wrong with its value; the value stays in the field to be corrected."""
        self._made.props["aria-invalid"] = "true"
        self._made.props["aria-describedby"] = f"{self._name}-refused"
        with self._field:
            text("p", words, "refused", id_=f"{self._name}-refused", role="alert")


def filter_expression(view: View) -> Entry:
    """Add the field for an expression that selects scenarios."""
    return Entry("where", "Filter expression", view.one("where"), "turns > 5 and not faults.user", classes="grow")


class Choice:
    """A field to select one of several values; a selection is submitted at once.

    Args:
        name: Its name in the address.
        label: The text above the field.
        values: The values, each with the number of its scenarios if that is known.
        chosen: The selected value; empty for all.
    """

    def __init__(self, name: str, label: str, values: Mapping[str, int | None], chosen: str) -> None:
        self._chosen = chosen
        self._options: dict[str, Any] = {}
        with element("div", "field"):
            text("label", label, for_=name)
            self._made = element("select", "input", name=name, id_=name)
        self.add({"": None, **values, **dict.fromkeys({chosen} - {"", *values})})
        self._made.on("change", js_handler=_AT_ONCE)

    def add(self, values: Mapping[str, int | None]) -> None:
        """Add values, or the numbers of scenarios to existing values, without changing what is selected."""
        with self._made:
            for value, number in values.items():
                words = "all" if not value else value if number is None else f"{value} ({number:,})"
                if value in self._options:
                    self._options[value].set_text(words)
                    continue
                option = self._options[value] = text("option", words)
                option.props["value"] = value
                if value == self._chosen:
                    option.props("selected")


def submit(words: str) -> None:
    """Add the button that submits a form."""
    text("button", words, "button", type="submit")


_MOST_LETTERS = 900_000
"""Maximum number of characters sent from a field, including escapes; the library limits messages to a million."""


def _sending_script(most: int) -> str:
    """Return JavaScript that sends a field's value; if the value is too long, the script shows an error instead."""
    return f"""(event) => {{
      const field = event.target, isTooLong = JSON.stringify(JSON.stringify(field.value)).length > {most};
      field.setCustomValidity(isTooLong ? "This text has more than {most:,} characters: shorten it." : "");
      if (isTooLong) field.reportValidity();
      emit(isTooLong ? null : field.value);
    }}"""


class Field:
    """A field with its label.

    Args:
        label: The label.
        value: The initial value.
        lines: The height in lines; 1 makes a one-line field.
        options: For a list: the choices by value.
        hint: The placeholder of an empty field.
        classes: Its classes.
        most: The maximum number of characters.
        drafts: The texts that the user has typed, by the key of the field, to be kept when the page is built anew.
        key: The field's key in the drafts; by default its label.
    """

    _number = 0

    def __init__(
        self,
        label: str,
        value: str = "",
        *,
        lines: int = 1,
        options: Mapping[str, str] | None = None,
        hint: str = "",
        classes: str = "field",
        most: int = _MOST_LETTERS,
        drafts: dict[str, str] | None = None,
        key: str = "",
    ) -> None:
        self._drafts = {} if drafts is None else drafts
        self._key = key or label
        value = self._drafts.get(self._key, value)
        self._label, self._value, self._most = label, value, most
        self._is_too_long = False
        self.is_line = lines == 1 and options is None
        Field._number += 1
        self._id = name = f"field-{Field._number}"
        with element("div", classes):
            text("label", label, for_=name)
            if options is not None:
                with element("select", "input", id=name) as self.input:
                    for each, shown in options.items():
                        option = text("option", shown, value=each)
                        if each == value:
                            option.props["selected"] = True
            elif lines > 1:
                self.input = text("textarea", value, "input", id=name, rows=str(lines), placeholder=hint)
            else:
                self.input = element("input", "input", id=name, placeholder=hint, autocomplete="off")
                begun_with(self.input, value)
        self.tell = _sending_script(most)
        self.input.on("input", self.take, js_handler=self.tell, throttle=0.1)
        self.input.on("change", self.take, js_handler=self.tell)

    @property
    def value(self) -> str:
        """The current value.

        Raises:
            RunError: If the value is too long to be sent.
        """
        if self._is_too_long:
            raise RunError(f"{self._label}: the text has more than {self._most:,} characters; shorten it")
        return self._value

    def set(self, value: str) -> None:
        """Set the value."""
        self._value, self._is_too_long = value, False
        if not self.input.is_deleted:
            field = f"document.getElementById({json.dumps(self._id)})"
            self.input.client.run_javascript(f"{field}.value = {json.dumps(harmless(value))}")

    def take(self, event: Any) -> None:
        """Take the value that the browser sent."""
        self._is_too_long = event.args is None
        if event.args is not None and event.args != self._value:
            self._value = self._drafts[self._key] = str(event.args)

    def drop(self) -> None:
        """Remove the field's text from the drafts, because it was used."""
        self._drafts.pop(self._key, None)
        self._drafts = {}


def entered(field: Field, act: Any) -> None:
    """Call a function when the enter key is pressed in a field."""

    def pressed(event: Any) -> Any:
        field.take(event)
        return act()

    field.input.on(
        "keydown",
        pressed,
        js_handler=f"(event) => {{ if (event.key === 'Enter' && !event.isComposing) ({field.tell})(event) }}",
    )


def left(field: Field, act: Any) -> None:
    """Call a function when a field with a changed value loses focus, or the enter key is pressed in it."""

    async def changed(event: Any) -> None:
        if event.args is not None:
            await act()

    field.input.on("change", changed, js_handler=field.tell)


_MEANING = (
    "The conversation of {branch} becomes the scenario's outcome{instead}. From then on, lists, reports, exports and "
    "the conversation's page show it with the judgements of {branch}, and state that it is a person's branch. "
    "Judgements of the previous outcome in other sets are deleted, and its labels do not count while it is not the "
    "outcome. No branch is lost, so you can make another one the outcome again. If a stateful player remembers the "
    "previous outcome in later conversations of the same person, a retry of the first of these plays them again."
)
_LONGEST = 14
"""Maximum height of a field in lines."""


class FormPage(Protocol):
    """A page that carries out the actions of its forms."""

    run: Run
    view: View
    place: acting.Spot
    drafts: dict[str, str]

    async def act(self, make: Callable[[], acting.Action], *, used: Sequence[Field] = ()) -> None:
        """Carry out an action, and remove the texts of the used fields."""

    async def save(self) -> None:
        """Download this branch as a case."""


class Forms:
    """The forms below a stop.

    Args:
        page: The page, which carries out the actions.
        seen: The current position in the conversation.
    """

    def __init__(self, page: FormPage, seen: Looked) -> None:
        self._page = page
        self._seen = seen

    def build(self) -> None:
        """Build the forms."""
        if isinstance(self._seen.requests, str):
            text("div", self._seen.requests, "problem")
        else:
            nodes = [each.node for each in self._seen.requests]
            for each in self._seen.requests:
                self._request_form(each, each.name if nodes.count(each.node) > 1 else each.node)
        with element("div", "cards"):
            self._edit()
            self._models()
            self._branch()

    def _request_form(self, request: NextRequest, who: str) -> None:
        """Add the next request, with actions to replace the reply."""
        with card(classes="stack"):
            with element("div", "section-head"):
                text("h2", f"Next call: {request.role}" + ("" if who == request.role else f" by {who}"))
                text("span", f"{request.request.model} · {request.request.prompt_id}", "quiet small")
            messages = request.request.messages
            late(f"Next request: {counted(len(messages), 'messages')}", partial(message_blocks, messages), "call")
            is_to_change = bool(self._page.view.one("before"))  # the page was opened by the link `edit`
            reply, prompt = f"reply {request.name}", f"prompt {request.name} "
            with folded("Write this reply", "form", is_open=is_to_change or reply in self._page.drafts):
                recorded = self._seen.recorded.get(request.name, "")
                words = self._field(f"Reply of {request.role}", recorded, lines=_lines(recorded), key=reply)
                if recorded:
                    text("p", "The recorded reply; edit it.", "quiet small")
                self._button("Use this reply", lambda: acting.say(who, words.value), words)
            is_drafted = any(key.startswith(prompt) for key in self._page.drafts)
            late("Edit prompt", lambda: self._rewrite(request, who, prompt), "form", is_open=is_drafted)

    def _rewrite(self, request: NextRequest, who: str, prompt: str) -> None:
        """Add a form to edit every message of the next request."""
        messages = request.request.messages
        fields = [
            self._field(each["role"], each["content"], lines=_lines(each["content"]), key=f"{prompt}{number}")
            for number, each in enumerate(messages)
        ]

        def edited() -> list[ChatMessage]:
            return [{**message, "content": field.value} for message, field in zip(messages, fields, strict=True)]

        self._button("Send this request and play the step", lambda: acting.ask_instead(who, edited()), *fields)

    def _edit(self) -> None:
        """Add the form to edit a value of the state; the current value is filled in as soon as its path is entered."""
        with card("Edit the state", "stack"):
            path = self._field("Place", hint="messages[-1].content")
            value = self._field("Value", lines=3, hint="the current value appears here; JSON or plain text")
            filled = ""

            async def read() -> None:
                nonlocal filled
                found, why = "", ""
                try:
                    state = await state_at(self._page.run, self._page.view.scenario, self._page.place)
                    found = as_json(value_at(state, path.value.strip()))
                except (DialoomError, ValueError) as error:
                    why = str(error)
                problem.set_text(why)
                if value.value == filled:  # what the user has typed is kept
                    value.set(found)
                    filled = found

            button("Set", lambda: self._page.act(lambda: acting.edit(path.value, value.value), used=(path, value)))
            problem = text("div", "", "small bad-text said")
            left(path, read)
            if path.value:
                ui.timer(0, read, once=True)
            late("The whole state", self._state)

    def _models(self) -> None:
        """Add the form to give a role another model."""
        with card("Model of a role", "stack"):
            requests = () if isinstance(self._seen.requests, str) else self._seen.requests
            now = {each.role: each.request.model for each in requests}
            role = self._field("Role", next(iter(now), ""), options={each: each for each in self._seen.roles})
            model = self._field("Model", now.get(role.value, ""), hint="openai/gpt-4o-mini")
            self._button("Change model", lambda: acting.exchange(role.value, model.value.strip()), role, model)

    async def _state(self) -> None:
        for name, value in (await state_at(self._page.run, self._page.view.scenario, self._page.place)).items():
            with folded(name), element("div", "block said mono"):
                text("span", await asyncio.to_thread(as_json, value))

    def _branch(self) -> None:
        """Add the forms to fork a branch, to resample, and to promote this branch."""
        stop = self._seen.stop
        assert stop is not None
        with card("This branch", "stack"):
            name = self._field("A new branch from here", hint="by-train")
            self._button("Fork", lambda: acting.fork(name.value.strip()), name)
            if not stop.is_end:
                text("p", "Recorded replies are reused for equal requests.", "quiet small")
                self._button("Regenerate from here", acting.resample)
            elif stop.branch != self._seen.outcome_branch:
                promoting(stop.branch, self._seen.outcome_branch, lambda: self._page.act(acting.promote))
            button("Save as a case", self._page.save)

    def _field(self, label: str, value: str = "", **options: Any) -> Field:
        return Field(label, value, drafts=self._page.drafts, **options)

    def _button(self, words: str, make: Callable[[], acting.Action], *used: Field) -> None:
        """Add the button that carries out an action, as does the enter key in the one-line fields that it uses."""

        def act() -> Awaitable[None]:
            return self._page.act(make, used=used)

        button(words, act)
        for each in used:
            if each.is_line:
                entered(each, act)


def promoting(branch: str, outcome: str | None, act: Callable[[], Awaitable[None]]) -> None:
    """Add a folded part with an explanation and the button that makes a branch the outcome.

    Args:
        branch: The branch.
        outcome: The branch that the outcome comes from; `None` if there is no outcome yet.
        act: Carries out the action.
    """
    with folded(f"Make {branch} the outcome …", "form promote"):
        instead = "" if outcome is None else f", instead of that of {outcome}"
        text("p", _MEANING.format(branch=branch, instead=instead), "small")
        button(f"Yes, make {branch} the outcome", act, "button primary")


def _lines(words: str) -> int:
    """Return a field's height in lines."""
    return min(_LONGEST, 3 + len(words) // 90 + words.count("\n"))
