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
from dialoom.runs.stepping.values import get_value
from dialoom.studio import actions
from dialoom.text import pluralize, sanitize

from .calls import add_messages
from .components import button, card, details, element, lazy_details, set_initial_value, text
from .page import View
from .step_data import StepData, format_state_value, load_state

_SKIP_EMPTY_FIELDS_SCRIPT = (
    "(event) => { for (const each of event.target.elements) if (!each.value) each.disabled = true; }"
)
_MAX_QUERY_VALUE_BYTES = 8_000
"""Maximum size in bytes of a field encoded in an address; servers and browsers limit the length of addresses."""
_CHECK_LENGTH_SCRIPT = f"""(event) => {{
  const field = event.target, isTooLong = encodeURIComponent(field.value).length > {_MAX_QUERY_VALUE_BYTES};
  field.setCustomValidity(isTooLong ? "This text is too long for an address: shorten it." : "");
  if (isTooLong) field.reportValidity();
}}"""
_SUBMIT_SCRIPT = "(event) => event.target.form.requestSubmit()"


@contextmanager
def form(url: str, label: str) -> Iterator[Any]:
    """Add a form whose fields become the query of an address; empty fields are left out.

    Args:
        url: The address without a query.
        label: The form's name for screen readers.
    """
    with element("form", "stack", action=url, method="get", role="search", aria_label=label) as form_element:
        form_element.on("submit", js_handler=_SKIP_EMPTY_FIELDS_SCRIPT)
        form_element.on("input", js_handler=_CHECK_LENGTH_SCRIPT)
        yield form_element


class Entry:
    """A text field.

    Args:
        name: Its name in the address.
        label: The text above the field.
        value: The initial value.
        placeholder: The text that is shown in the empty field.
        classes: Its classes.
    """

    def __init__(self, name: str, label: str, value: str, placeholder: str = "", classes: str = "") -> None:
        self._name = name
        with element("div", f"field {classes}") as self._container:
            text("label", label, for_=name)
            attributes = {"type": "search", "autocomplete": "off", "spellcheck": "false"}
            self._input = element("input", "input", name=name, id_=name, placeholder=placeholder, **attributes)
            set_initial_value(self._input, value)

    def show_error(self, message: str) -> None:
        """Show below the field what is wrong with its value; the value stays in the field to be corrected."""
        self._input.props["aria-invalid"] = "true"
        self._input.props["aria-describedby"] = f"{self._name}-refused"
        with self._container:
            text("p", message, "refused", id_=f"{self._name}-refused", role="alert")


def filter_entry(view: View) -> Entry:
    """Add the field for an expression that selects scenarios."""
    return Entry("where", "Filter expression", view.get("where"), "turns > 5 and not faults.user", classes="grow")


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
            self._input = element("select", "input", name=name, id_=name)
        self.add({"": None, **values, **dict.fromkeys({chosen} - {"", *values})})
        self._input.on("change", js_handler=_SUBMIT_SCRIPT)

    def add(self, values: Mapping[str, int | None]) -> None:
        """Add values, or the numbers of scenarios to existing values, without changing what is selected."""
        with self._input:
            for value, number in values.items():
                label = "all" if not value else value if number is None else f"{value} ({number:,})"
                if value in self._options:
                    self._options[value].set_text(label)
                    continue
                option = self._options[value] = text("option", label)
                option.props["value"] = value
                if value == self._chosen:
                    option.props("selected")


def submit_button(label: str) -> None:
    """Add the button that submits a form."""
    text("button", label, "button", type="submit")


_MAX_FIELD_CHARACTERS = 900_000
"""Maximum number of characters sent from a field, including escapes; the library limits messages to a million."""


