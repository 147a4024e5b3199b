"""Requests of each method and checker, and the effects of unusable replies."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Episode, Judgement
from dialoom.graphs import Estimate
from dialoom.graphs.prefeval import RECIPE, parse_choice
from dialoom.graphs.prefeval.results import find_error
from dialoom.personas.similarity import encode_vector, normalize_vector
from dialoom.settings import ModelLike
from tests.graphs.prefeval.invented import write_pairs, write_pool

OWN = "I never want boats of kind 0."
ASKED = "Which boats would you buy, number 0?"


class Assistant:
    """A player that answers by the kind of request, and records requests."""

    def __init__(self, **instead: str) -> None:
        self.sent: list[list[dict[str, str]]] = []
        self._instead = instead

    async def __call__(self, messages: list[Any]) -> str:
        plain = [{"role": message["role"], "content": message["content"]} for message in messages]
        self.sent.append(plain)
        last = plain[-1]["content"]
        kind, said = "answer", "Take this one."
        if last.startswith("I "):
            kind, said = "reply", "Noted."
        elif "new answer" in last or "choose again" in last:
            kind, said = "revision", "**Response:** Take that one."
        elif "critique" in last:
            kind, said = "critique", "It forgets. It must change."
        return self._instead.get(kind, said)

    def last(self) -> str:
        """Return the last message of the last request."""
        return self.sent[-1][-1]["content"]


def checked(text: str) -> str:
    """Return the metric that a checker's request is about."""
    asked = {
        "violates": "violate the preference?",
        "acknowledges": "state or imply",
        "hallucinates": "get the preference wrong?",
        "helpful": "Is the answer helpful?",
    }
    return next(metric for metric, words in asked.items() if words in text)


class Judge:
    """A judge with given answers by checker."""

    def __init__(self, **words: str) -> None:
        self.sent: list[str] = []
        self._words = words

    async def __call__(self, messages: list[Any]) -> str:
        text = messages[1]["content"]
        metric = checked(text)
        self.sent.append(text)
        return json.dumps({"explanation": "so", "quote": "You like hats.", "answer": self._words.get(metric, "yes")})

    def asked(self) -> Counter[str]:
        """Return how often each checker was called."""
        return Counter(map(checked, self.sent))


def played(folder: Path, assistant: Assistant, judge: Judge, **options: Any) -> dialoom.Run:
    """Play one item."""
    chosen_options = {
        "pairs": write_pairs(folder / "pairs"),
        "distractors": write_pool(folder / "pool.json"),
        "turns": (2,),
        "limit": 1,
        **options,
    }
    models: dict[str, ModelLike] = {
        "assistant": assistant,
        **({"judge": judge} if options.get("task") != ("classification",) else {}),
    }
    return dialoom.play(RECIPE, path=folder / "run.db", options=chosen_options, models=models)


def only(run: dialoom.Run, judging: str | None = None) -> Episode:
    """Return the only episode of a run."""
    (episode,) = run.episodes(judging)
    assert episode.state == "done", episode.error
    return episode


def test_zero_shot_request_is_the_conversation_and_the_question(tmp_path: Path) -> None:
    assistant = Assistant()
    episode = only(played(tmp_path, assistant, Judge()))
    reply, answer = assistant.sent
    assert [each["content"] for each in reply[1:]] == [OWN]
    assert [each["role"] for each in answer] == ["system", *["user", "assistant"] * 3, "user"]
    said = ["Noted.", "Ask t0", "Say t0", "Ask t1", "Say t1"]
    assert [each["content"] for each in answer[1:]] == [OWN, *said, f"{ASKED}\n\nUse no more than 300 words."]
    assert episode.outcome.details["replies"] == {OWN: "Noted."}
    assert [(line.role, line.content) for line in episode.outcome.messages][2:] == [
        ("distractors", "2 turns of unrelated talk"),
        ("user", answer[-1]["content"]),
        ("assistant", "Take this one."),
    ]


