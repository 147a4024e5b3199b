"""The person in an open chat: its facts in the first person, in its own manner, never the same line twice."""

from __future__ import annotations

import re

import pytest

from .chatters import PEOPLE, SHE, Chatter, ask, benchmark, said


def opening(fact: str, around: str = "") -> str:
    """Give the first line of somebody of whom one thing is known; `around` shows how the person is called."""
    return ask("user", profile=fact, personality=around, history=[])


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ("She works at a bakery in Leeds and lives with her son.", "I work at a bakery in Leeds and live with my son."),
        (
            "Her sister runs a bakery and she helps out on Saturdays.",
            "My sister runs a bakery and I help out on Saturdays.",
        ),
        (
            "He never eats meat and walks his two dogs before dawn.",
            "I never eat meat and walk my two dogs before dawn.",
        ),
        ("They teach maths and live with their two cats.", "I teach maths and live with my two cats."),
        ("I work nights and my cat does not mind.", "I work nights and my cat doesn't mind."),
        ("Likes long walks and avoids crowds.", "I like long walks and avoid crowds."),
        ("Married with two children.", "I'm married with two children."),
        ("A retired teacher from Hull.", "I'm a retired teacher from Hull."),
        ("Two cats, Miso and Tofu.", "I have two cats, Miso and Tofu."),
        ("She and her husband run a small inn.", "My husband and I run a small inn."),
        ("On Sundays she visits her mother, who lives alone.", "On Sundays I visit my mother, who lives alone."),
        ("Her daughter started school and she walks her there.", "My daughter started school and I walk her there."),
        ("Her grandmother taught her to sew.", "My grandmother taught me to sew."),
        (
            "He has a twin brother in Oslo and they talk every week.",
            "I have a twin brother in Oslo and we talk every week.",
        ),
        ("She takes her dog with her everywhere.", "I take my dog with me everywhere."),
        ("He is left-handed and does not drive.", "I'm left-handed and don't drive."),
        ("She has been learning Welsh since she was forty.", "I've been learning Welsh since I was forty."),
        ("He often cooks, rarely cleans and never irons.", "I often cook, rarely clean and never iron."),
        ("Friends call her Bibi.", "Friends call me Bibi."),
        ("They grew up in Lagos and moved when they were nine.", "I grew up in Lagos and moved when I was nine."),
        ("- Favourite dish: dumplings", "My favourite dish is dumplings."),
        ("This person keeps bees.", "I keep bees."),
    ],
)
def test_a_fact_is_told_in_the_first_person(fact: str, told: str) -> None:
    """Pronouns, verbs and possessives of any form of description change together."""
    assert told in opening(fact)


@pytest.mark.parametrize("who", PEOPLE)
def test_no_line_is_said_twice(who: Chatter) -> None:
    """In twelve rounds neither side says a line again, whatever the facts are worth."""
    talk = benchmark(who, seed=3, rounds=12)
    for speaker in ("user", "assistant"):
        assert len(set(talk.lines(speaker))) == 12


def test_profile_and_personality_may_call_the_person_differently() -> None:
    """They are drawn from two pools: "she" in one and "they" in the other is one person all the same."""
    mixed = Chatter(SHE.profile, "They are stubborn. They keep their distance. They laugh at their own mishaps.")
    lines = benchmark(mixed).lines("user")
    assert not any(re.search(r"\b(?:[Ss]he|[Hh]er)\b", line) for line in lines)


def test_no_two_dialogues_are_alike() -> None:
    """Another seed or another person makes another dialogue."""
    talks = {str(benchmark(who, seed, rounds=3).history) for who in PEOPLE for seed in range(4)}
    assert len(talks) == len(PEOPLE) * 4


def test_the_same_request_gets_the_same_line() -> None:
    """Nothing but the request and the seed decides."""
    assert benchmark(SHE, 5).history == benchmark(SHE, 5).history


@pytest.mark.parametrize("who", PEOPLE)
def test_lines_are_short_and_speak_for_themselves(who: Chatter) -> None:
    """A line has no list, no stage direction and no trace of the description's third person at its start."""
    for line in benchmark(who, seed=1).lines("user"):
        assert len(line.split()) < 60
        assert not re.search(r"[*\n<>{}|\[\]]|^-", line)
        assert not re.match(r"(?:She|He|They|Her|His|Their)\b", line)


def test_the_manner_shows() -> None:
    """A formal person writes without contractions, an enthusiastic one does not go without exclamation marks."""
    formal = Chatter(SHE.profile, "She is formal and courteous.")
    lively = Chatter(SHE.profile, "She is enthusiastic and full of energy.")
    assert not re.search(r"\b(?:I'm|don't|it's|I've|can't)\b", " ".join(benchmark(formal).lines("user")))
    assert sum("!" in line for line in benchmark(lively).lines("user")) >= 4


def test_a_person_without_any_description_still_chats() -> None:
    """Ten rounds of somebody about whom nothing is known are ten different lines."""
    assert len(set(benchmark(Chatter("", "")).lines("user"))) == 10


def test_the_person_reacts_to_a_form_letter_or_a_question() -> None:
    """What the other one said changes the next line."""
    line = ask("user", profile=SHE.profile, personality="", history=[])
    after = {
        ask("user", 7, profile=SHE.profile, personality="", history=[said("user", line), said("assistant", reply)])
        for reply in ("How long have you been at it?", "Thank you for sharing. Let me know if I can help.", "I see.")
    }
    assert len(after) == 3
