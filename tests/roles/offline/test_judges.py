"""The offline judges: their scores follow from what the replies contain."""

from __future__ import annotations

from statistics import mean

import pytest

from dialoom.roles import offline

from .asking import answer
from .people import DINNER, GETAWAY, SINGLE, Case, judge, judge_request, judged, play

METRICS = [
    ("task_completion", ""),
    ("personalization", ""),
    ("naturalness", "user"),
    ("naturalness", "assistant"),
    ("coherence", "user"),
    ("coherence", "assistant"),
]


def test_personalization_orders_the_settings() -> None:
    """On average I beats base, and base beats the generic assistant."""
    cases = [(case, seed) for case in (*SINGLE, GETAWAY) for seed in range(4)]

    def average(setting: str, model: str = "attentive") -> float:
        return mean(
            float(str(judged(case, play(case, setting, model, seed), "personalization"))) for case, seed in cases
        )

    assert average("I") > average("base") + 0.5
    assert average("base") > average("base", "generic") + 0.3


def test_tasks_are_completed_more_often_by_the_attentive_assistant() -> None:
    """Task completion: attentive mostly, generic clearly less."""
    cases = [(case, seed) for case in (*SINGLE, GETAWAY) for seed in range(4)]
    attentive = [judged(case, play(case, "I", "attentive", seed), "task_completion") for case, seed in cases]
    generic = [judged(case, play(case, "I", "generic", seed), "task_completion") for case, seed in cases]
    assert sum(map(bool, attentive)) > len(cases) * 0.8
    assert sum(map(bool, generic)) < sum(map(bool, attentive)) - 3


def test_proactive_reply_beats_a_told_one_beats_an_ignoring_one() -> None:
    """Three hand-written dialogues land where their replies put them."""
    opening = ("user", "I'm looking for a restaurant.")
    proactive = [
        opening,
        ("assistant", "How about Meltemi, a quiet Greek place with moderate prices? They handle a nut allergy."),
    ]
    told = [
        opening,
        ("assistant", "What do you feel like eating?"),
        ("user", "I'd like Greek food. And keep a nut allergy in mind."),
        ("assistant", "Then I'd suggest Meltemi, a Greek place that knows about a nut allergy."),
    ]
    ignoring = [*told[:3], ("assistant", "There are many options. You can find more information online.")]
    scores = [judged(DINNER, talk, "personalization") for talk in (proactive, told, ignoring)]
    assert scores == [4, 2, 1]


def test_prefixes_can_be_judged() -> None:
    """The personalization judge works after every assistant reply."""
    talk = play(DINNER, "I")
    for end in range(2, len(talk) + 1, 2):
        assert judged(DINNER, talk[:end], "personalization") in (1, 2, 3, 4)


@pytest.mark.parametrize("model", sorted(offline.SCRIPTED))
@pytest.mark.parametrize(("metric", "target"), METRICS)
@pytest.mark.parametrize("case", [*SINGLE, GETAWAY])
def test_reply_is_one_valid_object(case: Case, metric: str, target: str, model: str) -> None:
    """A judge answers one JSON object with a value in range and a specific explanation."""
    for assistant in ("attentive", "generic"):
        talk = play(case, "base", assistant)
        reply = judge(case, talk, metric, target, model)
        key = "verdict" if metric == "task_completion" else "score"
        assert set(reply) == {key, "explanation"} and len(reply["explanation"]) > 15
        if key == "verdict":
            assert isinstance(reply[key], bool)
        else:
            assert reply[key] in range(1, 5 if metric == "personalization" else 6)


def test_asked_again_a_judge_still_answers() -> None:
    """After its own reply and an error text the same judgement comes again."""
    request = judge_request(DINNER, play(DINNER), "personalization")
    first = answer("attentive", request, "personalens/judge-personalization", "judge")
    again = [*request, {"role": "assistant", "content": "?"}, {"role": "user", "content": "Not JSON. Once more."}]
    assert answer("attentive", again, "personalens/judge-personalization", "judge") == first


def test_the_crude_judge_differs_but_agrees_in_direction() -> None:
    """The generic judge also prefers the setting with summaries."""
    better = [float(str(judged(case, play(case, "I"), "personalization", model="generic"))) for case in SINGLE]
    worse = [
        float(str(judged(case, play(case, "base", "generic"), "personalization", model="generic"))) for case in SINGLE
    ]
    assert mean(better) > mean(worse)
