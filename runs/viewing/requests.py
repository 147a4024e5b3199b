"""What a call asked, with what is new in it against another call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from dialoom.prompts import ChatMessage, FunctionCall
from dialoom.prompts.messages import identity, tool_name
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile

Mark = Literal["same", "new", "gone"]


@dataclass(frozen=True, slots=True)
class MarkedMessage:
    """A message of a request: also in the one before, new, or in the one before alone."""

    mark: Mark
    message: ChatMessage

    @property
    def calls(self) -> Sequence[FunctionCall]:
        """What it calls."""
        return self.message.get("tool_calls", ())


@dataclass(frozen=True, slots=True)
class RequestShown:
    """A request against the one before.

    Attributes:
        messages: In their order, those that are gone where they stood.
        tools: The names of the tools that it offers.
        has_before: Whether there is one before; else no message is marked.
    """

    messages: Sequence[MarkedMessage]
    tools: Sequence[str]
    has_before: bool


def request_shown(run: RunFile, call: int, before: int | None = None) -> RequestShown:
    """A call's exact request.

    Args:
        run: The run.
        call: The call's row in the ledger.
        before: The row of the call that it is compared with.

    Raises:
        RunError: If there is no such call.
    """
    asked = run.request(call)
    if asked is None:
        raise RunError(f"there is no call {call} in {run.path}")
    earlier = None if before is None else run.request(before)
    tools = [tool_name(each) for each in asked.tools]
    if earlier is None:
        return RequestShown([MarkedMessage("same", each) for each in asked.messages], tools, False)
    return RequestShown(marked(earlier.messages, asked.messages), tools, True)


def marked(before: Sequence[ChatMessage], now: Sequence[ChatMessage]) -> list[MarkedMessage]:
    """The messages of a request, each marked by whether the one before had it."""
    old, new = ([json.dumps(identity(each)) for each in messages] for messages in (before, now))
    found: list[MarkedMessage] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found += [MarkedMessage("same", each) for each in now[c:d]]
        else:
            found += [MarkedMessage("gone", each) for each in before[a:b]]
            found += [MarkedMessage("new", each) for each in now[c:d]]
    return found
