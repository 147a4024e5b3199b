"""The person in an open chat: its facts in the first person, in its own manner, never the same line twice."""

from __future__ import annotations

import re

import pytest

from .chatters import PEOPLE, SHE, Chatter, ask, benchmark, said


def opening(fact: str) -> str:
    """Give the first line of somebody of whom one thing is known."""
    return ask("user", profile=fact, personality="", history=[])


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ("She works at a bakery in Leeds and lives with her son.", "I work at a bakery in Leeds and live with my son."),
        ("Her sister runs a bakery, and she helps out.", "My sister runs a bakery."),
        (
            "He never eats meat and walks his two dogs before dawn.",
            "I never eat meat and walk my two dogs before dawn.",
        ),
        ("They teach maths and live with their two cats.", "I teach maths and live with my two cats."),
        ("I work nights and my cat does not mind.", "I work nights and my cat does not mind."),
        ("Likes long walks and avoids crowds.", "I like long walks and avoid crowds."),
        ("Married with two children.", "I am married with two children."),
        ("Two cats, Miso and Tofu.", "Two cats, Miso and Tofu."),
        ("She and her husband run a small inn.", "I and my husband run a small inn."),
        ("On Sundays she visits her mother, who lives alone.", "On Sundays I visit my mother, who lives alone."),
        ("Her grandmother taught her to sew.", "My grandmother taught me to sew."),
        ("He has a twin brother in Oslo and they talk every week.", "I have a twin brother in Oslo."),
        ("He is left-handed and does not drive.", "I am left-handed and do not drive."),
        ("She has been learning Welsh since she was forty.", "I have been learning Welsh since I was forty."),
        ("He often cooks, rarely cleans and never irons.", "I often cook, rarely clean and never iron."),
        ("They grew up in Lagos and moved when they were nine.", "I grew up in Lagos and moved when I was nine."),
        ("She likes hard crosswords in ink and walks by the sea.", "I like hard crosswords in ink."),
        ("This person keeps bees.", "I keep bees."),
        ("She's been a vet for years and she's tall.", "I have been a vet for years and I am tall."),
        ("He fosters a dog and yodels.", "I foster a dog and yodel."),
    ],
)
def test_a_fact_is_told_in_the_first_person(fact: str, told: str) -> None:
    """A line tells it as its person would, and ends before anything uncertain."""
    assert told in opening(fact)


@pytest.mark.parametrize(
    "fact", ["She met her twice.", "Friends call her Bibi.", "His niece likes them.", "Their nieces like them."]
)
def test_what_cannot_be_told_with_certainty_is_not_told(fact: str) -> None:
    """No sentence about somebody uncertain is put into the person's mouth."""
    assert not re.search(r"twice|niece|my Bibi|Friends call her", opening(fact))


@pytest.mark.parametrize("who", PEOPLE)
def test_lines_are_short_speak_for_themselves_and_are_never_said_twice(who: Chatter) -> None:
    """In twelve rounds: no list, no trace of a template or of the third person, nothing again."""
    talk = benchmark(who, seed=3, rounds=12)
    for speaker in ("user", "assistant"):
        lines = talk.lines(speaker)
        assert len(set(lines)) == 12
        for line in lines:
            assert len(line.split()) < 60
            assert not re.search(r"[*\n<>{}|\[\]]|^-|\s\s|\s[.,;?!]|[.,;?!][.,;]", line), line
            assert not re.search(r"\b(\w+) \1\b|\b[Aa] (?!one|eu)[aeio]\w|\b[Aa]n [bcdfgjklmnpqrstvwz]\w", line), line
            assert line[0].isupper() and line[-1] in ".!?", line
    assert not any(re.search(r"(?:^|[.!?] )(?:She|He|They|Her|His|Their)\b", line) for line in talk.lines("user"))


def test_profile_and_personality_may_call_the_person_differently() -> None:
    """They are drawn from two pools: "she" in one and "they" in the other is one person all the same."""
    mixed = Chatter(SHE.profile, "They are stubborn. They keep their distance. They laugh at their own mishaps.")
    assert not any(re.search(r"\b(?:[Ss]he|[Hh]er)\b", line) for line in benchmark(mixed).lines("user"))


def test_another_seed_or_person_makes_another_dialogue_and_the_same_makes_the_same() -> None:
    """Nothing but the request and the seed decides."""
    talks = {str(benchmark(who, seed, rounds=3).history) for who in PEOPLE for seed in range(4)}
    assert len(talks) == len(PEOPLE) * 4
    assert benchmark(SHE, 5).history == benchmark(SHE, 5).history


def test_the_manner_shows() -> None:
    """A formal person is stiff, an enthusiastic one does not go without exclamation marks."""
    formal = " ".join(benchmark(Chatter(SHE.profile, "She is formal and courteous.")).lines("user"))
    lively = " ".join(benchmark(Chatter(SHE.profile, "She is enthusiastic and full of energy.")).lines("user"))
    stiff = r"Good day|Allow me|I must say|I trust that|pleasure|One does|obliged|I should add|Permit me|privilege"
    assert len(re.findall(stiff, formal)) >= 4 > len(re.findall(stiff, lively))
    assert lively.count("!") >= 4 > formal.count("!")


def test_a_person_without_any_description_still_chats() -> None:
    """Ten rounds of somebody about whom nothing is known are ten different lines."""
    assert len(set(benchmark(Chatter("", "")).lines("user"))) == 10


def test_the_person_reacts_to_a_form_letter_or_a_question() -> None:
    """What the other one said changes the next line."""
    line = opening(SHE.profile)
    replies = ("How long have you been at it?", "Thank you for sharing. Let me know if I can help.", "I see.")
    histories = [[said("user", line), said("assistant", reply)] for reply in replies]
    after = {ask("user", 7, profile=SHE.profile, personality="", history=history) for history in histories}
    assert len(after) == 3
