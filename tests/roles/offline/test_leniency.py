"""Requests that are cut short, mixed up or nonsense still get an answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.roles import offline

from .asking import answer
from .people import DINNER, judge, play, user_request

_TAGS = [
    "demographics",
    "affinities",
    "summary",
    "situation",
    "task",
    "conversation",
    "instruction",
    "metric",
    "goal",
    "odd",
]
_BITS = st.one_of(
    st.text(max_size=30),
    st.builds(lambda tag, body: f"<{tag}>{body}</{tag}>", st.sampled_from(_TAGS), st.text(max_size=30)),
    st.builds(lambda tag: f"<{tag} domain='Books'", st.sampled_from(_TAGS)),
    st.sampled_from(
        [
            "</summary>",
            "Genre: ;;N/A;",
            "I'd like dinner for two.",
            "TERMINATE",
        ]
    ),
    st.builds(lambda text: f'<affinities domain="Alarm">\nAlarm Time: {text}\n</affinities>', st.text(max_size=12)),
)
_MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["system", "user", "assistant", "tool"]),
            "content": st.lists(_BITS, max_size=5).map("\n".join),
        }
    ),
    max_size=6,
)


@settings(max_examples=100)
@given(
    messages=_MESSAGES,
    prompt=st.sampled_from(
        ["personalens/user", "personalens/assistant", "personalens/judge", "aloe/user", "aloe/judge"]
    ),
    model=st.sampled_from(sorted(offline.SCRIPTED)),
    seed=st.none() | st.integers(0, 9),
)
def test_arbitrary_messages_get_an_answer(
    messages: list[dict[str, str]], prompt: str, model: str, seed: int | None
) -> None:
    """Whatever the messages, the answer is a non-empty string."""
    assert answer(model, messages, prompt, seed=seed).strip()


@pytest.mark.parametrize("tag", ["demographics", "affinities", "summary", "situation", "task"])
def test_user_does_without_any_one_block(tag: str) -> None:
    """A user request lacking one kind of block still opens a conversation."""
    messages = user_request(DINNER, [])
    messages[0]["content"] = messages[0]["content"].replace(f"<{tag}", "<odd")
    opening = answer("attentive", messages, "personalens/user")
    assert opening.strip() and "TERMINATE" not in opening


def test_empty_and_redacted_values_are_never_spoken() -> None:
    """Values that say nothing are not revealed."""
    case = DINNER.__class__(
        DINNER.demographics,
        {
            "Restaurants": {
                "Cuisine Preference": "[Redacted]",
                "Dietary Restrictions": "N/A",
                "Ambiance": "no preference",
                "Mood": "",
            }
        },
        {},
        DINNER.situation,
        DINNER.intent,
        DINNER.goal,
    )
    said = " ".join(text for role, text in play(case) if role == "user")
    assert not any(word in said for word in ("Redacted", "N/A", "no preference"))


def test_non_ascii_values_survive() -> None:
    """Names with accents are said and judged as they are written."""
    case = DINNER.__class__(
        DINNER.demographics,
        {"Books": {"Favourite Authors": "Søren Ålund; Zoë Žižka", "Genre": "poésie"}},
        {"Books": "His favorite authors, such as Søren Ålund and Zoë Žižka, come first."},
        DINNER.situation,
        "Find a new book by your favorite authors.",
        "A book is found.",
    )
    assert "Søren Ålund" in " ".join(text for role, text in play(case, "I") if role == "assistant")


def test_a_judge_without_a_conversation_answers_in_range() -> None:
    """An empty conversation gets a low but valid score, and no completed task."""
    for metric in ("personalization", "task_completion", "naturalness", "coherence"):
        reply = judge(DINNER, [], metric)
        assert reply.get("verdict", False) is False and reply.get("score", 1) in (1, 2, 3)
