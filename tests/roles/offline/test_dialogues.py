"""Offline PersonaLens dialogues and judges, and malformed requests."""

from __future__ import annotations

import re
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.roles import offline

from .asking import answer
from .people import (
    ALARM,
    BOOKS,
    DINNER,
    GETAWAY,
    SINGLE,
    Case,
    assistant_request,
    judge,
    judge_request,
    judged,
    play,
    user_request,
)


def test_same_request_same_answer() -> None:
    assert play(DINNER, "all", seed=3) == play(DINNER, "all", seed=3)


@pytest.mark.parametrize("case", [*SINGLE, GETAWAY])
@pytest.mark.parametrize("seed", range(5))
def test_opening_names_no_preference_and_does_not_end(case: Case, seed: int) -> None:
    opening = answer("attentive", user_request(case, []), "personalens/user", seed=seed)
    assert opening.strip() and "TERMINATE" not in opening
    assert not [value for value in case.values if value.lower() in opening.lower()]


@pytest.mark.parametrize("model", sorted(offline.SCRIPTED))
@pytest.mark.parametrize("case", [*SINGLE, GETAWAY])
def test_user_ends_the_dialogue(case: Case, model: str) -> None:
    """The user says TERMINATE once, at the very end of a line, within 8 turns (14 across domains)."""
    user = [text for role, text in play(case, "base", model) if role == "user"]
    assert len(user) <= (8 if len(case.affinities) == 1 else 14)
    assert user[-1].endswith("TERMINATE") and not any("TERMINATE" in text for text in user[:-1])


def test_user_reveals_little_at_a_time() -> None:
    for role, text in play(DINNER, "base"):
        stated = [
            names
            for names in DINNER.affinities["Restaurants"].values()
            if any(v.strip() in text for v in names.split(";"))
        ]
        assert role == "assistant" or len(stated) <= 2


def test_several_domains_are_taken_one_by_one() -> None:
    user = [text.lower() for role, text in play(GETAWAY, "I") if role == "user"][:-1]
    firsts = [
        next(
            at
            for at, text in enumerate(user)
            if (at and re.search(rf"\b(?:{words})\b", text))
            or re.search(rf"(?:start|begin|first).*\b(?:{words})\b", text)
        )
        for words in ("train", "hotel|room|place to stay", "dinner|food|eat|restaurant")
    ]
    assert firsts == sorted(firsts) and len(set(firsts)) == 3


@pytest.mark.parametrize(
    ("case", "facts"),
    [(ALARM, ["6:10 AM", "church bells"]), (DINNER, ["Greek", "nut allergy"]), (BOOKS, ["fantasy", "Elif Ardan"])],
)
def test_attentive_brings_up_what_summaries_tell(case: Case, facts: list[str]) -> None:
    opening = answer("attentive", user_request(case, []), "personalens/user")
    request = assistant_request(case, [("user", opening)], "I")
    replies = [answer("attentive", request, "personalens/assistant", seed=seed) for seed in range(6)]
    assert all(any(fact in reply for fact in facts) for reply in replies)


def test_attentive_without_summaries_knows_nothing() -> None:
    opening = answer("attentive", user_request(DINNER, []), "personalens/user")
    reply = answer("attentive", assistant_request(DINNER, [("user", opening)], "base"), "personalens/assistant")
    assert "Greek" not in reply and "nut allergy" not in reply


@pytest.mark.parametrize("case", SINGLE)
def test_generic_ignores_what_it_is_shown(case: Case) -> None:
    opening = answer("attentive", user_request(case, []), "personalens/user")
    reply = answer("generic", assistant_request(case, [("user", opening)], "all"), "personalens/assistant")
    assert reply and not [value for value in case.values if value in reply]


def test_attentive_takes_up_what_the_user_says() -> None:
    talk = [("user", "I'd like a place to eat."), ("assistant", "Sure. What do you feel like eating?")]
    request = assistant_request(DINNER, [*talk, ("user", "I usually go for Lebanese food.")], "base")
    assert "Lebanese" in answer("attentive", request, "personalens/assistant")


def test_closing_is_short_and_warm() -> None:
    reply = play(DINNER, "I")[-1]
    assert reply[0] == "assistant" and "?" not in reply[1] and len(reply[1].split()) < 60


METRICS = [
    ("task_completion", ""),
    ("personalization", ""),
    ("naturalness", "user"),
    ("naturalness", "assistant"),
    ("coherence", "user"),
    ("coherence", "assistant"),
]


def test_personalization_orders_the_settings() -> None:
    cases = [(case, seed) for case in (*SINGLE, GETAWAY) for seed in range(4)]

    def average(setting: str, model: str = "attentive") -> float:
        return mean(
            float(str(judged(case, play(case, setting, model, seed), "personalization"))) for case, seed in cases
        )

    assert average("I") > average("base") + 0.5
    assert average("base") > average("base", "generic") + 0.3


def test_tasks_are_completed_more_often_by_the_attentive_assistant() -> None:
    cases = [(case, seed) for case in (*SINGLE, GETAWAY) for seed in range(4)]
    attentive = [judged(case, play(case, "I", "attentive", seed), "task_completion") for case, seed in cases]
    generic = [judged(case, play(case, "I", "generic", seed), "task_completion") for case, seed in cases]
    assert sum(map(bool, attentive)) > len(cases) * 0.8
    assert sum(map(bool, generic)) < sum(map(bool, attentive)) - 3


