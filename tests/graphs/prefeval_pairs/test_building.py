"""New pairs: requests, filters, edits by people and a killed run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import dialoom
from dialoom.graphs import RecipeError
from dialoom.personas import DataError
from dialoom.personas.preferences import (
    FORMS,
    Draft,
    PreferencePairs,
    read_drafts,
    read_rated,
    read_tellers,
    read_topics,
)
from dialoom.runs.export.pushing import read_card_files
from tests.graphs.prefeval_pairs.players import Players, built, pair, part, write_topics
from tests.runs.test_kill_anywhere import killed


def drafts_of(run: dialoom.Run) -> list[Draft]:
    """Return the drafts of a run of one topic."""
    (episode,) = run.episodes()
    assert episode.state == "done", episode.error
    return [Draft.model_validate(each) for each in episode.outcome.details["drafts"]]


def reasons(run: dialoom.Run) -> dict[str, Any]:
    """Return the report's counts of dropped pairs by reason."""
    tables = [table for table in run.report().tables if table.name == "rejected"]
    rows = [dict(zip(table.columns, row, strict=True)) for table in tables for row in table.rows]
    return {str(row["check"]): row["dropped"] for row in rows}


def by_word(**said: Any) -> Callable[[str], Any]:
    """Return a function that replies by the word of the pair, and `others` to all other pairs."""

    def say(text: str) -> Any:
        value = next((value for word, value in said.items() if f"a {word}." in text), said["others"])
        return value(text) if callable(value) else value

    return say


