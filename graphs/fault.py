"""Faults of conversations, and the roles at fault."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field

KINDS: Mapping[str, str] = {
    "echo": "a near-copy of the other's line",
    "repetition": "a near-copy of a line of one's own",
    "loop": "nothing new for three turns",
    "swapped_role": "the user offers help, or the assistant asks for it",
    "prompt_leak": "words of the prompt, its tags, or blanks that were never filled in",
    "end_marker": "the end marker where it has no place",
    "glued_lines": "lines of two speakers in one",
    "empty_line": "nothing is said",
    "cut_line": "the line breaks off",
    "other_language": "another language than the conversation's",
    "early_preferences": "the opening states preferences that it must keep back",
    "early_end": "ended before the task was touched",
    "no_end": "goodbyes go on to the limit",
    "copied_form": "a judge gives back the blank form instead of an explanation",
}
"""The kinds of faults that the rules detect, and their meanings."""


BY_JUDGES = "copied_form"
"""The kind that is a fault of a judge's explanation, not of a dialogue."""

USER = "user"
"""The role of simulated users: a dialogue in which the user is at fault says little about any other role."""


REVIEWER = "reviewer"
"""The role that looks for faults that rules cannot detect."""


class DialogueFault(BaseModel):
    """A fault in a conversation.

    Attributes:
        who: The role at fault, such as `user` or `assistant`.
        kind: One of `KINDS`, of the recipe's own kinds, or of a reviewer's.
        message: The index of the outcome's message, from 0; `None` for the whole, or for a line outside its messages.
        where: A location defined by the recipe, such as the path of a tree; otherwise empty.
        words: The words that show the fault.
        sureness: The confidence, above 0 and at most 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    who: str
    kind: str
    message: int | None = None
    where: str = ""
    words: str = ""
    sureness: float = Field(default=1.0, gt=0, le=1)


def dialogue_faults(faults: Iterable[DialogueFault]) -> int:
    """Return the number of faults of the dialogue's own roles; judges' faults do not count."""
    return sum(each.kind != BY_JUDGES for each in faults)


def is_sound(faults: Iterable[DialogueFault]) -> bool:
    """Return whether no role of the dialogue has a fault."""
    return not dialogue_faults(faults)
