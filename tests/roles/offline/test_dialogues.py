"""Whole dialogues between the offline user and the offline assistants."""

from __future__ import annotations

import re

import pytest

from dialoom.roles import offline

from .asking import answer
from .people import ALARM, BOOKS, DINNER, GETAWAY, SINGLE, Case, assistant_request, play, user_request


def test_same_request_same_answer() -> None:
    """Two equal requests get equal answers, and whole dialogues repeat themselves exactly."""
    assert play(DINNER, "all", seed=3) == play(DINNER, "all", seed=3)


@pytest.mark.parametrize("case", [*SINGLE, GETAWAY])
@pytest.mark.parametrize("seed", range(5))
def test_opening_names_no_preference_and_does_not_end(case: Case, seed: int) -> None:
    """The first user line holds no affinity value and never TERMINATE."""
    opening = answer("attentive", user_request(case, []), "personalens/user", seed=seed)
    assert opening.strip() and "TERMINATE" not in opening
    assert not [value for value in case.values if value.lower() in opening.lower()]


@pytest.mark.parametrize("model", sorted(offline.SCRIPTED))
@pytest.mark.parametrize("case", [*SINGLE, GETAWAY])
def test_user_ends_the_dialogue(case: Case, model: str) -> None:
    """The user says TERMINATE once, at the very end of a line, within 8 turns (14 across domains)."""
    user = [text for role, text in play(case, "base", model) if role == "user"]
    assert len(user) <= (8 if len(case.affinities) == 1 else 14)
    assert user[-1].endswith("TERMINATE") and not any("TERMINATE" in text for text in user[:-1])


def test_user_reveals_little_at_a_time() -> None:
    """No user line states more than two kinds of preference."""
    for role, text in play(DINNER, "base"):
        stated = [
            names
            for names in DINNER.affinities["Restaurants"].values()
            if any(v.strip() in text for v in names.split(";"))
        ]
        assert role == "assistant" or len(stated) <= 2


def test_several_domains_are_taken_one_by_one() -> None:
    """The user brings up train, hotel and dinner in that order, each in a line of its own."""
    user = [text.lower() for role, text in play(GETAWAY, "I") if role == "user"][:-1]
    firsts = [
        next(
            at
            for at, text in enumerate(user)
            if (at and re.search(rf"\b(?:{words})\b", text))
            or re.search(rf"(?:start|begin|first).*\b(?:{words})\b", text)
        )
        for words in ("train", "hotel|room|place to stay", "dinner|food|eat|restaurant")
    ]
    assert firsts == sorted(firsts) and len(set(firsts)) == 3


@pytest.mark.parametrize(
    ("case", "facts"),
    [(ALARM, ["6:10 AM", "church bells"]), (DINNER, ["Greek", "nut allergy"]), (BOOKS, ["fantasy", "Elif Ardan"])],
)
def test_attentive_brings_up_what_summaries_tell(case: Case, facts: list[str]) -> None:
    """With summaries the first reply already holds facts that the user has not stated."""
    opening = answer("attentive", user_request(case, []), "personalens/user")
    request = assistant_request(case, [("user", opening)], "I")
    replies = [answer("attentive", request, "personalens/assistant", seed=seed) for seed in range(6)]
    assert all(any(fact in reply for fact in facts) for reply in replies)


def test_attentive_without_summaries_knows_nothing() -> None:
    """Without summaries and without a word from the user no preference turns up."""
    opening = answer("attentive", user_request(DINNER, []), "personalens/user")
    reply = answer("attentive", assistant_request(DINNER, [("user", opening)], "base"), "personalens/assistant")
    assert "Greek" not in reply and "nut allergy" not in reply


@pytest.mark.parametrize("case", SINGLE)
def test_generic_ignores_what_it_is_shown(case: Case) -> None:
    """The generic assistant never uses the summaries."""
    opening = answer("attentive", user_request(case, []), "personalens/user")
    reply = answer("generic", assistant_request(case, [("user", opening)], "all"), "personalens/assistant")
    assert reply and not [value for value in case.values if value in reply]


def test_attentive_takes_up_what_the_user_says() -> None:
    """A preference stated by the user is in the next reply."""
    talk = [("user", "I'd like a place to eat."), ("assistant", "Sure. What do you feel like eating?")]
    request = assistant_request(DINNER, [*talk, ("user", "I usually go for Lebanese food.")], "base")
    assert "Lebanese" in answer("attentive", request, "personalens/assistant")


def test_closing_is_short_and_warm() -> None:
    """After the user's thanks there is no new question."""
    reply = play(DINNER, "I")[-1]
    assert reply[0] == "assistant" and "?" not in reply[1] and len(reply[1].split()) < 60
