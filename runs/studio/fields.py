"""Fields that people fill in: what stands in them is told to the page when they are left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .parts import element, text

_TELL = "(event) => emit(event.target.value)"


class Field:
    """A field with its label.

    Args:
        label: What it asks for.
        value: What stands in it.
        lines: So many lines high; of one line if 1.
        options: Choices by value, of a list that one is chosen from.
        hint: What is to be seen in it while it is empty.

    Attributes:
        value: What stands in it now.
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
    ) -> None:
        self.value = value
        Field._number += 1
        name = f"field-{Field._number}"
        with element("div", classes):
            text("label", label, for_=name)
            if options is not None:
                with element("select", "input", id=name) as self.input:
                    for each, shown in options.items():
                        option = text("option", shown, value=each)
                        if each == value:
                            option.props["selected"] = True
            elif lines > 1:
                self.input = element("textarea", "input", id=name, rows=str(lines), placeholder=hint, value=value)
            else:
                self.input = element("input", "input", id=name, placeholder=hint, value=value, autocomplete="off")
        self.input.on("input", self._told, js_handler=_TELL, throttle=0.1)
        self.input.on("change", self._told, js_handler=_TELL)

    def set(self, value: str) -> None:
        """Put something in it."""
        self.value = value
        self.input.props["value"] = value
        self.input.update()

    def _told(self, event: Any) -> None:
        self.value = str(event.args)
        self.input.props["value"] = self.value  # without telling the browser, which has it


def entered(field: Field, act: Any) -> None:
    """Do something when the enter key is pressed in a field."""
    field.input.on(
        "keydown",
        lambda _event: act(),
        js_handler="(event) => { if (event.key === 'Enter' && !event.isComposing) emit() }",
    )


def left(field: Field, act: Any) -> None:
    """Do something when another value stands in a field, and it is left or the enter key is pressed in it."""

    async def changed(event: Any) -> None:
        field.value = str(event.args)
        await act()

    field.input.on("change", changed, js_handler=_TELL)


__all__ = ["Field", "entered", "left"]
