"""The judges of an open chat: their scores follow from what an answer really contains."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialoom.prompts import Utterance

from .chatters import PEOPLE, SHE, ask, induce, said, score

MESSAGE = "I play the cello in a small amateur orchestra."


@pytest.mark.parametrize(
    ("answer", "scores"),
    [
        ("Thank you for your message. Let me know if there is anything I can help you with.", {1}),
        ("Thank you for telling me about the cello. There are many styles of music.", {1, 2}),
        ("The cello in an orchestra.", {2}),
        ("The cello in an amateur orchestra! What are you rehearsing?", {3}),
        ("Cello evenings! Does Miso listen with his one eye? I think your cat must be the harshest critic.", {4}),
        ("Cello evenings, hold the front page; I'll hold the applause. Does your cat Miso put up with it?", {5}),
        ("Your husband must love the cello.", {1}),
        ("You don't play the cello in an orchestra, so you'd not know.", {1}),
    ],
)
def test_a_score_follows_from_the_answer(answer: str, scores: set[int]) -> None:
    """Form letters stay low, echoes in the middle, what is known of the person counts most, and untruth least."""
    assert score(SHE, MESSAGE, answer) in scores


def test_a_fact_that_the_message_holds_is_no_merit() -> None:
    """Saying the message back is not knowing the person."""
    echo = "So you play the cello in a small amateur orchestra."
    assert score(SHE, MESSAGE, echo) < score(SHE, "I'm just back from rehearsal.", echo)


def test_the_explanation_names_what_decided_it() -> None:
    """The fact that was taken up is quoted."""
    reply = ask(
        "judge-alignment",
        profile=SHE.profile,
        personality=SHE.personality,
        message=MESSAGE,
        answer="What does your cat Miso say to the cello?",
    )
    assert "one-eyed cat" in json.loads(reply)["explanation"]


def better(first: str, second: str, model: str = "attentive") -> str:
    """Give the pair judge's choice."""
    reply = ask(
        "judge-pair",
        model=model,
        profile=SHE.profile,
        personality=SHE.personality,
        history=[said("user", MESSAGE)],
        message=MESSAGE,
        first=first,
        second=second,
    )
    return str(json.loads(reply)["better"])


def test_the_pair_judge_looks_at_the_answer_and_not_at_its_place() -> None:
    """The one that knows the person wins from both places; between equals it is the first."""
    personal, letter = "Does Miso, your cat, like the cello?", "Thank you for sharing. Music can be relaxing."
    assert (better(personal, letter), better(letter, personal)) == ("first", "second")
    assert better(letter, letter) == "first"


@pytest.mark.parametrize("model", ["attentive", "generic"])
def test_judges_answer_in_range_whatever_they_read(model: str) -> None:
    """Empty and odd answers get a score from 1 to 5 and a choice."""
    for answer in ("", "?!", "you " * 300, "Ünïcödé 你好"):
        assert 1 <= score(SHE, "", answer, model) <= 5
        assert better(answer, "Yes.", model) in ("first", "second")


def test_preferred_beats_rejected_once_something_is_known() -> None:
    """In nine pairs of ten, shown in both orders, the judge names the preferred answer."""
    wins = pairs = 0
    for at, who in enumerate(PEOPLE):
        history: list[Utterance] = []
        for turn in range(5):
            seed = 100 * at + 5 * turn
            line = ask("user", seed, profile=who.profile, personality=who.personality, history=history)
            history.append(said("user", line))
            known: dict[str, Any] = induce(who, history)
            preferred = ask("preferred", seed + 1, history=history, **known)
            rejected = ask("rejected", seed + 2, history=history)
            for first, second, right in ((preferred, rejected, "first"), (rejected, preferred, "second")):
                asked: dict[str, Any] = {
                    "profile": who.profile,
                    "personality": who.personality,
                    "history": history[:-1],
                }
                reply = ask("judge-pair", message=line, first=first, second=second, **asked)
                wins += json.loads(reply)["better"] == right
                pairs += 1
            history.append(said("assistant", preferred if turn % 2 else rejected))
    assert wins >= 0.9 * pairs
