"""The reducer of a conversation."""

from __future__ import annotations

import pytest

from dialoom.graphs.conversation import appended, lines, said


def test_plain_values_become_messages() -> None:
    """As a server hands on what somebody has edited: a known id takes that line's place, a new one goes to the end."""
    before = [said("user", "Hello.", 0), said("assistant", "Good day.", 1)]
    edited = {"type": "ai", "id": "1-assistant", "name": "assistant", "content": "Hi there."}
    new = {"type": "human", "id": "2-user", "name": "user", "content": "A question."}
    after = appended(before, [edited, new])
    assert [(line.role, line.content) for line in lines(after)] == [
        ("user", "Hello."),
        ("assistant", "Hi there."),
        ("user", "A question."),
    ]
    assert after[1] == said("assistant", "Hi there.", 1)


def test_a_message_without_an_id_is_refused() -> None:
    """As a message or as plain values."""
    with pytest.raises(ValueError, match=r"needs an id before it is kept: 'Hello\.'"):
        appended([], [{"role": "user", "content": "Hello."}])