def test_answer_that_repeats_an_earlier_reply_is_a_fault(tmp_path: Path) -> None:
    said = "I am glad to hear that you know so well what you want of boats."
    run = played(tmp_path, Assistant(reply=said, answer=said), Judge())
    assert [(fault.kind, fault.message) for _, fault in run.faults()] == [("repetition", 4)]


def test_reminder_and_chain_of_thought_change_only_the_last_message(tmp_path: Path) -> None:
    ends = {}
    for method in ("zero-shot", "reminder", "cot"):
        folder = tmp_path / method
        folder.mkdir()
        assistant = Assistant()
        played(folder, assistant, Judge(), method=(method,))
        ends[method] = (assistant.sent[-1][:-1], assistant.last())
    assert ends["reminder"][0] == ends["cot"][0] == ends["zero-shot"][0]
    reminder, cot = ends["reminder"][1], ends["cot"][1]
    assert reminder.startswith(f"{ASKED}\n") and reminder.endswith("Use no more than 300 words.")
    assert len(reminder.splitlines()) == 4
    assert cot.count("<example>") == 5 and cot.endswith(f"{ASKED}\n\nUse no more than 300 words.")


def test_retrieved_messages_are_the_nearest_with_their_speakers(tmp_path: Path) -> None:
    assistant = Assistant()
    episode = only(played(tmp_path, assistant, Judge(), method=("rag",), retrieved=(2,)))
    assert f"1. user: {OWN}\n2. assistant: Noted.\n</retrieved>" in assistant.last()
    assert (episode.outcome.details["retrieved"], episode.outcome.details["hit"]) == ([0, 1], True)
    folder = tmp_path / "all"
    folder.mkdir()
    episode = only(played(folder, assistant, Judge(), method=("rag",), retrieved=(50,)))
    assert episode.outcome.details["retrieved"] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("form", "count", "hit"), [("choice", 1, False), ("choice", 3, True), ("persona", 1, True)])
def test_question_of_a_choice_does_not_state_the_preference(tmp_path: Path, form: str, count: int, hit: bool) -> None:
    run = played(tmp_path, Assistant(), Judge(), form=(form,), method=("rag",), retrieved=(count,))
    details = only(run).outcome.details
    assert details["retrieved"][0] == 0 and details["hit"] == hit


def test_only_tables_with_verdicts_name_a_checker_that_fails_a_check(tmp_path: Path) -> None:
    tasks = ("generation", "classification")
    report = played(tmp_path, Assistant(), Judge(violates="maybe"), task=tasks, limit=12).report()
    doubted = {table.name for table in report.tables if "The judge of violates" in "".join(table.notes)}
    assert {"accuracy", "errors"} <= doubted and not doubted & {"choices", "dialogues"}


def test_self_critic_makes_three_calls_and_drops_its_label(tmp_path: Path) -> None:
    assistant = Assistant()
    episode = only(played(tmp_path, assistant, Judge(), method=("self-critic",)))
    _, first, critique, revision = assistant.sent
    assert critique[:7] == first[:7] == revision[:7]
    assert [each["content"] for each in critique[7:9]] == [ASKED, "Take this one."]
    assert revision[:10] == critique and revision[10]["content"] == "It forgets. It must change."
    assert ASKED in revision[-1]["content"]
    details = episode.outcome.details
    assert (details["first"], details["answer"]) == ("Take this one.", "Take that one.")
    assert [line.role for line in episode.outcome.messages][-3:] == ["first answer", "critique", "assistant"]


def test_each_checker_sees_its_part(tmp_path: Path) -> None:
    judge = Judge(violates="no")
    run = played(tmp_path, Assistant(), judge, form=("persona",))
    parts = {checked(text): text for text in judge.sent}
    assert judge.asked() == {"violates": 1, "acknowledges": 1, "helpful": 1, "hallucinates": 1}
    assert OWN in parts["violates"] and "Take this one." in parts["violates"]
    assert OWN not in parts["acknowledges"] + parts["helpful"]
    assert "You like hats." in parts["hallucinates"] and "Take this one." not in parts["hallucinates"]
    assert not any("Turn 1" in text or "Ask t0" in text for text in judge.sent)
    outcome = only(run).outcome
    scenario: Any = run.scenario(1)
    assert not any(RECIPE.judged_about(scenario, each) for each in outcome.judgements)
    shown = {each.metric: [line.role for line in RECIPE.judged_lines(outcome, each)] for each in outcome.judgements}
    assert shown == {
        "violates": ["preference", "question", "answer"],
        "acknowledges": ["question", "answer"],
        "hallucinates": ["preference", "quote"],
        "helpful": ["question", "answer"],
    }


