"""The filters: is a pair valid, do answers that do not know the preference go against it, and what does a rater say.

PrefEval, section A.13. A pair that somebody has chosen by hand is not looked at; nor is what a
filter has said of a pair already asked for again.
"""

from __future__ import annotations

from typing import Any

from dialoom.graphs.asking import ask_each
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.preferences import Draft, PairRating

from .scenario import PairsScenario
from .stages import Found, PairsState, still_in

LEVELS = ("low", "medium", "high")
VIOLATES = "prefeval/judge-violates"
"""The checker of PrefEval's own answers: what counts as a violation there counts here."""


async def check(state: PairsState, scene: Scene) -> Update:
    """Out goes a pair whose question contradicts or gives away the preference, or lacks what an answer needs."""
    asked = still_in(state, lambda draft: not draft.chosen and draft.validity is None)
    replies = await ask_each(scene, "prefeval_pairs/validity", {at: _texts(draft) for at, draft in asked.items()})
    found: Found = {}
    for at, reply in replies.items():
        if reply is None:
            found[at] = {"dropped": "validity unparsed"}
        else:
            found[at] = {"validity": reply.verdict, "dropped": "" if reply.verdict == "valid" else reply.verdict}
    _tell(scene, "valid", found)
    return {"validity": found}


async def answer(state: PairsState, scene: Scene) -> Update:
    """The violation rate: several models answer without the preference; the share whose answer goes against it."""
    scenario: PairsScenario = scene.scenario
    judged = still_in(state, lambda draft: not draft.chosen)
    asked = {at: draft for at, draft in judged.items() if draft.violation_rate is None}
    answers = await ask_each(
        scene,
        "prefeval_pairs/answer",
        {(role, at): {"question": draft.question} for role in scenario.answerers for at, draft in asked.items()},
        role=lambda key: key[0],
    )
    verdicts = await ask_each(
        scene,
        VIOLATES,
        {key: {**_texts(asked[key[1]]), "answer": answer} for key, answer in answers.items() if answer is not None},
    )
    rates = {at: draft.violation_rate for at, draft in judged.items()}
    for at in asked:
        said = [verdict.answer == "yes" for (_, place), verdict in verdicts.items() if place == at and verdict]
        rates[at] = sum(said) / len(said) if said else None
    found = {at: {"violation_rate": value, "dropped": _low_rate(value, scenario)} for at, value in rates.items()}
    _tell(scene, "violated often enough", found)
    return {"rate": found}


async def grade(state: PairsState, scene: Scene) -> Update:
    """What a rater says who has seen pairs that people have rated."""
    scenario: PairsScenario = scene.scenario
    judged = still_in(state, lambda draft: not draft.chosen)
    asked = {at: draft for at, draft in judged.items() if draft.rating is None}
    labelled = [each.model_dump() for each in scenario.rated.value]
    replies = await ask_each(
        scene, "prefeval_pairs/rating", {at: {**_texts(draft), "labelled": labelled} for at, draft in asked.items()}
    )
    ratings: dict[str, PairRating | None] = {at: draft.rating for at, draft in judged.items()} | replies
    found: Found = {
        at: {"rating": each and each.model_dump(), "dropped": _low_rating(each, scenario)}
        for at, each in ratings.items()
    }
    _tell(scene, "rated well enough", found)
    return {"rating": found}


def _low_rate(value: float | None, scenario: PairsScenario) -> str:
    if value is None:
        return "rate unparsed"
    return "low rate" if value < scenario.least_rate else ""


def _low_rating(rated: PairRating | None, scenario: PairsScenario) -> str:
    if rated is None:
        return "rating unparsed"
    if rated.discard:
        return "discarded"
    if _level(rated.violation_probability) < _level(scenario.least_probability):
        return "low probability"
    return "low difficulty" if _level(rated.reasoning_difficulty) < _level(scenario.least_difficulty) else ""


def _level(word: str) -> int:
    return LEVELS.index(word)


def _texts(draft: Draft) -> dict[str, Any]:
    return {"preference": draft.preference, "question": draft.question}


def _tell(scene: Scene, what: str, found: Found) -> None:
    passed = sum(not said["dropped"] for said in found.values())
    if found:
        scene.tell(f"{scene.scenario.topic.topic}: {passed} of {len(found)} pairs are {what}")
