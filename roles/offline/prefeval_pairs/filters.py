"""Those who filter pairs: a judge, answerers without the preference, and a rater.

judge      of a pair: the trait that the preference rules out (of a strange sentence, all of it) in the question is
           `contradicts` if the question wants it, else `fits`; fewer than six words are `lacks_facts`; else `valid`.
           Of some people: the first who has no telling word in common with the preference
answerer   as `attentive` names five traits, so that an answer in spite of the preference is likely and not certain; as
           `generic` the usual choice, which is always against it
rater      by a number from 0 to 9 drawn from the preference's words: 0 is discarded; 1 is rarely violated, 2 and 3 are
           now and then, all others often; even numbers are hard to see
"""

from __future__ import annotations

import json

from dialoom.personas.similarity import content_words

from ..draws import Draws
from ..request import MarkedRequest
from ..understudy import understudy
from .writer import WORDS, slots_of

_FEWEST_WORDS = 6
_LIKELY = {1: "low", 2: "medium", 3: "medium"}


@understudy("prefeval_pairs", "judge")
def judge(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Say what a pair is, or which persona fits: a JSON object."""
    people = [part.body for part in request.parts("persona")]
    if people:
        number = _fitting(request.part("preference"), people)
        why = WORDS.get("judge.found" if number else "judge.none")
        return json.dumps({"explanation": why, "number": number})
    verdict = _verdict(request.part("preference"), request.part("question"))
    return json.dumps({"explanation": WORDS.get(f"judge.{verdict}"), "verdict": verdict})


@understudy("prefeval_pairs", "answerer")
def answer(request: MarkedRequest, draws: Draws) -> str:
    """Answer a question, without any preference to mind."""
    if request.model == "generic":
        return WORDS.say("answer.usual", draws)
    named = dict(zip(("one", "two", "three", "four", "five"), draws.shuffled(WORDS.get("traits")), strict=False))
    return WORDS.say("answer.surveyed", draws, named)


@understudy("prefeval_pairs", "rater")
def rate(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Rate a pair: a JSON object."""
    number = rated_number(request.part("preference"))
    rating = {
        "discard": number == 0,
        "violation_probability": _LIKELY.get(number, "high"),
        "reasoning_difficulty": "low" if number % 2 else "high",
    }
    return json.dumps(rating)


def rated_number(preference: str) -> int:
    """The number of a preference, from 0 to 9, by which it is rated."""
    return Draws("prefeval_pairs", preference).number(0, 9)


def _verdict(preference: str, question: str) -> str:
    trait = set(content_words(slots_of(preference).get("trait", preference)))
    if trait and trait <= set(content_words(question)):
        return "contradicts" if any(words in question.lower() for words in WORDS.get("judge.wants")) else "fits"
    return "lacks_facts" if len(question.split()) < _FEWEST_WORDS else "valid"


def _fitting(preference: str, people: list[str]) -> int:
    told = set(content_words(preference))
    return next((number for number, who in enumerate(people, start=1) if told.isdisjoint(content_words(who))), 0)
