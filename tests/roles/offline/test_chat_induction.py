"""The induction of an open chat: exactly what the user's lines have given away."""

from __future__ import annotations

import re

import pytest

from .chatters import BARE, BULLETS, PEOPLE, SHE, Chatter, ask, benchmark, induce, said


def unnamed(text: str) -> str:
    """Give a text without the pronouns that may mean its person."""
    return re.sub(r"(?i)\b(?:he/she|his/her|him/her|she|he|her|his|him)\b", "_", text)


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
    found = induce(SHE, [said("user", line)])["profile"] or ""
    assert unnamed(found) == unnamed(known)


@pytest.mark.parametrize(
    ("line", "profile", "personality"),
    [
        ("I'm late as ever. My cat Miso ate my lunch, ha ha.", "He/She has a cat named Miso.", "He/She jokes a lot."),
        (
            "I'm a tired mother, ha ha. My cat Miso bit me. I did the tax by myself.",
            "She has a cat named Miso. She does her tax herself.",
            "She jokes a lot.",
        ),
        ("I did the tax by myself.", "He/She does his/her tax himself/herself.", None),
    ],
)
def test_the_profile_decides_the_pronoun_once_the_chat_has_told_it(
    line: str, profile: str, personality: str | None
) -> None:
    """A personality is drawn for anybody: its "he" is this "she", and neither as long as nobody can know."""
    who = Chatter("She has a cat named Miso. She does her tax herself.", "He jokes a lot. He keeps his word.")
    assert induce(who, [said("user", line)]) == {"profile": profile, "personality": personality}


def test_what_was_told_is_known_under_either_pronoun() -> None:
    """The responder reads "He/She has ..." as what it says of the person, and ties its answer to it."""
    history = [said("user", "My sourdough rose."), said("assistant", "Lovely."), said("user", "I baked for the choir.")]
    replies = [
        ask("preferred", profile=profile, personality=None, history=history)
        for profile in ("He/She sings in a choir. His/Her oven leaks.", "He sings in a choir. His oven leaks.")
    ]
    assert all(re.search(r"\bsing(?:ing)? in a choir", reply) for reply in replies)
    assert not any(re.search(r"(?i)\bhe\b|\bhis\b|/", reply) for reply in replies)


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
            places = [unnamed(whole[kind]).find(unnamed(part)) for part in parts]
            assert -1 not in places and places == sorted(places)
            assert {*map(unnamed, before[kind])} <= {*map(unnamed, parts)}
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
    assert induce(SHE, history)["personality"] == "He/She worries too much about money."
