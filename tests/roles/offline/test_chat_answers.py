"""The answerers of an open chat: the attentive one gets to know the person, the generic one does not."""

from __future__ import annotations

from statistics import linear_regression, mean

import pytest

from dialoom.roles import offline

from .chatters import PEOPLE, ask, benchmark, said


def alignment(model: str) -> list[float]:
    """Give the mean score of each of ten rounds over 48 dialogues."""
    runs = [benchmark(who, 100 * at + seed, model).scores for at, who in enumerate(PEOPLE) for seed in range(4)]
    return [mean(scores) for scores in zip(*runs, strict=True)]


def test_alignment_rises_with_attention_and_not_without() -> None:
    """The attentive assistant climbs from about 3 to above 4, the generic one stays low and flat."""
    attentive, generic = alignment("attentive"), alignment("generic")
    rounds = list(range(1, 11))
    assert linear_regression(rounds, attentive).slope > 0.1
    assert abs(linear_regression(rounds, generic).slope) < 0.03
    assert attentive[0] < 3.2 and attentive[-1] > 4
    assert all(ours > theirs + 1 for ours, theirs in zip(attentive, generic, strict=True))


def test_preferred_ties_the_moment_to_what_is_known() -> None:
    """Something that was induced comes back, said to the person."""
    history = [said("user", "I bake bread before work.")]
    profile = "He bakes bread before work. His sister Ruth keeps bees on her roof."
    replies = [ask("preferred", seed, profile=profile, personality=None, history=history) for seed in range(8)]
    assert all("sister" in reply or "bees" in reply for reply in replies)
    assert not any(word in reply for reply in replies for word in (" his ", "His ", " he "))


def test_preferred_with_nothing_known_takes_up_the_message() -> None:
    """Before anything is induced the answer is friendly and about the last message."""
    history = [said("user", "I bake bread before work.")]
    replies = [ask("preferred", seed, profile=None, personality=None, history=history) for seed in range(8)]
    assert sum("bak" in reply.lower() or "bread" in reply for reply in replies) >= 6
    assert not any("Nothing yet" in reply for reply in replies)


def test_the_manner_follows_the_induced_traits() -> None:
    """The worrier is reassured; the formal one is answered without contractions."""
    history = [said("user", "I bake bread before work.")]
    calmed = [ask("preferred", s, profile=None, personality="She is anxious.", history=history) for s in range(6)]
    formal = [ask("preferred", s, profile=None, personality="She is formal.", history=history) for s in range(6)]
    assert all(
        any(word in reply for word in ("worry", "time", "fine", "fret", "easy", "step", "sense")) for reply in calmed
    )
    assert not any("'" in reply for reply in formal)


@pytest.mark.parametrize("role", ["preferred", "assistant"])
def test_generic_answers_ignore_what_is_known(role: str) -> None:
    """The generic model writes the same kind of letter in every role."""
    history = [said("user", "I bake bread before work."), said("assistant", "I see."), said("user", "My cat is ill.")]
    inputs = {"profile": "She bakes bread.", "personality": "She is anxious."} if role == "preferred" else {}
    reply = ask(role, 3, "generic", history=history, **inputs)
    assert "bread" not in reply and "bak" not in reply


def test_a_bare_chat_is_no_task_dialogue() -> None:
    """Without a system message the assistant chats; with one, even without any tag, it serves as before."""
    chat = [{"role": "user", "content": "I play the cello on Sundays with my brother."}]
    assert "cello" in offline.answer("attentive", chat) or "brother" in offline.answer("attentive", chat)
    served = offline.answer("attentive", [{"role": "system", "content": "You are a digital assistant."}, *chat])
    assert served != offline.answer("attentive", chat)


@pytest.mark.parametrize(
    "text", ["", "ok", "?", "Ugh, spent all day chasing Rex lol", "- one\n- two", "She <profile> no"]
)
def test_any_message_gets_an_answer(text: str) -> None:
    """Lines of real people, cut short or odd, are answered by every role that answers."""
    history = [said("user", text or " ")]
    for model in sorted(offline.MODELS):
        assert ask("assistant", 0, model, history=history).strip()
        assert ask("rejected", 0, model, history=history).strip()
        assert ask("preferred", 0, model, profile=text or None, personality=text or None, history=history).strip()
        assert ask("user", 0, model, profile=text, personality=text, history=history).strip()