def test_answer_without_a_preference_cannot_name_a_wrong_one(tmp_path: Path) -> None:
    judge = Judge(acknowledges="no")
    episode = only(played(tmp_path, Assistant(), judge))
    assert judge.asked()["hallucinates"] == 0
    assert find_error(episode.outcome.judgements) == "unaware"


def test_unparseable_verdict_is_requested_again_and_then_unparsed(tmp_path: Path) -> None:
    judge = Judge(acknowledges="maybe", violates="no")
    run = played(tmp_path, Assistant(), judge)
    assert judge.asked() == {"violates": 1, "acknowledges": 2, "helpful": 1}
    assert find_error(only(run).outcome.judgements) == "unparsed"
    later = Judge(violates="no")
    again = dialoom.retry(run.path, models={"assistant": Assistant(), "judge": later}, recipe=RECIPE, unparsed=True)
    assert later.asked() == {"acknowledges": 1, "hallucinates": 1}
    assert find_error(only(again).outcome.judgements) is None


def test_another_judge_makes_a_separate_set(tmp_path: Path) -> None:
    run = played(tmp_path, Assistant(), Judge(violates="no"))
    other = Judge(helpful="no")
    dialoom.judge(run.path, models={"judge": other}, recipe=RECIPE, name="strict")
    assert find_error(only(run).outcome.judgements) is None
    assert find_error(only(run, "strict").outcome.judgements) == "unhelpful"
    assert other.asked() == {"violates": 1, "acknowledges": 1, "helpful": 1, "hallucinates": 1}


def test_empty_answer_is_not_judged_and_is_no_success(tmp_path: Path) -> None:
    judge = Judge()
    episode = only(played(tmp_path, Assistant(answer=" "), judge, method=("self-critic",)))
    assert not judge.sent
    assert episode.outcome.ended_by == "empty_answer"
    assert find_error(episode.outcome.judgements) == "unparsed"


def test_answers_that_are_empty_are_no_unparsed_replies_of_the_judge(tmp_path: Path) -> None:
    async def assistant(messages: list[Any]) -> str:
        is_asked = "300 words" in str(messages[-2:])  # an empty answer is requested again
        return "Noted." if not is_asked else " " if len(str(messages[:2])) % 2 else "Take this one."

    models: dict[str, ModelLike] = {"assistant": assistant, "judge": Judge(violates="no")}
    run = dialoom.play("prefeval", path=tmp_path / "run.db", models=models, options={"limit": 20, "turns": (2,)})
    empty = run.frame()["ended_by"].tolist().count("empty_answer")
    assert 3 <= empty <= 17
    table = run.report(tables=["judge-health"])["judge-health"]
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        assert cells["n"] == 20 - empty
        assert isinstance(cells["unparsed %"], Estimate)
        assert (cells["unparsed %"].n, cells["unparsed %"].mean) == (20 - empty, 0.0)
        assert "unparsed" not in str(cells["failed"])


def test_gate_checks_only_what_the_model_says(tmp_path: Path) -> None:
    run = played(tmp_path, Assistant(answer="As your"), Judge(), method=("reminder",), extra=(3,))
    episode = only(run)
    messages = episode.outcome.messages
    scenario: Any = run.scenario(1)
    looked_at = [line for talk in RECIPE.talks(scenario, episode.outcome) for line in talk.checked_lines()]
    own = [(each.content, place) for place, each in enumerate(messages) if each.content == "Noted."]
    assert len(own) == 4
    assert [(line.text, line.message) for line in looked_at] == [*own, ("As your", len(messages) - 1)]


