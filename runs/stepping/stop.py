"""What is to be seen where a session stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialoom.graphs import DialogueFault, Line, Outline
from dialoom.runs.store.branches import StepCall

from .changes import Change


@dataclass(frozen=True, slots=True)
class Cost:
    """What calls took.

    Attributes:
        tokens: Input and output; `None` if some call's are unknown.
        dollars: US dollars; `None` if some call's price is unknown.
    """

    calls: int = 0
    tokens: int | None = 0
    dollars: float | None = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, calls: Sequence[StepCall]) -> Cost:
        """The sum over calls."""
        tokens = [
            None if c.input_tokens is None or c.output_tokens is None else c.input_tokens + c.output_tokens
            for c in calls
        ]
        dollars = [call.cost for call in calls]
        return cls(
            len(calls),
            None if None in tokens else sum(each or 0 for each in tokens),
            None if None in dollars else sum(each or 0.0 for each in dollars),
            sum(call.seconds or 0.0 for call in calls),
        )


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a session stands: one checkpoint of a branch.

    Attributes:
        branch: The branch's name.
        number: The checkpoint's number among the scenario's, in the order in which they were made.
        checkpoint: Its id.
        kind: `step` (nodes ran), `edit` (somebody changed the state), `fork` (LangGraph's mark of a rewind), `input`.
        ran: The nodes that led here.
        next: The nodes that come next; none at the end.
        why: For each of them, how the graph came to it.
        changes: What is different from the checkpoint before.
        calls: What the nodes asked and were answered.
        counts: How far the conversation is, in the recipe's units.
        state: The values of the graph's channels.
        faults: What is wrong with the conversation so far.
        transcript: The conversation so far, or for recipes that have one their outline of it.
    """

    branch: str
    number: int
    checkpoint: str
    kind: str
    ran: tuple[str, ...]
    next: tuple[str, ...]
    why: Mapping[str, str]
    changes: Sequence[Change]
    calls: Sequence[StepCall]
    counts: Mapping[str, int]
    state: Mapping[str, Any]
    faults: Sequence[DialogueFault] = ()
    transcript: Sequence[Line] | Outline = field(default_factory=tuple)

    @property
    def is_end(self) -> bool:
        """Whether nothing comes next."""
        return not self.next

    @property
    def cost(self) -> Cost:
        """What the step took when it was first played."""
        return Cost.of(self.calls)
