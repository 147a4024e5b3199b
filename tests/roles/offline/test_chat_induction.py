"""The induction of an open chat: exactly what the user's lines have given away."""

from __future__ import annotations

import re

import pytest

from .chatters import BARE, BULLETS, PEOPLE, SHE, Chatter, benchmark, induce, said


def test_nothing_is_known_at_first() -> None:
    """A greeting gives nothing away."""
    assert induce(SHE, [said("user", "Hello there, how are you?")]) == {"profile": None, "personality": None}


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("My cat Miso, the one-eyed one, is asleep again.", "She has a one-eyed cat named Miso."),
        ("been playing cello with our little amateur orchestra", "She plays the cello in a small amateur orchestra."),
        (
            "My big sister has this bakery, and on Saturdays I help her sell the rolls.",
            "Her older sister runs a bakery, and she helps out there on Saturdays.",
        ),
        ("Even in the snow I took my bike to work today.", "She cycles to work even when it snows."),
        ("Dad showed me how one repairs a clock.", "Her father taught her to repair clocks."),
    ],
)
def test_a_paraphrase_gives_away_its_fact_and_no_other(line: str, known: str) -> None:
    """Lines as a real model would write them count for the one fact that they tell."""
    assert induce(SHE, [said("user", line)])["profile"] == known


def test_assistant_lines_are_no_evidence() -> None:
    """What the other one guesses counts for nothing."""
    history = [said("user", "Hi."), said("assistant", "You play the cello in a small amateur orchestra, don't you?")]
    assert induce(SHE, history)["profile"] is None


@pytest.mark.parametrize("who", PEOPLE)
def test_what_is_known_grows_in_the_words_and_order_of_the_description(who: Chatter) -> None:
    """Each round's sentences are the description's own, in its order, and none is forgotten."""
    talk = benchmark(who, seed=2)
    whole = {"profile": who.profile, "personality": who.personality}
    before: dict[str, list[str]] = {"profile": [], "personality": []}
    for end in range(1, len(talk.history), 2):
        found = induce(who, talk.history[:end])
        for kind, text in found.items():
            parts = [part for part in re.split(r"(?<=[.!?])\s+|\n", text or "") if part]
            places = [whole[kind].find(part) for part in parts]
            assert -1 not in places and places == sorted(places)
            assert set(before[kind]) <= set(parts)
            before[kind] = parts
    assert len(before["profile"]) >= 7 and before["personality"]


@pytest.mark.parametrize("who", PEOPLE)
def test_each_line_gives_away_about_one_fact(who: Chatter) -> None:
    """Over the first rounds what is known grows by one fact a round."""
    talk = benchmark(who, seed=4, rounds=5)
    found = induce(who, talk.history)["profile"] or ""
    assert 4 <= len([part for part in re.split(r"(?<=[.!?])\s+|\n", found) if part]) <= 6


@pytest.mark.parametrize("who", [BARE, BULLETS])
def test_lines_of_a_description_stay_lines(who: Chatter) -> None:
    """Facts that stood on lines of their own are given back on lines of their own."""
    found = induce(who, benchmark(who).history)["profile"] or ""
    assert set(found.splitlines()) <= set(who.profile.splitlines())


def test_a_trait_is_known_once_its_manner_shows() -> None:
    """Worry in the wording gives away the worrier, and not the stubborn one."""
    history = [said("user", "I read it again, fingers crossed. I hope that doesn't sound odd.")]
    assert induce(SHE, history)["personality"] == "She worries too much about money."
