"""What is wrong with a conversation, and whose it is."""

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
"""The kinds of faults that the rules find, and what they mean."""


BY_JUDGES = "copied_form"
"""The kind that is no fault of a dialogue, but of a judge's word on it."""

USER = "user"
"""The role of simulated users: a dialogue in which theirs was not sound says little about anybody else."""


REVIEWER = "reviewer"
"""The role of whoever looks for what rules cannot see."""


class DialogueFault(BaseModel):
    """Something that is wrong with a conversation.

    Attributes:
        who: Whose fault it is: the role, such as `user` or `assistant`.
        kind: One of `KINDS`, of the recipe's own, or of a reviewer's.
        message: Which of the outcome's messages, from 0; `None` for the whole, or what is none of them.
        where: A place of the recipe's own, such as the path of a tree; else empty.
        words: The words that show it.
        sureness: How sure it is, above 0 and at most 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    who: str
    kind: str
    message: int | None = None
    where: str = ""
    words: str = ""
    sureness: float = Field(default=1.0, gt=0, le=1)


def dialogue_faults(faults: Iterable[DialogueFault]) -> int:
    """How many are faults of those who take part in the dialogue; judges do not."""
    return sum(each.kind != BY_JUDGES for each in faults)


def is_sound(faults: Iterable[DialogueFault]) -> bool:
    """Whether nobody who takes part in the dialogue has a fault."""
    return not dialogue_faults(faults)