def test_topic_becomes_a_folder_that_prefeval_plays(tmp_path: Path) -> None:
    options = {
        "topics": "pet_ownership",
        "per_call": 8,
        "calls": 1,
        "answerers": ("offline/attentive", "offline/generic"),
    }
    run = dialoom.play("prefeval-pairs", path=tmp_path / "run.db", options=options)
    run.export("pairs", tmp_path / "pairs")
    written = {path.relative_to(tmp_path / "pairs") for path in (tmp_path / "pairs").rglob("*.json")}
    assert {*read_card_files(tmp_path / "pairs")[0]} == written, "the card names all of them"
    front = yaml.safe_load((tmp_path / "pairs" / "README.md").read_text().split("---")[1])
    assert {each["config_name"] for each in front["configs"]} == {
        *("explicit_preference", "mcq_options"),
        *("implicit_preference-choice-based", "implicit_preference-persona-driven"),
    }, "rows of different shapes are separate sets"
    source = PreferencePairs(tmp_path / "pairs")
    assert source.topics() == ["pet_ownership"]
    forms = [list(source.pairs("pet_ownership", form, with_options=True)) for form in FORMS]
    explicit, choice, persona = forms
    assert len(explicit) == len(choice) == len(persona) == sum(draft.is_complete for draft in drafts_of(run)) > 2
    for pairs in zip(explicit, choice, persona, strict=True):
        assert len({(each.preference, each.question, each.options, each.conflicting) for each in pairs}) == 1
    assert all(len(set(each.options)) == 4 and each.conflicting and each.options[0] for each in explicit)
    assert {len(each.talk) for each in choice} == {4} and {len(each.talk) // 2 for each in persona} <= set(range(3, 8))
    for each in persona:
        assert sum(each.preference in line.content for line in each.talk) == 1
    played = dialoom.play(
        "prefeval",
        path=tmp_path / "played.db",
        options={
            "pairs": tmp_path / "pairs",
            "form": FORMS,
            "task": ("generation", "classification"),
            "turns": (1,),
            "limit": 6,
        },
    )
    assert played.status().done == 6


def test_everything_is_requested_once_from_the_right_models(tmp_path: Path) -> None:
    writer, players = Players(), Players()
    models = {"writer": writer, "answerer-2": players, "answerer-3": players}
    run = built(tmp_path, players, models=models, calls=2, keep=3, answerers=("a", "b", "c"))
    assert players.asked == {"validity": 4, "answer": 12, "violates": 12, "rating": 4, "number": 3}
    assert writer.asked == {"pairs": 2, **dict.fromkeys(("query", "options", "offer", "talk", "earlier"), 3)} | {
        "options": 6
    }
    assert reasons(run) == {"twin": 4, "surplus": 1}


def test_violation_rate_is_the_share_of_judged_answers(tmp_path: Path) -> None:
    bad, good = Players(), Players(answer="BAD")
    verdicts = by_word(heron={"answer": "maybe"}, otter={"answer": "no"}, others={"answer": "yes"})

    def verdict(text: str) -> Any:
        return {"answer": "no"} if "BAD" in text and "lemon" not in text else verdicts(text)

    players = Players(violates=verdict)
    models = {"answerer": bad, "answerer-2": good}
    run = built(tmp_path, players, models=models, answerers=("a", "b"), least_rate=0.5, keep=1)
    found = {draft.preference.split()[-1]: (draft.violation_rate, draft.dropped) for draft in drafts_of(run)}
    assert found == {
        "heron.": (0.0, "low rate"),
        "otter.": (0.0, "low rate"),
        "lemon.": (1.0, ""),
        "glacier.": (0.5, "surplus"),
    }


def test_each_filter_drops_and_counts_its_pairs(tmp_path: Path) -> None:
    rating = {"discard": False, "violation_probability": "high", "reasoning_difficulty": "high"}
    players = Players(
        validity=by_word(
            heron={"verdict": "fits"},
            otter={"verdict": "contradicts"},
            lemon={"verdict": "lacks_facts"},
            glacier="It is fine.",
            others={"verdict": "valid"},
        ),
        answer=lambda text: " " if "pianopiano" in text else "Take one.",
        violates=by_word(canal="perhaps", violin={"answer": "no"}, others={"answer": "yes"}),
        rating=by_word(
            thistle="great",
            lantern={**rating, "discard": True},
            barrel={**rating, "violation_probability": "medium"},
            kettle={**rating, "reasoning_difficulty": "low"},
            others=rating,
        ),
    )
    options: dict[str, Any] = {"least_probability": "high", "least_difficulty": "high", "until": "filtered"}
    run = built(tmp_path, players, per_call=12, **options)
    assert reasons(run) == {
        **dict.fromkeys(("contradicts", "fits", "lacks_facts", "validity unparsed"), 1),
        **{"rate unparsed": 2, "low rate": 1},
        **dict.fromkeys(("rating unparsed", "discarded", "low probability", "low difficulty"), 1),
    }
    (table, *_) = run.report().tables
    assert list(table.rows[0])[1:] == [12, 12, 8, 5, 1, 1.0, 0]


def test_malformed_replies_drop_their_pairs(tmp_path: Path) -> None:
    turn, telling = {"user": "a", "assistant": "b"}, {"user": "I row.", "assistant": "b"}
    players = Players(
        query=by_word(
            heron=lambda text: {"query": part(text, "question").upper()}, others={"query": "Which are there?"}
        ),
        offer=by_word(
            otter=lambda text: {
                "assistant_options": "a",
                "user_selection": "b",
                "assistant_acknowledgment": part(text, "preference"),
            },
            others={"assistant_options": "a", "user_selection": "b", "assistant_acknowledgment": "c"},
        ),
        options=by_word(
            lemon=lambda text: {"options": [*"abcd"] if "<question>" in text else [*"abc"]},
            glacier=lambda text: {"options": [*"abcA"] if "<question>" in text else [*"abcd"]},
            others={"options": [*"abcd"]},
        ),
        number=by_word(piano={"number": 0}, canal={"number": 6}, others={"number": 2}),
        talk=by_word(
            violin={"turns": [turn] * 3, "passage": "I row."},
            thistle={"turns": [telling] * 3, "passage": "I row."},
            lantern={"turns": [telling, turn], "passage": "I row."},
            others={"turns": [turn, telling, turn], "passage": "I row."},
        ),
        earlier=by_word(
            barrel=lambda text: {"preference": part(text, "preference")}, kettle="no", others={"preference": "I do."}
        ),
    )
    run = built(tmp_path, players, per_call=12)
    assert reasons(run) == {
        "choice unparsed": 3,
        "no persona": 1,
        "persona unparsed": 3,
        "talk length": 1,
        "options unparsed": 1,
        "conflict unparsed": 2,
    }
    assert [draft.preference for draft in drafts_of(run) if draft.is_complete] == ["I never touch a saddle."]


def test_more_often_violated_of_near_pairs_is_chosen(tmp_path: Path) -> None:
    good = Players(answer="BAD")
    players = Players(violates=lambda text: {"answer": "no" if "BAD" in text and "a lemon." not in text else "yes"})
    models = {"answerer-2": good}
    run = built(tmp_path, players, models=models, answerers=("a", "b"), threshold=0.0, until="chosen")
    assert [draft.preference for draft in drafts_of(run) if draft.chosen] == ["I never touch a lemon."]
    assert reasons(run) == {"near-duplicate": 3}


def test_unparseable_replies_are_counted_and_requested_once_more(tmp_path: Path) -> None:
    players = Players(pairs='{"items": [{"preference": "I never row."}]}')
    run = built(tmp_path, players, calls=2)
    (episode,) = run.episodes()
    assert (episode.state, episode.outcome.counts["unparsed_calls"]) == ("done", 2)
    assert players.asked == {"pairs": 4}
    (table,) = run.report().tables
    assert list(table.rows[0]) == ["boats", *[0] * 7, None, 2]


def test_drafts_are_edited_between_stages(tmp_path: Path) -> None:
    run = built(
        tmp_path, Players(validity=by_word(lemon={"verdict": "fits"}, others={"verdict": "valid"})), until="chosen"
    )
    run.export("drafts", tmp_path / "drafts")
    path = tmp_path / "drafts" / "boats.json"
    rows = {row["preference"].split()[-1][:-1]: row for row in json.loads(path.read_text())}
    assert {word: row.get("dropped", "") for word, row in rows.items()} == {
        "heron": "",
        "otter": "",
        "glacier": "",
        "lemon": "fits",
    }
    rows["heron"]["preference"] = "I never look at a heron."
    rows["lemon"]["chosen"] = True
    del rows["glacier"]
    added = {"topic": "boats", **pair(5), "classification_task_options": ["a", "b", "c", "d"]}
    path.write_text(json.dumps([*rows.values(), added]))
    players = Players()
    again = built(tmp_path, players, "again", drafts=tmp_path / "drafts")
    assert players.asked["validity"] == players.asked["violates"] == players.asked["rating"] == 2
    assert (players.asked["pairs"], players.asked["talk"], players.asked["earlier"]) == (0, 4, 4)
    found = drafts_of(again)
    assert all(draft.is_complete for draft in found)
    assert {draft.preference for draft in found} == {
        "I never look at a heron.",
        "I never touch a otter.",
        "I never touch a lemon.",
        "I never touch a canal.",
    }
    assert [draft.classification_task_options for draft in found][-1] == ("a", "b", "c", "d")
    assert again.scenario(1).described()["drafts"] == 4


def test_stages_one_by_one_give_the_same_pairs(tmp_path: Path) -> None:
    whole, parts = Players(), Players()
    built(tmp_path, whole, "whole").export("pairs", tmp_path / "whole")
    source: dict[str, Any] = {}
    for until in ("written", "filtered", "chosen", "complete"):
        run = built(tmp_path, parts, until, until=until, **source)
        run.export("drafts", tmp_path / until)
        source = {"drafts": tmp_path / until}
    assert parts.asked == whole.asked
    made = drafts_of(run)
    assert [draft.is_complete for draft in made] == [True] * 4
    with pytest.raises(RecipeError, match="the run ends at the stage filtered"):
        dialoom.open_run(tmp_path / "filtered.db").export("pairs", tmp_path / "none")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": " "}, "row 0: 'question' is ' ': String should have at least 1 character"),
        ({"prefernce": "I"}, "row 0: unknown key 'prefernce'; the keys are topic, preference, question, "),
        ({"options": ["a", "b", "c"]}, "row 0: 'options' is ['a', 'b', 'c']: Tuple should have at least 4 items"),
        ({"options": ["a", "b", "c", "a"]}, "the options must differ"),
        ({"persona_conversation": [{"user": "a"}]}, "row 0: 'persona_conversation.0.assistant' is missing"),
        ({"violation_rate": 2}, "row 0: 'violation_rate' is 2: Input should be less than or equal to 1"),
    ],
)
def test_invalid_draft_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "boats.json"
    path.write_text(json.dumps([{"topic": "boats", **pair(0), **change}]))
    with pytest.raises(DataError) as caught:
        list(read_drafts(tmp_path))
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_impossible_options_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "topics.json").write_text('[{"topic": "boats"}, {"topic": "boats"}]')
    refused: list[tuple[dict[str, Any], str]] = [
        ({"topics": "boats"}, "topics: there is no 'boats'; the names are education_learning_styles, "),
        ({"topic_file": tmp_path / "topics.json"}, "row 1: topic 'boats' is also in row 0"),
        ({"answerers": ("a",) * 6}, "must be at most 5 models, got 6"),
        ({"shortest": 5, "longest": 4}, "shortest must be at most longest, 4, got 5"),
        ({"drafts": tmp_path / "empty"}, "contains no .json file"),
        ({"drafts": tmp_path, "until": "written"}, "must be a later stage than written"),
        ({"embedder": "word2vec"}, "'word2vec' is not an embedder"),
    ]
    for options, message in refused:
        with pytest.raises(dialoom.DialoomError, match=message):
            dialoom.play("prefeval-pairs", path=tmp_path / "run.db", options=options)
        assert not (tmp_path / "run.db").exists()


