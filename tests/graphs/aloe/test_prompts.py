"""The prompts of the two replies of a pair: they differ in what is known of the person, and in nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from dialoom.prompts import ChatMessage, PromptLibrary, Utterance

KNOWN = {"profile": "She keeps two hens.\nShe bakes rye bread.", "personality": "She is blunt."}
SAID = (
    ("user", "My hens are up before me."),
    ("assistant", "What are they called?"),
    ("user", "Flour and Crumb. The bread is better than the names."),
)


def rendered(role: str, turns: int, **known: Any) -> list[ChatMessage]:
    """Return the request for the reply of a role after the first `turns` lines of `SAID`."""
    history: list[Utterance] = [
        {"speaker": role if speaker == "assistant" else speaker, "content": text} for speaker, text in SAID[:turns]
    ]
    return PromptLibrary.load([f"aloe/{role}"])[f"aloe/{role}"].render({"history": history, **known})


@pytest.mark.parametrize("turns", [1, 3])
def test_the_two_replies_are_asked_for_in_the_same_words(turns: int) -> None:
    """The preferred request is the rejected one and, behind it, what is known of the person; so no tone is taught."""
    preferred, rejected = rendered("preferred", turns, **KNOWN), rendered("rejected", turns)
    *same, persona = preferred
    assert same == rejected
    assert rejected[0]["role"] == "system" and [each["content"] for each in rejected[1:]] == [
        text for _, text in SAID[:turns]
    ]
    assert all(part in persona["content"] for part in KNOWN.values())
    assert not any(part in str(same) for part in KNOWN.values())