def _build_send_script(max_characters: int) -> str:
    """Return JavaScript that sends a field's value; if the value is too long, the script shows an error instead."""
    return f"""(event) => {{
      const field = event.target, isTooLong = JSON.stringify(JSON.stringify(field.value)).length > {max_characters};
      field.setCustomValidity(isTooLong ? "This text has more than {max_characters:,} characters: shorten it." : "");
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
        placeholder: The text that is shown in the empty field.
        classes: Its classes.
        max_characters: The maximum number of characters.
        drafts: The texts that the user has typed, by the key of the field, to be kept when the page is rebuilt.
        key: The field's key in the drafts; by default its label.
    """

    _count = 0

    def __init__(
        self,
        label: str,
        value: str = "",
        *,
        lines: int = 1,
        options: Mapping[str, str] | None = None,
        placeholder: str = "",
        classes: str = "field",
        max_characters: int = _MAX_FIELD_CHARACTERS,
        drafts: dict[str, str] | None = None,
        key: str = "",
    ) -> None:
        self._drafts = {} if drafts is None else drafts
        self._key = key or label
        value = self._drafts.get(self._key, value)
        self._label, self._value, self._max_characters = label, value, max_characters
        self._is_too_long = False
        self.is_line = lines == 1 and options is None
        Field._count += 1
        self._id = name = f"field-{Field._count}"
        with element("div", classes):
            text("label", label, for_=name)
            if options is not None:
                with element("select", "input", id=name) as self.input:
                    for each, shown in options.items():
                        option = text("option", shown, value=each)
                        if each == value:
                            option.props["selected"] = True
            elif lines > 1:
                self.input = text("textarea", value, "input", id=name, rows=str(lines), placeholder=placeholder)
            else:
                self.input = element("input", "input", id=name, placeholder=placeholder, autocomplete="off")
                set_initial_value(self.input, value)
        self.send_script = _build_send_script(max_characters)
        self.input.on("input", self.receive, js_handler=self.send_script, throttle=0.1)
        self.input.on("change", self.receive, js_handler=self.send_script)

    @property
    def value(self) -> str:
        """The current value.

        Raises:
            RunError: If the value is too long to be sent.
        """
        if self._is_too_long:
            raise RunError(f"{self._label}: the text has more than {self._max_characters:,} characters; shorten it")
        return self._value

    def set_value(self, value: str) -> None:
        """Set the value."""
        self._value, self._is_too_long = value, False
        if not self.input.is_deleted:
            field = f"document.getElementById({json.dumps(self._id)})"
            self.input.client.run_javascript(f"{field}.value = {json.dumps(sanitize(value))}")

    def receive(self, event: Any) -> None:
        """Store the value that the browser sent."""
        self._is_too_long = event.args is None
        if event.args is not None and event.args != self._value:
            self._value = self._drafts[self._key] = str(event.args)

    def discard_draft(self) -> None:
        """Remove the field's text from the drafts, because it was used."""
        self._drafts.pop(self._key, None)
        self._drafts = {}


def on_enter(field: Field, action: Any) -> None:
    """Call a function when the enter key is pressed in a field."""

    def handle(event: Any) -> Any:
        field.receive(event)
        return action()

    field.input.on(
        "keydown",
        handle,
        js_handler=f"(event) => {{ if (event.key === 'Enter' && !event.isComposing) ({field.send_script})(event) }}",
    )


def on_change(field: Field, action: Any) -> None:
    """Call a function when a field with a changed value loses focus, or the enter key is pressed in it."""

    async def handle(event: Any) -> None:
        if event.args is not None:
            await action()

    field.input.on("change", handle, js_handler=field.send_script)


_PROMOTE_EXPLANATION = (
    "The conversation of {branch} becomes the scenario's outcome{instead}. From then on, lists, reports, exports and "
    "the conversation's page show it with the judgements of {branch}, and state that it is a person's branch. "
    "Judgements of the previous outcome in other sets are deleted, and its labels do not count while it is not the "
    "outcome. No branch is lost, so you can make another one the outcome again. If a stateful player remembers the "
    "previous outcome in later conversations of the same person, a retry of the first of these plays them again."
)
_MAX_FIELD_LINES = 14
"""Maximum height of a field in lines."""


class FormPage(Protocol):
    """A page that carries out the actions of its forms."""

    run: Run
    view: View
    position: actions.Position
    drafts: dict[str, str]

    async def act(self, make: Callable[[], actions.Action], *, used: Sequence[Field] = ()) -> None:
        """Carry out an action, and remove the texts of the used fields."""

    async def save_case(self) -> None:
        """Download this branch as a case."""


