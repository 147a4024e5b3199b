"""The answerers of an open chat: the attentive one gets to know the person, the generic one does not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import linear_regression, mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.roles import offline

from .chatters import PEOPLE, ask, benchmark, said

ROOT = Path(__file__).parents[3]
BREAD = [said("user", "I bake bread before work.")]


def alignment(model: str) -> list[float]:
    """Give the mean score of each of ten rounds over 36 dialogues."""
    runs = [benchmark(who, 100 * at + seed, model).scores for at, who in enumerate(PEOPLE) for seed in range(3)]
    return [mean(scores) for scores in zip(*runs, strict=True)]


def test_alignment_rises_with_attention_and_not_without() -> None:
    """The attentive assistant climbs from about 3 to above 4, the generic one stays low and flat."""
    attentive, generic = alignment("attentive"), alignment("generic")
    rounds = list(range(1, 11))
    assert linear_regression(rounds, attentive).slope > 0.08
    assert abs(linear_regression(rounds, generic).slope) < 0.04
    assert attentive[0] < 3.2 and attentive[-1] > 4
    assert all(ours > theirs + 1 for ours, theirs in zip(attentive, generic, strict=True))


def test_preferred_ties_the_moment_to_what_is_known() -> None:
    """Something that was induced comes back, said to the person."""
    profile = "He bakes bread before work. His sister Ruth keeps bees on a roof."
    replies = [ask("preferred", seed, profile=profile, personality=None, history=BREAD) for seed in range(8)]
    assert all("sister" in reply or "bees" in reply for reply in replies)
    assert not any(re.search(r"\b(?:[Hh]is|he|my|I bake)\b", reply) for reply in replies)


def test_preferred_with_nothing_known_takes_up_the_message() -> None:
    """Before anything is induced the answer is friendly and about the last message."""
    replies = [ask("preferred", seed, profile=None, personality=None, history=BREAD) for seed in range(8)]
    assert all("bak" in reply.lower() or "bread" in reply for reply in replies)
    assert not any("Nothing yet" in reply for reply in replies)


def test_the_manner_follows_the_induced_traits() -> None:
    """The worrier is reassured, the formal one is spoken to formally."""
    calm = r"worry|time|fine|fret|easy|step|sense"
    stiff = r"pleasure|obliged|Permit|should be glad|agreeable|respect"
    for personality, words, others in (("She is anxious.", calm, stiff), ("She is formal.", stiff, calm)):
        replies = [ask("preferred", seed, profile=None, personality=personality, history=BREAD) for seed in range(6)]
        assert all(re.search(words, reply) and not re.search(others, reply) for reply in replies)


def test_answers_do_not_depend_on_the_process() -> None:
    """Another hash seed changes no line, no score, no reason and no pool."""
    code = (
        "from tests.roles.offline.chatters import SHE, ask, benchmark, induce\n"
        "from tests.roles.offline.test_pool_writer import written\n"
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
    """The generic model writes the same kind of letter in every role."""
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
    """Descriptions and lines of real people, cut short or odd, are answered by every role of the chat."""
    history = [said("user", line or " "), said("assistant", personality or " "), said("user", profile or " ")]
    persona = {"profile": profile, "personality": personality}
    for role, known in (("user", persona), ("preferred", persona), ("rejected", {}), ("assistant", {})):
        assert ask(role, 1, model, history=history, **known).strip()
    assert set(json.loads(ask("induction", 1, model, history=history, **persona))) == {"profile", "personality"}
    assert 1 <= json.loads(ask("judge-alignment", 1, model, message=line, answer=profile, **persona))["score"] <= 5
