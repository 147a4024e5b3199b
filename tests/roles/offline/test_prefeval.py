"""PrefEval's understudies keep to their stated rule, so a run's accuracy is what the rule says, exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.graphs.prefeval import RECIPE
from dialoom.graphs.prefeval.verdicts import error_of
from dialoom.personas.preferences import sample_pairs
from dialoom.roles import offline
from dialoom.roles.offline.prefeval.assistant import number_of

TOPICS = "pet_ownership,travel_hotel"
REACH = {"zero-shot": (70, 14), "reminder": (100, 5), "cot": (85, 10), "self-critic": (80, 12)}


def right(folder: Path, model: str = "offline/attentive", **options: Any) -> dict[tuple[str, int], set[str]]:
    """The pairs that are answered rightly, by method and length."""
    run = dialoom.play(
        RECIPE, path=folder / "run.db", models={"assistant": model}, options={"topics": TOPICS, **options}
    )
    found: dict[tuple[str, int], set[str]] = {}
    for episode in run.episodes():
        facets = episode.facets
        pairs = found.setdefault((facets["method"], facets["turns"]), set())
        if error_of(episode.outcome.judgements) is None:
            pairs.add(f"{facets['topic']}-{facets['index']}")
    return found


def test_accuracy_is_what_the_rule_says_to_the_item(tmp_path: Path) -> None:
    """Start less loss for each doubling of the turns in between; it falls with length and rises with a reminder."""
    lengths = (0, 7, 100)
    found = right(tmp_path, method=tuple(REACH), turns=lengths)
    numbers = {
        pair.id: number_of(pair.preference)
        for topic in TOPICS.split(",")
        for pair in sample_pairs().pairs(topic, "explicit")
    }
    for (method, turns), pairs in found.items():
        start, loss = REACH[method]
        reach = start - loss * {0: 0, 7: 3, 100: 6}[turns]
        assert pairs == {id_ for id_, number in numbers.items() if number < reach}, (method, turns)
    zero, reminder = ([len(found[method, turns]) for turns in lengths] for method in ("zero-shot", "reminder"))
    assert zero == sorted(zero, reverse=True) and zero[0] > zero[2]
    assert all(one < other for one, other in zip(zero, reminder, strict=True))


def test_retrieval_of_the_preference_brings_it_back(tmp_path: Path) -> None:
    """What rag finds is minded by 95 of 100; what it does not find, as without it."""
    found = right(tmp_path, method=("zero-shot", "rag"), turns=(100,))
    assert found["zero-shot", 100] < found["rag", 100]


def test_the_generic_one_never_minds(tmp_path: Path) -> None:
    """Nothing is right, not even with a reminder and nothing in between."""
    found = right(tmp_path, "offline/generic", method=("zero-shot", "reminder", "self-critic"), turns=(0,))
    assert found == {("zero-shot", 0): set(), ("reminder", 0): set(), ("self-critic", 0): set()}


def test_a_choice_follows_what_is_minded(tmp_path: Path) -> None:
    """At a distance at which half is forgotten, more is chosen rightly with a reminder; generic is worse than both."""
    options: dict[str, Any] = {"task": ("classification",), "turns": (20,), "form": ("explicit", "persona")}
    (tmp_path / "generic").mkdir()
    found = right(tmp_path, method=("zero-shot", "reminder"), **options)
    generic = right(tmp_path / "generic", "offline/generic", **options)
    assert len(generic["zero-shot", 20]) < len(found["zero-shot", 20]) < len(found["reminder", 20])


@pytest.mark.parametrize(
    ("metric", "parts", "said"),
    [
        (
            "violates",
            {"preference": "I never eat plums.", "question": "A dessert?", "answer": "No plums: take pears."},
            "no",
        ),
        ("violates", {"preference": "I never eat plums.", "question": "A dessert?", "answer": "Take a cake."}, "yes"),
        ("acknowledges", {"question": "A dessert?", "answer": "You said you hate plums. Take pears."}, "yes"),
        ("acknowledges", {"question": "A dessert?", "answer": "Take pears, as we discussed."}, "no"),
        ("hallucinates", {"preference": "I never eat plums.", "quote": "You said you hate plums."}, "no"),
        ("hallucinates", {"preference": "I never eat plums.", "quote": "You said you love trains."}, "yes"),
        ("helpful", {"question": "A dessert?", "answer": "Take pears."}, "yes"),
        ("helpful", {"question": "A dessert?", "answer": "I'm sorry, I can't say. Take pears."}, "no"),
        ("helpful", {"question": "A dessert?", "answer": "What do you like?"}, "no"),
    ],
)
def test_checkers_decide_from_what_they_read(metric: str, parts: dict[str, str], said: str) -> None:
    """By words: a telling one of the preference, a phrase that names one, an apology."""
    shown = "\n".join(f"<{name}>{text}</{name}>" for name, text in parts.items())
    messages = [
        {"role": "system", "content": "<role>judge</role>"},
        {"role": "user", "content": f"<metric>{metric}</metric>\n{shown}"},
    ]
    reply = json.loads(offline.answer("attentive", messages, system="prefeval", role="judge"))
    assert reply["answer"] == said
    if metric == "acknowledges":
        assert reply["quote"] == ("You said you hate plums." if said == "yes" else "")


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": ""}], [{"role": "user", "content": "Hm."}]])
def test_any_request_gets_an_answer(messages: list[dict[str, str]]) -> None:
    """Also one that holds next to nothing, as a prompt that somebody has overridden may."""
    assert offline.answer("attentive", messages, system="prefeval", role="assistant")
    assert "answer" in json.loads(offline.answer("generic", messages, system="prefeval", role="judge"))