def test_choice_is_a_letter_among_options_in_the_pairs_order(tmp_path: Path) -> None:
    assistant = Assistant(answer="<choice>A</choice>", revision="<choice> (b) B </choice>")
    judge = Judge()
    run = played(tmp_path, assistant, judge, task=("classification",), method=("self-critic",))
    episode, scenario = only(run), RECIPE.scenario_type.model_validate(run.scenario(1).model_dump())
    details = episode.outcome.details
    assert details["options"] == [f"boats 0 {'right b c d'.split()[place]}" for place in scenario.order]
    assert (details["first_choice"], details["choice"]) == ("A", None)
    assert not judge.sent and "300" not in "".join(each["content"] for sent in assistant.sent for each in sent)
    assert [(each.metric, each.score) for each in episode.outcome.judgements] == [("correct", False)]
    right = Assistant(answer=f"<choice>{details['correct']}</choice>")
    folder = tmp_path / "right"
    folder.mkdir()
    episode = only(played(folder, right, judge, task=("classification",)))
    assert find_error(episode.outcome.judgements) is None


def test_only_unambiguous_letters_are_read() -> None:
    read = {"<choice>B</choice>": "B", "I take <choice> (C). </choice>": "C", "D": "D", "**A**": "A", "<choice>C": "C"}
    assert {text: parse_choice(text) for text in read} == read
    for text in (
        "<choice>Based on that</choice>",
        "<choice>AB</choice>",
        "<choice></choice>",
        "",
        "A or B",
        "E",
        "Any",
    ):
        assert parse_choice(text) is None


def test_reply_to_a_preference_is_requested_once(tmp_path: Path) -> None:
    assistant = Assistant()
    played(tmp_path, assistant, Judge(), method=("zero-shot", "reminder"), turns=(0, 1, 2), limit=6)
    assert Counter(sent[-1]["content"] == OWN for sent in assistant.sent) == {True: 1, False: 6}


def test_judgements_of_people_do_not_see_the_judge(tmp_path: Path) -> None:
    outcome = only(played(tmp_path, Assistant(), Judge())).outcome
    lines = RECIPE.judged_lines(outcome, Judgement(metric="hallucinates", target="assistant", score=True))
    assert [line.content for line in lines] == [OWN, "You like hats."]


def test_order_of_completion_does_not_change_the_export(tmp_path: Path) -> None:
    options = {"topics": "travel_hotel", "method": ("rag", "self-critic"), "turns": (3,), "limit": 6}
    exports = []
    for concurrency in (1, 8):
        path = tmp_path / f"{concurrency}.db"
        run = dialoom.play(RECIPE, path=path, options=options, concurrency=concurrency)
        run.export("dialogues", path.with_suffix(".jsonl"))
        exports.append(path.with_suffix(".jsonl").read_bytes())
    assert exports[0] == exports[1] and exports[0].count(b"\n") == 6


def test_shared_texts_are_embedded_once(tmp_path: Path) -> None:
    requests: list[tuple[str, ...]] = []

    async def embedder(messages: list[Any]) -> str:
        texts = tuple(message["content"] for message in messages)
        requests.append(texts)
        return json.dumps(
            {"vectors": [encode_vector(normalize_vector([1.0, float("boats" in text)])) for text in texts]}
        )

    run = dialoom.play(
        RECIPE,
        path=tmp_path / "run.db",
        options={
            "pairs": write_pairs(tmp_path / "pairs"),
            "distractors": write_pool(tmp_path / "pool.json"),
            "topics": "boats",
            "turns": (2,),
            "method": ("rag",),
            "retrieved": (1, 2),
            "embedder": "litellm:some/model",
        },
        models={"assistant": Assistant(), "judge": Judge(), "embedder": embedder},
    )
    assert sorted(map(len, requests)) == [3, 3, 4]
    assert [episode.outcome.details["retrieved"] for episode in run.episodes()] == [[0], [0, 1]] * 2
