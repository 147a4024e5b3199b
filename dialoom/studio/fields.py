"""Fields that people fill in: what stands in them is told to the page when they are left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialoom.runs.errors import RunError

from .parts import element, text

_MOST_LETTERS = 900_000
"""Of what can be sent from a field, with those that escape others: the library cuts off messages of a million."""


def _tell(most: int) -> str:
    """Tells what stands in a field, and nothing if that is too long, which the browser says at the field."""
    return f"""(event) => {{
      const field = event.target, isTooLong = JSON.stringify(JSON.stringify(field.value)).length > {most};
      field.setCustomValidity(isTooLong ? "This is too long, with more than {most:,} letters: shorten it." : "");
      if (isTooLong) field.reportValidity();
      emit(isTooLong ? null : field.value);
    }}"""


class Field:
    """A field with its label.

    Args:
        label: What it asks for.
        value: What stands in it.
        lines: So many lines high; of one line if 1.
        options: Choices by value, of a list that one is chosen from.
        hint: What is to be seen in it while it is empty.
        classes: Its classes.
        most: So many letters may stand in it.
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
    ) -> None:
        self._label, self._value, self._most = label, value, most
        self._is_too_long = False
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
        self.tell = _tell(most)
        self.input.on("input", self._told, js_handler=self.tell, throttle=0.1)
        self.input.on("change", self._told, js_handler=self.tell)

    @property
    def value(self) -> str:
        """What stands in it now.

        Raises:
            RunError: If that is too long to be sent.
        """
        if self._is_too_long:
            raise RunError(f"{self._label}: what stands there is too long, with more than {self._most:,} letters")
        return self._value

    def set(self, value: str) -> None:
        """Put something in it."""
        self._value, self._is_too_long = value, False
        self.input.props["value"] = value
        self.input.update()

    def _told(self, event: Any) -> None:
        self._is_too_long = event.args is None
        if event.args is not None:
            self._value = str(event.args)
            self.input.props["value"] = self._value  # without telling the browser, which has it


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
        if event.args is not None:
            await act()

    field.input.on("change", changed, js_handler=field.tell)


__all__ = ["Field", "entered", "left"]
