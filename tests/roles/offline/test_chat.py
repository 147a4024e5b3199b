"""Offline players of an open chat: lines, answers, induction and judges."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import linear_regression, mean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.prompts import Utterance
from dialoom.roles import offline

from .chatters import BARE, BULLETS, PEOPLE, SHE, Chatter, ask, benchmark, induce, said, score


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
def test_fact_is_told_in_the_first_person(fact: str, told: str) -> None:
    assert told in opening(fact)


@pytest.mark.parametrize(
    "fact", ["She met her twice.", "Friends call her Bibi.", "His niece likes them.", "Their nieces like them."]
)
def test_uncertain_facts_are_not_told(fact: str) -> None:
    assert not re.search(r"twice|niece|my Bibi|Friends call her", opening(fact))


@pytest.mark.parametrize("who", PEOPLE)
def test_lines_are_short_and_never_repeated(who: Chatter) -> None:
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


def test_profile_and_personality_may_use_different_pronouns() -> None:
    mixed = Chatter(SHE.profile, "They are stubborn. They keep their distance. They laugh at their own mishaps.")
    assert not any(re.search(r"\b(?:[Ss]he|[Hh]er)\b", line) for line in benchmark(mixed).lines("user"))


def test_dialogue_depends_on_person_and_seed_alone() -> None:
    talks = {str(benchmark(who, seed, rounds=3).history) for who in PEOPLE for seed in range(4)}
    assert len(talks) == len(PEOPLE) * 4
    assert benchmark(SHE, 5).history == benchmark(SHE, 5).history


def test_manner_of_the_person_shows() -> None:
    formal = " ".join(benchmark(Chatter(SHE.profile, "She is formal and courteous.")).lines("user"))
    lively = " ".join(benchmark(Chatter(SHE.profile, "She is enthusiastic and full of energy.")).lines("user"))
    stiff = r"Good day|Allow me|I must say|I trust that|pleasure|One does|obliged|I should add|Permit me|privilege"
    assert len(re.findall(stiff, formal)) >= 4 > len(re.findall(stiff, lively))
    assert lively.count("!") >= 4 > formal.count("!")


def test_person_without_a_description_still_chats() -> None:
    assert len(set(benchmark(Chatter("", "")).lines("user"))) == 10


def test_person_reacts_to_a_form_letter_or_a_question() -> None:
    line = opening(SHE.profile)
    replies = ("How long have you been at it?", "Thank you for sharing. Let me know if I can help.", "I see.")
    histories = [[said("user", line), said("assistant", reply)] for reply in replies]
    after = {ask("user", 7, profile=SHE.profile, personality="", history=history) for history in histories}
    assert len(after) == 3


ROOT = Path(__file__).parents[3]
BREAD = [said("user", "I bake bread before work.")]


def alignment(model: str) -> list[float]:
    """Give the mean score of each of ten rounds over 36 dialogues."""
    runs = [benchmark(who, 100 * at + seed, model).scores for at, who in enumerate(PEOPLE) for seed in range(3)]
    return [mean(scores) for scores in zip(*runs, strict=True)]


def test_alignment_rises_with_attention_only() -> None:
    """The attentive assistant climbs from about 3 to above 4, the generic one stays low and flat."""
    attentive, generic = alignment("attentive"), alignment("generic")
    rounds = list(range(1, 11))
    assert linear_regression(rounds, attentive).slope > 0.08
    assert abs(linear_regression(rounds, generic).slope) < 0.04
    assert attentive[0] < 3.2 and attentive[-1] > 4
    assert all(ours > theirs + 1 for ours, theirs in zip(attentive, generic, strict=True))


def test_preferred_answer_uses_what_is_known() -> None:
    profile = "He bakes bread before work. His sister Ruth keeps bees on a roof."
    replies = [ask("preferred", seed, profile=profile, personality=None, history=BREAD) for seed in range(8)]
    assert all("sister" in reply or "bees" in reply for reply in replies)
    assert not any(re.search(r"\b(?:[Hh]is|he|my|I bake)\b", reply) for reply in replies)


def test_preferred_answer_without_knowledge_is_about_the_message() -> None:
    replies = [ask("preferred", seed, profile=None, personality=None, history=BREAD) for seed in range(8)]
    assert all("bak" in reply.lower() or "bread" in reply for reply in replies)
    assert not any("Nothing yet" in reply for reply in replies)


def test_answer_fits_the_induced_traits() -> None:
    calm = r"worry|time|fine|fret|easy|step|sense"
    stiff = r"pleasure|obliged|Permit|should be glad|agreeable|respect"
    for personality, words, others in (("She is anxious.", calm, stiff), ("She is formal.", stiff, calm)):
        replies = [ask("preferred", seed, profile=None, personality=personality, history=BREAD) for seed in range(6)]
        assert all(re.search(words, reply) and not re.search(others, reply) for reply in replies)


def test_answers_do_not_depend_on_the_process() -> None:
    code = (
        "from tests.roles.offline.chatters import SHE, ask, benchmark, induce\n"
        "from tests.roles.offline.test_mechanism import written\n"
        "talk = benchmark(SHE, 3, rounds=6)\n"
        "known = {'profile': SHE.profile, 'personality': SHE.personality}\n"
        "said = [ask(role, 1, history=talk.history[:9], **known) for role in ('preferred', 'induction')]\n"
        "judged = ask('judge-alignment', message='My cat is ill.', answer='Does your sister help?', **known)\n"
        "told = (talk.history, said, judged, written('profile', 3), written('personality', 3))"
    )
    here: dict[str, object] = {}
    exec(code, here)
    command = [sys.executable, "-c", f"{code}\nprint(told)"]
    env = {"PYTHONHASHSEED": "4242", "PYTHONPATH": str(ROOT)}
    there = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert there.strip() == str(here["told"])


@pytest.mark.parametrize("role", ["preferred", "assistant"])
def test_generic_answers_ignore_what_is_known(role: str) -> None:
    history = [*BREAD, said("assistant", "I see."), said("user", "My cat is ill.")]
    inputs = {"profile": "She bakes bread.", "personality": "She is anxious."} if role == "preferred" else {}
    reply = ask(role, 3, "generic", history=history, **inputs)
    assert "bread" not in reply and "bak" not in reply


_BITS = st.sampled_from(
    "She He They their her them his I my you is are has likes walks , and but who when . ! ? ; : Ann cat named Miso "
    "twice never - \n ' the a 33 because They're she's not hates dogs <profile> lol".split(" ")
)
_TEXTS = st.lists(_BITS, max_size=14).map(" ".join) | st.text(max_size=25)


@settings(max_examples=60)
@given(profile=_TEXTS, personality=_TEXTS, line=_TEXTS, model=st.sampled_from(sorted(offline.SCRIPTED)))
def test_any_persona_and_any_lines_get_an_answer(profile: str, personality: str, line: str, model: str) -> None:
    history = [said("user", line or " "), said("assistant", personality or " "), said("user", profile or " ")]
    persona = {"profile": profile, "personality": personality}
    for role, known in (("user", persona), ("preferred", persona), ("rejected", {}), ("assistant", {})):
        assert ask(role, 1, model, history=history, **known).strip()
    assert set(json.loads(ask("induction", 1, model, history=history, **persona))) == {"profile", "personality"}
    assert 1 <= json.loads(ask("judge-alignment", 1, model, message=line, answer=profile, **persona))["score"] <= 5


def unnamed(text: str) -> str:
    """Give a text without the pronouns that may mean its person."""
    return re.sub(r"(?i)\b(?:he/she|his/her|him/her|she|he|her|his|him)\b", "_", text)


def test_nothing_is_known_at_first() -> None:
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
def test_paraphrase_tells_its_fact_and_no_other(line: str, known: str) -> None:
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
def test_pronoun_follows_the_profile_once_told(line: str, profile: str, personality: str | None) -> None:
    who = Chatter("She has a cat named Miso. She does her tax herself.", "He jokes a lot. He keeps his word.")
    assert induce(who, [said("user", line)]) == {"profile": profile, "personality": personality}


def test_induced_facts_are_understood_under_either_pronoun() -> None:
    history = [said("user", "My sourdough rose."), said("assistant", "Lovely."), said("user", "I baked for the choir.")]
    replies = [
        ask("preferred", profile=profile, personality=None, history=history)
        for profile in ("He/She sings in a choir. His/Her oven leaks.", "He sings in a choir. His oven leaks.")
    ]
    assert all(re.search(r"\bsing(?:ing)? in a choir", reply) for reply in replies)
    assert not any(re.search(r"(?i)\bhe\b|\bhis\b|/", reply) for reply in replies)


def test_assistant_lines_are_no_evidence() -> None:
    history = [said("user", "Hi."), said("assistant", "You play the cello in a small amateur orchestra, don't you?")]
    assert induce(SHE, history)["profile"] is None


@pytest.mark.parametrize("who", PEOPLE)
def test_known_facts_grow_in_the_descriptions_words_and_order(who: Chatter) -> None:
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
def test_each_line_tells_about_one_fact(who: Chatter) -> None:
    talk = benchmark(who, seed=4, rounds=5)
    found = induce(who, talk.history)["profile"] or ""
    assert 4 <= len([part for part in re.split(r"(?<=[.!?])\s+|\n", found) if part]) <= 6


@pytest.mark.parametrize("who", [BARE, BULLETS])
def test_lines_of_a_description_stay_lines(who: Chatter) -> None:
    found = induce(who, benchmark(who).history)["profile"] or ""
    assert set(found.splitlines()) <= set(who.profile.splitlines())


def test_trait_is_known_once_it_shows() -> None:
    history = [said("user", "I read it again, fingers crossed. I hope that doesn't sound odd.")]
    assert induce(SHE, history)["personality"] == "He/She worries too much about money."


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
def test_score_follows_from_the_answer(answer: str, scores: set[int]) -> None:
    assert score(SHE, MESSAGE, answer) in scores


def test_repeating_the_message_earns_nothing() -> None:
    echo = "So you play the cello in a small amateur orchestra."
    assert score(SHE, MESSAGE, echo) < score(SHE, "I'm just back from rehearsal.", echo)


def test_explanation_quotes_what_decided_it() -> None:
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


def test_pair_judge_ignores_the_position() -> None:
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
