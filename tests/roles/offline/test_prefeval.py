"""PrefEval's understudies follow their documented rule, so a run's accuracy is exactly predictable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.graphs.prefeval import RECIPE
from dialoom.graphs.prefeval.results import find_error
from dialoom.personas.preferences import DEFAULT_POOL, FORMS, ChatLine, PreferencePair, read_chats, sample_pairs
from dialoom.roles.offline import SpokenLine
from dialoom.roles.offline.prefeval import draw_statement_number, extract_key_words, find_statement

from .asking import answer

TOPIC = "travel_hotel"
PROMPTS = RECIPE.library()
UNRELATED = [line for chat in read_chats(DEFAULT_POOL) for line in chat]
REACH = {"zero-shot": (70, 14), "reminder": (100, 5), "cot": (85, 10), "self-critic": (80, 12), "rag": (70, 14)}


def correct_pairs(folder: Path, model: str = "offline/attentive", **options: Any) -> dict[tuple[str, int], set[str]]:
    """Return the pairs that are answered correctly, by method and number of turns."""
    options = {"topics": TOPIC, **options}
    run = dialoom.play(RECIPE, path=folder / "run.db", models={"assistant": model}, options=options)
    found: dict[tuple[str, int], set[str]] = {}
    for episode in run.episodes():
        facets = episode.facets
        pairs = found.setdefault((facets["method"], facets["turns"]), set())
        if find_error(episode.outcome.judgements) is None:
            pairs.add(f"{facets['topic']}-{facets['index']}")
    return found


def test_accuracy_of_a_run_follows_the_stated_rule_exactly(tmp_path: Path) -> None:
    found = correct_pairs(tmp_path, method=("zero-shot", "reminder", "self-critic"), turns=(2,))
    numbers = {pair.id: draw_statement_number(pair.preference) for pair in sample_pairs().pairs(TOPIC, "explicit")}
    for method in ("zero-shot", "reminder", "self-critic"):
        start, loss = REACH[method]
        assert found[method, 2] == {id_ for id_, number in numbers.items() if number < start - loss}, method


def is_followed(method: str, pair: PreferencePair, turns: int, retrieved: tuple[str, ...] = ()) -> bool:
    """Return whether the answer after so many unrelated turns quotes the preference."""
    history = [{"speaker": "user", "content": pair.preference}, {"speaker": "assistant", "content": "Noted."}]
    history += [{"speaker": line.speaker, "content": line.content} for line in UNRELATED[: 2 * turns]]
    found = [{"speaker": "user", "content": text} for text in retrieved]
    inputs = {"history": history, "question": pair.question, "options": [], "retrieved": found}
    messages = PROMPTS[f"prefeval/{method}"].render(inputs)
    reply = answer("attentive", messages, f"prefeval/{method}", "assistant")
    return pair.preference in reply and "All the same" not in reply


@pytest.mark.parametrize("method", ["zero-shot", "reminder", "cot", "rag"])
@pytest.mark.parametrize(("turns", "doublings"), [(0, 0), (6, 2), (7, 3), (126, 6), (127, 7)])
def test_recall_falls_with_the_turns_in_between(method: str, turns: int, doublings: int) -> None:
    start, loss = REACH[method]
    for pair in (
        each for topic in sample_pairs().topics() for each in list(sample_pairs().pairs(topic, "explicit"))[:3]
    ):
        within = draw_statement_number(pair.preference) < start - loss * doublings
        assert is_followed(method, pair, turns) is within


def test_retrieved_preference_is_followed() -> None:
    """A retrieved preference is followed by 95 of 100 at any distance."""
    for pair in sample_pairs().pairs(TOPIC, "explicit"):
        assert is_followed("rag", pair, 127, (pair.preference,)) is (draw_statement_number(pair.preference) < 95)


def test_statements_are_found_in_every_form() -> None:
    for form in FORMS:
        for topic in sample_pairs().topics():
            for pair in sample_pairs().pairs(topic, form):
                talk = pair.talk or (ChatLine(speaker="user", content=pair.preference),)
                lines = [SpokenLine(line.speaker, line.content) for line in talk]
                words = extract_key_words(pair.preference)
                statement = max(
                    (line.content for line in talk[::2]), key=lambda text: len(words & extract_key_words(text))
                )
                statement = talk[2].content if form == "choice" else statement
                assert find_statement(lines, pair.question)[0] == statement


def test_generic_never_follows_a_preference(tmp_path: Path) -> None:
    assert correct_pairs(tmp_path, "offline/generic", method=("reminder",), turns=(0,)) == {("reminder", 0): set()}


def test_choice_follows_the_known_preference(tmp_path: Path) -> None:
    (tmp_path / "generic").mkdir()
    options: dict[str, Any] = {"task": ("classification",), "turns": (1,), "method": ("reminder",)}
    found, generic = (
        correct_pairs(tmp_path, **options),
        correct_pairs(tmp_path / "generic", "offline/generic", **options),
    )
    numbers = {pair.id: draw_statement_number(pair.preference) for pair in sample_pairs().pairs(TOPIC, "explicit")}
    assert found["reminder", 1] >= {id_ for id_, number in numbers.items() if number < 95}
    assert len(generic["reminder", 1]) < len(found["reminder", 1])


@pytest.mark.parametrize(
    ("metric", "parts", "message"),
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
def test_checkers_decide_from_what_they_read(metric: str, parts: dict[str, str], message: str) -> None:
    shown = "\n".join(f"<{name}>{text}</{name}>" for name, text in parts.items())
    messages = [{"role": "system", "content": "You are fair."}, {"role": "user", "content": shown}]
    reply = json.loads(answer("attentive", messages, f"prefeval/judge-{metric}", "judge"))
    assert reply["answer"] == message
    if metric == "acknowledges":
        assert reply["quote"] == ("You said you hate plums." if message == "yes" else "")


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": ""}], [{"role": "user", "content": "Hm."}]])
def test_any_request_gets_an_answer(messages: list[dict[str, str]]) -> None:
    assert answer("attentive", messages, "prefeval/zero-shot", "assistant")
    assert "answer" in json.loads(answer("generic", messages, "prefeval/judge-helpful", "judge"))
