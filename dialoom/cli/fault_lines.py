"""Faults as people read them, each under the message that it stands in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from dialoom.graphs import DialogueFault


def at_message(faults: Iterable[DialogueFault], message: int) -> list[Text]:
    """The faults of one message."""
    return [fault_line(each) for each in faults if each.message == message]


def of_the_rest(faults: Iterable[DialogueFault], messages: Sequence[object]) -> list[Text]:
    """The faults that stand in none of the messages that are shown, with their places."""
    return [fault_line(each, has_place=True) for each in faults if not _is_shown(each, messages)]


def fault_line(fault: DialogueFault, has_place: bool = False) -> Text:
    """A fault in a line: whose, which, how sure, and the words that show it."""
    place = "" if fault.message is None else f"message {fault.message + 1}"
    place = ", ".join(filter(None, (place, fault.where and f"at {fault.where}"))) if has_place else ""
    about = f" of the {fault.who}'s" + (f" ({place})" if place else "")
    sure = "" if fault.sureness == 1 else f", {fault.sureness:.0%} sure"
    words = f": {' '.join(fault.words.split())}" if fault.words else ""
    return Text.assemble(("  fault", "red"), about, f"{sure}: ", (fault.kind, "bold"), (words, "dim"))


def _is_shown(fault: DialogueFault, messages: Sequence[object]) -> bool:
    return fault.message is not None and fault.message < len(messages)