class Forms:
    """The forms below a stop.

    Args:
        page: The page, which carries out the actions.
        data: The data of the current position in the conversation.
    """

    def __init__(self, page: FormPage, data: StepData) -> None:
        self._page = page
        self._data = data

    def build(self) -> None:
        """Build the forms."""
        if isinstance(self._data.requests, str):
            text("div", self._data.requests, "problem")
        else:
            nodes = [each.node for each in self._data.requests]
            for each in self._data.requests:
                self._add_request_form(each, each.name if nodes.count(each.node) > 1 else each.node)
        with element("div", "cards"):
            self._add_edit_form()
            self._add_model_form()
            self._add_branch_forms()

    def _add_request_form(self, request: NextRequest, who: str) -> None:
        """Add the next request, with actions to replace the reply."""
        with card(classes="stack"):
            with element("div", "section-head"):
                text("h2", f"Next call: {request.role}" + ("" if who == request.role else f" by {who}"))
                text("span", f"{request.request.model} · {request.request.prompt_id}", "quiet small")
            messages = request.request.messages
            lazy_details(
                f"Next request: {pluralize(len(messages), 'messages')}", partial(add_messages, messages), "call"
            )
            is_to_change = bool(self._page.view.get("before"))  # the page was opened by the link `edit`
            reply, prompt = f"reply {request.name}", f"prompt {request.name} "
            with details("Write this reply", "form", is_open=is_to_change or reply in self._page.drafts):
                recorded = self._data.recorded_replies.get(request.name, "")
                field = self._add_field(
                    f"Reply of {request.role}", recorded, lines=_compute_height(recorded), key=reply
                )
                if recorded:
                    text("p", "The recorded reply; edit it.", "quiet small")
                self._add_button("Use this reply", lambda: actions.say(who, field.value), field)
            is_drafted = any(key.startswith(prompt) for key in self._page.drafts)
            lazy_details("Edit prompt", lambda: self._add_prompt_form(request, who, prompt), "form", is_open=is_drafted)

    def _add_prompt_form(self, request: NextRequest, who: str, prompt: str) -> None:
        """Add a form to edit every message of the next request."""
        messages = request.request.messages
        fields = [
            self._add_field(
                each["role"], each["content"], lines=_compute_height(each["content"]), key=f"{prompt}{number}"
            )
            for number, each in enumerate(messages)
        ]

        def read_messages() -> list[ChatMessage]:
            return [{**message, "content": field.value} for message, field in zip(messages, fields, strict=True)]

        self._add_button(
            "Send this request and play the step", lambda: actions.edit_request(who, read_messages()), *fields
        )

    def _add_edit_form(self) -> None:
        """Add the form to edit a value of the state; the current value is filled in as soon as its path is entered."""
        with card("Edit the state", "stack"):
            path = self._add_field("Place", placeholder="messages[-1].content")
            value = self._add_field("Value", lines=3, placeholder="the current value appears here; JSON or plain text")
            filled = ""

            async def fill_value() -> None:
                nonlocal filled
                current, message = "", ""
                try:
                    state = await load_state(self._page.run, self._page.view.scenario, self._page.position)
                    current = format_state_value(get_value(state, path.value.strip()))
                except (DialoomError, ValueError) as error:
                    message = str(error)
                error_text.set_text(message)
                if value.value == filled:  # what the user has typed is kept
                    value.set_value(current)
                    filled = current

            button("Set", lambda: self._page.act(lambda: actions.edit(path.value, value.value), used=(path, value)))
            error_text = text("div", "", "small bad-text said")
            on_change(path, fill_value)
            if path.value:
                ui.timer(0, fill_value, once=True)
            lazy_details("The whole state", self._add_state)

    def _add_model_form(self) -> None:
        """Add the form to give a role another model."""
        with card("Model of a role", "stack"):
            requests = () if isinstance(self._data.requests, str) else self._data.requests
            models = {each.role: each.request.model for each in requests}
            role = self._add_field("Role", next(iter(models), ""), options={each: each for each in self._data.roles})
            model = self._add_field("Model", models.get(role.value, ""), placeholder="openai/gpt-4o-mini")
            self._add_button(
                "Change model", lambda: actions.replace_model(role.value, model.value.strip()), role, model
            )

    async def _add_state(self) -> None:
        for name, value in (await load_state(self._page.run, self._page.view.scenario, self._page.position)).items():
            with details(name), element("div", "block said mono"):
                text("span", await asyncio.to_thread(format_state_value, value))

    def _add_branch_forms(self) -> None:
        """Add the forms to fork a branch, to resample, and to promote this branch."""
        stop = self._data.stop
        assert stop is not None
        with card("This branch", "stack"):
            name = self._add_field("A new branch from here", placeholder="by-train")
            self._add_button("Fork", lambda: actions.fork(name.value.strip()), name)
            if not stop.is_end:
                text("p", "Recorded replies are reused for equal requests.", "quiet small")
                self._add_button("Regenerate from here", actions.resample)
            elif stop.branch != self._data.outcome_branch:
                promote_form(stop.branch, self._data.outcome_branch, lambda: self._page.act(actions.promote))
            button("Save as a case", self._page.save_case)

    def _add_field(self, label: str, value: str = "", **options: Any) -> Field:
        return Field(label, value, drafts=self._page.drafts, **options)

    def _add_button(self, label: str, make: Callable[[], actions.Action], *used: Field) -> None:
        """Add the button that carries out an action, as does the enter key in the one-line fields that it uses."""

        def act() -> Awaitable[None]:
            return self._page.act(make, used=used)

        button(label, act)
        for each in used:
            if each.is_line:
                on_enter(each, act)


def promote_form(branch: str, outcome: str | None, act: Callable[[], Awaitable[None]]) -> None:
    """Add a folded part with an explanation and the button that makes a branch the outcome.

    Args:
        branch: The branch.
        outcome: The branch that the outcome comes from; `None` if there is no outcome yet.
        act: Carries out the action.
    """
    with details(f"Make {branch} the outcome …", "form promote"):
        instead = "" if outcome is None else f", instead of that of {outcome}"
        text("p", _PROMOTE_EXPLANATION.format(branch=branch, instead=instead), "small")
        button(f"Yes, make {branch} the outcome", act, "button primary")


def _compute_height(content: str) -> int:
    """Return a field's height in lines."""
    return min(_MAX_FIELD_LINES, 3 + len(content) // 90 + content.count("\n"))
