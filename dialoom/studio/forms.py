"""Forms that are sent as addresses: what was chosen can be mailed, and going back goes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .parts import begun_with, element, text

_ONLY_WHAT_IS_SAID = "(event) => { for (const each of event.target.elements) if (!each.value) each.disabled = true; }"
_MOST_OF_ADDRESS = 8_000
"""Bytes of a field as they stand in an address; servers and browsers read no address without bounds."""
_MEASURED = f"""(event) => {{
  const field = event.target, isTooLong = encodeURIComponent(field.value).length > {_MOST_OF_ADDRESS};
  field.setCustomValidity(isTooLong ? "This is too long to stand in an address: shorten it." : "");
  if (isTooLong) field.reportValidity();
}}"""
_AT_ONCE = "(event) => event.target.form.requestSubmit()"


@contextmanager
def form(target: str, label: str) -> Iterator[Any]:
    """A form whose fields become the query of an address; empty ones are left out.

    Args:
        target: The address without a query.
        label: What it is, for who hears it read.
    """
    with element("form", "stack", action=target, method="get", role="search", aria_label=label) as made:
        made.on("submit", js_handler=_ONLY_WHAT_IS_SAID)
        made.on("input", js_handler=_MEASURED)
        yield made


class Entry:
    """A field for a text.

    Args:
        name: Its name in the address.
        label: What stands above it.
        value: What stands in it.
        hint: What stands in it while it is empty.
        classes: Its classes.
    """

    def __init__(self, name: str, label: str, value: str, hint: str = "", classes: str = "") -> None:
        self._name = name
        with element("div", f"field {classes}") as self._field:
            text("label", label, for_=name)
            self._made = element("input", "input", type="search", name=name, id_=name, autocomplete="off")
            self._made.props["spellcheck"] = "false"
            begun_with(self._made, value)
            self._made.props["placeholder"] = hint

    def refuse(self, words: str) -> None:
        """Say below it what is wrong with what stands in it, which stays there to be mended."""
        self._made.props["aria-invalid"] = "true"
        self._made.props["aria-describedby"] = f"{self._name}-refused"
        with self._field:
            text("p", words, "refused", id_=f"{self._name}-refused", role="alert")


def choice(name: str, label: str, values: Mapping[str, int | None], chosen: str) -> None:
    """A field with one of several values, which is sent as soon as it is chosen.

    Args:
        name: Its name in the address.
        label: What stands above it.
        values: How many of each there are, if that is known.
        chosen: What is chosen now; empty for all.
    """
    with element("div", "field"):
        text("label", label, for_=name)
        with element("select", "input", name=name, id_=name) as made:
            for value in ("", *values, *([chosen] if chosen and chosen not in values else [])):
                number = values.get(value)
                option = text("option", "all" if not value else value if number is None else f"{value} ({number:,})")
                option.props["value"] = value
                if value == chosen:
                    option.props("selected")
        made.on("change", js_handler=_AT_ONCE)


def submit(words: str) -> None:
    """The button that sends a form."""
    text("button", words, "button", type="submit")