def test_proactive_reply_beats_a_told_one_beats_an_ignoring_one() -> None:
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
    talk = play(DINNER, "I")
    for end in range(2, len(talk) + 1, 2):
        assert judged(DINNER, talk[:end], "personalization") in (1, 2, 3, 4)


@pytest.mark.parametrize("model", sorted(offline.SCRIPTED))
@pytest.mark.parametrize(("metric", "target"), METRICS)
@pytest.mark.parametrize("case", [*SINGLE, GETAWAY])
def test_judge_replies_one_valid_object(case: Case, metric: str, target: str, model: str) -> None:
    for assistant in ("attentive", "generic"):
        talk = play(case, "base", assistant)
        reply = judge(case, talk, metric, target, model)
        key = "verdict" if metric == "task_completion" else "score"
        assert set(reply) == {key, "explanation"} and len(reply["explanation"]) > 15
        if key == "verdict":
            assert isinstance(reply[key], bool)
        else:
            assert reply[key] in range(1, 5 if metric == "personalization" else 6)


def test_judge_asked_again_gives_the_same_judgement() -> None:
    request = judge_request(DINNER, play(DINNER), "personalization")
    first = answer("attentive", request, "personalens/judge-personalization", "judge")
    again = [*request, {"role": "assistant", "content": "?"}, {"role": "user", "content": "Not JSON. Once more."}]
    assert answer("attentive", again, "personalens/judge-personalization", "judge") == first


def test_generic_judge_agrees_in_direction() -> None:
    better = [float(str(judged(case, play(case, "I"), "personalization", model="generic"))) for case in SINGLE]
    worse = [
        float(str(judged(case, play(case, "base", "generic"), "personalization", model="generic"))) for case in SINGLE
    ]
    assert mean(better) > mean(worse)


_TAGS = [
    "demographics",
    "affinities",
    "summary",
    "situation",
    "task",
    "conversation",
    "instruction",
    "metric",
    "goal",
    "odd",
]
_BITS = st.one_of(
    st.text(max_size=30),
    st.builds(lambda tag, body: f"<{tag}>{body}</{tag}>", st.sampled_from(_TAGS), st.text(max_size=30)),
    st.builds(lambda tag: f"<{tag} domain='Books'", st.sampled_from(_TAGS)),
    st.sampled_from(["</summary>", "Genre: ;;N/A;", "I'd like dinner for two.", "TERMINATE"]),
    st.builds(lambda text: f'<affinities domain="Alarm">\nAlarm Time: {text}\n</affinities>', st.text(max_size=12)),
)
_MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["system", "user", "assistant", "tool"]),
            "content": st.lists(_BITS, max_size=5).map("\n".join),
        }
    ),
    max_size=6,
)


@settings(max_examples=100)
@given(
    messages=_MESSAGES,
    prompt=st.sampled_from(
        ["personalens/user", "personalens/assistant", "personalens/judge", "aloe/user", "aloe/judge"]
    ),
    model=st.sampled_from(sorted(offline.SCRIPTED)),
    seed=st.none() | st.integers(0, 9),
)
def test_arbitrary_messages_get_an_answer(
    messages: list[dict[str, str]], prompt: str, model: str, seed: int | None
) -> None:
    assert answer(model, messages, prompt, seed=seed).strip()


@pytest.mark.parametrize("tag", ["demographics", "affinities", "summary", "situation", "task"])
def test_user_opens_without_any_one_block(tag: str) -> None:
    messages = user_request(DINNER, [])
    messages[0]["content"] = messages[0]["content"].replace(f"<{tag}", "<odd")
    opening = answer("attentive", messages, "personalens/user")
    assert opening.strip() and "TERMINATE" not in opening


def test_empty_and_redacted_values_are_never_spoken() -> None:
    case = DINNER.__class__(
        DINNER.demographics,
        {
            "Restaurants": {
                "Cuisine Preference": "[Redacted]",
                "Dietary Restrictions": "N/A",
                "Ambiance": "no preference",
                "Mood": "",
            }
        },
        {},
        DINNER.situation,
        DINNER.intent,
        DINNER.goal,
    )
    said = " ".join(text for role, text in play(case) if role == "user")
    assert not any(word in said for word in ("Redacted", "N/A", "no preference"))


def test_non_ascii_values_survive() -> None:
    case = DINNER.__class__(
        DINNER.demographics,
        {"Books": {"Favourite Authors": "Søren Ålund; Zoë Žižka", "Genre": "poésie"}},
        {"Books": "His favorite authors, such as Søren Ålund and Zoë Žižka, come first."},
        DINNER.situation,
        "Find a new book by your favorite authors.",
        "A book is found.",
    )
    assert "Søren Ålund" in " ".join(text for role, text in play(case, "I") if role == "assistant")


def test_judge_without_a_conversation_answers_in_range() -> None:
    for metric in ("personalization", "task_completion", "naturalness", "coherence"):
        reply = judge(DINNER, [], metric)
        assert reply.get("verdict", False) is False and reply.get("score", 1) in (1, 2, 3)
