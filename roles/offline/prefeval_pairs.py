"""The understudies that write and filter PrefEval pairs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dialoom.personas.similarity import content_words

from .request import Draws, MarkedRequest, values_of
from .understudy import understudy
from .words import Words, heard

WORDS = Words(Path(__file__).parent / "data" / "prefeval_pairs" / "lines.toml")

_KEY = re.compile(r'JSON object of[^"]*"(\w+)"')
_FAULTS = {7: "fits", 8: "contradicts", 9: "lacks_facts"}
_MOST, _TRIES = 50, 20
"""Maximum number of pairs in one answer, and of tries to replace a duplicate."""


@understudy("prefeval_pairs", "writer")
def write(request: MarkedRequest, draws: Draws) -> str:
    """Answer with a JSON object."""
    key = _KEY.search(request.part("instruction"))
    made = _MAKERS.get(key[1] if key else "", _pairs)(request, draws)
    return json.dumps(made, ensure_ascii=False)


def slots_of(preference: str) -> dict[str, str]:
    """Return the thing and the trait of a preference; empty if no template of the writer matches."""
    return heard(WORDS.get("write.preference"), preference) or {}


def _pairs(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    things = values_of(request.part("subtopics")) or WORDS.get("things")
    known = {part.body for part in request.parts("written")}
    items = []
    for place in range(min(request.inputs.get("count", 1), _MOST)):
        for again in range(_TRIES):
            item = _pair(draws.fork(place, again), things)
            if item["preference"] not in known:
                break
        known.add(item["preference"])
        items.append(item)
    return {"items": items}


def _pair(draws: Draws, things: list[str]) -> dict[str, str]:
    slots = {"thing": draws.pick(things), "trait": draws.pick(WORDS.get("traits"))}
    slots["occasion"] = draws.pick(WORDS.get("occasions"))
    question = _FAULTS.get(draws.number(0, 9), "question")
    texts = {"preference": "preference", "question": question, "explanation": "explanation"}
    return {key: WORDS.say(f"write.{bank}", draws, slots) for key, bank in texts.items()}


def _query(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    return {"query": _said("choice.query", request, draws)}


def _options(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    against = "choice.against" if slots_of(request.part("preference")) else "choice.against_plain"
    slots = slots_of(request.part("preference"))
    others = [WORDS.get(against)[place].format(**slots) for place in draws.shuffled(range(4))[:3]]
    return {"options": [_said("choice.fitting", request, draws), *others]}


def _choice_talk(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    others = [part.body for part in request.parts("other")]
    slots = {"fitting": request.part("fitting"), **dict(zip(("second", "third", "fourth"), others, strict=False))}
    banks = {"assistant_options": "offer", "user_selection": "pick", "assistant_acknowledgment": "agree"}
    return {key: WORDS.say(f"choice.{bank}", draws, slots) for key, bank in banks.items()}


def _persona_talk(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    """Return a conversation opened and ended by the persona, with the preference mentioned in a turn between."""
    count = request.inputs.get("turns", 3)
    persona, preference = request.part("persona"), request.part("preference")
    slots = {"persona": persona[:1].lower() + persona[1:], "preference": preference}
    asked = list(zip(WORDS.get("talk.user"), WORDS.get("talk.assistant"), strict=True))
    said = [(WORDS.say("talk.opening", draws, slots), WORDS.say("talk.begin", draws))]
    said += [asked[place] for place in sorted(draws.shuffled(range(len(asked)))[: count - 1])]
    place = draws.number(1, max(1, len(said) - 2))
    said[place] = (WORDS.say("talk.passing", draws, slots), WORDS.say("talk.nod", draws))
    return {"turns": [{"user": user, "assistant": reply} for user, reply in said], "passage": preference}


def _earlier(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    return {"preference": _said("write.earlier", request, draws)}


def _said(bank: str, request: MarkedRequest, draws: Draws) -> str:
    """Return a line of a bank about the request's preference, or of the plain bank, if no template matches."""
    preference = request.part("preference")
    slots = slots_of(preference)
    return WORDS.say(bank if slots else f"{bank}_plain", draws, {**slots, "preference": preference})


_MAKERS: Mapping[str, Callable[[MarkedRequest, Draws], Mapping[str, Any]]] = {
    "items": _pairs,
    "query": _query,
    "options": _options,
    "assistant_options": _choice_talk,
    "turns": _persona_talk,
    "preference": _earlier,
}


_FEWEST_WORDS = 6
_LIKELY = {1: "low", 2: "medium", 3: "medium"}


@understudy("prefeval_pairs", "judge")
def judge(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Answer with a pair's class, or with the matching persona: a JSON object."""
    people = [part.body for part in request.parts("persona")]
    if people:
        number = _fitting(request.part("preference"), people)
        why = WORDS.get("judge.found" if number else "judge.none")
        return json.dumps({"explanation": why, "number": number})
    verdict = _verdict(request.part("preference"), request.part("question"))
    return json.dumps({"explanation": WORDS.get(f"judge.{verdict}"), "verdict": verdict})


@understudy("prefeval_pairs", "answerer")
def answer(request: MarkedRequest, draws: Draws) -> str:
    """Answer a question without regard to any preference."""
    if request.model == "generic":
        return WORDS.say("answer.usual", draws)
    named = dict(zip(("one", "two", "three", "four", "five"), draws.shuffled(WORDS.get("traits")), strict=False))
    return WORDS.say("answer.surveyed", draws, named)


@understudy("prefeval_pairs", "rater")
def rate(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Answer with a pair's rating: a JSON object."""
    number = rated_number(request.part("preference"))
    rating = {
        "discard": number == 0,
        "violation_probability": _LIKELY.get(number, "high"),
        "reasoning_difficulty": "low" if number % 2 else "high",
    }
    return json.dumps(rating)


def rated_number(preference: str) -> int:
    """Return a preference's pseudorandom number, from 0 to 9, that decides its rating."""
    return Draws("prefeval_pairs", preference).number(0, 9)


def _verdict(preference: str, question: str) -> str:
    trait = set(content_words(slots_of(preference).get("trait", preference)))
    if trait and trait <= set(content_words(question)):
        return "contradicts" if any(words in question.lower() for words in WORDS.get("judge.wants")) else "fits"
    return "lacks_facts" if len(question.split()) < _FEWEST_WORDS else "valid"


def _fitting(preference: str, people: list[str]) -> int:
    told = set(content_words(preference))
    return next((number for number, who in enumerate(people, start=1) if told.isdisjoint(content_words(who))), 0)
