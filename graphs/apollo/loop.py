"""The rules of an agent's loop: what a turn is, when it is over, and what is odd about it. The protocol, section 5.

A turn is one reply of the agent: calls, or words. Whatever a turn is, only its calls count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dialoom.personas.apollo.text_protocol import FINISH, says_finish

TURN_LIMIT = 12
FINISHED, SILENT, OUT_OF_TURNS = "finished", "silent", "turn_limit"
ENDINGS = (FINISHED, SILENT, OUT_OF_TURNS, "error")

UNREAD_NOTES = "unread_notes"
FLAGS: Mapping[str, str] = {
    "parallel": "several calls in one turn",
    "mixed": "words beside a call",
    "asked": "a question to the user",
    "late_finish": "[Finish] among other words",
    "empty": "a turn without a word or a call",
    "failed_call": "a call answered by an error",
    UNREAD_NOTES: "a session about which nothing is noted, as the memory's reply could not be read",
}
"""What may be odd about a sample; none of it changes a score."""

_QUESTION = re.compile(r"\?(?=\W*(?:\s|$))")


class AgentTurn(NamedTuple):
    """One reply of the agent.

    Attributes:
        words: What it says besides its calls, stripped.
        calls: Each with `name` and `arguments`, as they were made.
    """

    words: str
    calls: Sequence[Mapping[str, Any]]

    @property
    def finishes(self) -> bool:
        """Whether it says that all is done. Words beside a call do not count."""
        return not self.calls and says_finish(self.words)


def ending(turns: Sequence[AgentTurn], limit: int) -> str | None:
    """Why the loop is over after these turns; `None` if it goes on.

    Args:
        turns: All turns so far.
        limit: The most that there may be.
    """
    if turns and turns[-1].finishes:
        return FINISHED
    if len(turns) > 1 and not any(turn.calls for turn in turns[-2:]):
        return SILENT
    return OUT_OF_TURNS if len(turns) >= limit else None


def calls_of(turns: Sequence[AgentTurn]) -> list[dict[str, Any]]:
    """All calls of all turns, in order."""
    return [{"name": call["name"], "arguments": call["arguments"]} for turn in turns for call in turn.calls]


def flags_of(turns: Sequence[AgentTurn], outputs: Sequence[Any], unread: Sequence[int] = ()) -> list[str]:
    """What is odd about a sample, as `FLAGS` has it.

    Args:
        turns: The agent's.
        outputs: What its calls were answered.
        unread: The sessions whose notes could not be read.
    """
    found = {
        "parallel": any(len(turn.calls) > 1 for turn in turns),
        "mixed": any(turn.calls and turn.words for turn in turns),
        "asked": any(_QUESTION.search(turn.words) for turn in turns),
        "late_finish": any(turn.finishes and turn.words.lower() != FINISH.lower() for turn in turns),
        "empty": any(not turn.calls and not turn.words for turn in turns),
        "failed_call": any(isinstance(output, dict) and "error" in output for output in outputs),
        UNREAD_NOTES: bool(unread),
    }
    return [flag for flag in FLAGS if found[flag]]
