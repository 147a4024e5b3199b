"""A prompt whose replies may be longer than its role's limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dialoom.prompts import ChatMessage, Prompt, PromptError
from dialoom.roles import CallPlace, Completion, ModelBinding, Role
from dialoom.roles.gateway import Request

SOURCE = "---\nid: a/b\nversion: 1\nrole: assistant\ninputs: []\n{more}---\n=== user ===\nHello."


class Gateway:
    """Keeps what is asked."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        self.asked.append(request)
        return Completion("Hi.")


class Site:
    """One place."""

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:
        return CallPlace("s", "n", 0, 0, 1)

    def heard(self, completion: Completion) -> None:
        pass


@pytest.mark.parametrize(
    ("more", "limit", "sent"), [("", 300, 300), ("more: 200\n", 300, 500), ("more: 200\n", None, None)]
)
async def test_it_is_added_to_a_limit_and_to_no_limit_not(more: str, limit: int | None, sent: int | None) -> None:
    """So another limit of the role's moves it, too."""
    gateway: Any = Gateway()
    prompt = Prompt.parse(SOURCE.format(more=more), "here")
    await Role(prompt, ModelBinding(model="x/y", temperature=0, max_reply=limit), None, gateway)({}, Site())
    assert [request.max_reply for request in gateway.asked] == [sent]


def test_it_is_no_negative_number() -> None:
    """Said with the place."""
    with pytest.raises(PromptError, match="front matter 'more'"):
        Prompt.parse(SOURCE.format(more="more: -1\n"), "here")