def test_shipped_material_for_pairs() -> None:
    topics, people, rated = read_topics(), read_tellers(), read_rated()
    assert len(topics) == 8 and all(topic.description and len(topic.subtopics) == 6 for topic in topics)
    assert len(set(people)) == 100 and len({each.preference for each in rated}) == 50
    counts = Counter((each.violation_probability, each.reasoning_difficulty) for each in rated)
    assert set(counts) >= {("high", "high"), ("high", "low"), ("medium", "high"), ("low", "low")}
    assert {each.discard for each in rated} == {True, False}


def test_written_texts_of_pairs_pass_the_gate(tmp_path: Path) -> None:
    swapped = {
        "assistant_options": "There are four kinds of kettle.",
        "user_selection": "How can I help you today with your kettle?",
        "assistant_acknowledgment": "<other>Fine",
    }
    players = Players(offer=swapped, earlier={"preference": "I touch them all, but only in the"})
    run = built(tmp_path, players, per_call=1)
    assert [(fault.role, fault.where, fault.kind) for _, fault in run.faults()] == [
        ("writer", "pair 1, choice 3", "swapped_role"),
        ("writer", "pair 1, choice 4", "prompt_leak"),
        ("writer", "pair 1, earlier preference", "cut_line"),
    ]
    row = {"topic": "boats", "preference": "I never touch a <topic>.", "question": "Which suits Rome?"}
    (tmp_path / "drafts.jsonl").write_text(json.dumps(row) + "\n")
    given = built(tmp_path, Players(), name="given", drafts=tmp_path / "drafts.jsonl")
    assert [fault.where for _, fault in given.faults()] == ["pair 1, persona 3"], (
        "the first text in which the writer repeats it"
    )


SMALL = {"per_call": 3, "calls": 2}


def exported(run: dialoom.Run, folder: Path) -> dict[str, bytes]:
    """Export both formats and return the files."""
    folder.mkdir()
    for name in ("pairs", "drafts"):
        run.export(name, folder / name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.json")}


def test_killed_and_resumed_run_gives_the_same_bytes(tmp_path: Path) -> None:
    options = {**SMALL, "topic_file": write_topics(tmp_path, "boats", "hats")}
    whole = dialoom.play("prefeval-pairs", path=tmp_path / "whole.db", options=options)
    expected = exported(whole, tmp_path / "whole")
    assert len(expected) == 2 * 4 + 2
    for place, count in (("INSERT INTO kept_calls", 20), ("INTO checkpoints", 5), ("INSERT INTO outcomes", 2)):
        folder = tmp_path / str(count)
        broken = killed(folder, place, count, "run", "prefeval-pairs", **options)
        assert exported(dialoom.resume(broken), folder / "made") == expected
