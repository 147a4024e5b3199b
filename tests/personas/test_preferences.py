"""The readers of PrefEval's files: the release's layout, users' own files, and errors in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoom.personas import DataError
from dialoom.personas.preferences import DEFAULT_POOL, FORMS, PreferencePairs, read_chats, sample_pairs
from dialoom.personas.similarity import content_words
from tests.graphs.prefeval.invented import FOLDERS, TOPICS, rows, write, write_pairs, write_pool


def test_layout_is_read_in_every_form(tmp_path: Path) -> None:
    write_pairs(tmp_path / "benchmark_dataset")
    write(tmp_path / "benchmark_dataset" / "mcq_options" / "boats copy.json", [])
    source = PreferencePairs(tmp_path)
    assert source.topics() == sorted(TOPICS)
    explicit, choice, persona = (list(source.pairs("boats", form, with_options=True)) for form in FORMS)
    for index, forms in enumerate(zip(explicit, choice, persona, strict=True)):
        assert {pair.id for pair in forms} == {f"boats-{index}"}
        assert {pair.options[0] for pair in forms} == {f"boats {index} right"}
        assert {pair.conflicting for pair in forms} == {f"I only want boats of kind {index}."}
    assert [len(pairs[0].talk) for pairs in (explicit, choice, persona)] == [0, 4, 6]
    assert [line.speaker for line in choice[0].talk] == ["user", "assistant"] * 2


def test_each_form_has_the_wording_of_its_own_file(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path)
    path = pairs / FOLDERS["choice"] / "hats.json"
    changed = rows("hats", "choice")
    changed[0]["preference"] = "I really never want hats of kind 0."
    changed[0]["fix"] = 1
    del changed[1]["explanation"]
    write(path, changed)
    explicit, choice = (list(PreferencePairs(pairs).pairs("hats", form)) for form in ("explicit", "choice"))
    assert explicit[0].preference != choice[0].preference == "I really never want hats of kind 0."
    assert choice[1].explanation == ""


def test_own_file_has_all_forms_in_its_rows(tmp_path: Path) -> None:
    one = {"topic": "boats", **rows("boats", "explicit")[0], **rows("boats", "mcq")[0]}
    one["choice_conversation"] = rows("boats", "choice")[0]["conversation"]
    one["persona_conversation"] = rows("boats", "persona")[0]["conversation"]
    path = tmp_path / "own.jsonl"
    others = json.dumps({**one, "topic": "hats", "question": "Which hats\u2028or caps?"}, ensure_ascii=False)
    path.write_text(json.dumps(one) + "\n" + others + "\r\n")
    source = PreferencePairs(path)
    assert source.topics() == ["boats", "hats"]
    assert next(source.pairs("hats", "explicit")).question == "Which hats\u2028or caps?"
    assert [len(next(source.pairs("hats", form, with_options=True)).talk) for form in FORMS] == [0, 4, 6]


def _without(key: str) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda found: [found[0], {name: value for name, value in found[1].items() if name != key}]


def _talk(**changes: Any) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda found: [found[0], {**found[1], "conversation": {**found[1]["conversation"], **changes}}]


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("explicit", _without("preference"), "row 1: 'preference' is missing; it must be a string"),
        ("explicit", lambda found: [found[0], {**found[1], "question": "  "}], "row 1: 'question' is '  '"),
        ("explicit", lambda found: [found[0], 7], "row 1 is 7; each row must be an object"),
        ("explicit", lambda found: found[:1], "has 2 rows where the topic's other file has 1"),
        (
            "choice",
            _without("conversation"),
            "row 1: 'conversation' is None; it must be an object for the form choice",
        ),
        ("choice", _talk(user_selection=None), "row 1: 'user_selection' is None; it must be a string"),
        ("persona", _talk(**{"3": "what"}), "row 1: 'conversation' has no turn '3'; turns count from '0'"),
        ("persona", _talk(**{"2": {"user": "A"}}), "row 1, turn 2: 'assistant' is missing"),
        (
            "mcq",
            lambda _: [{"classification_task_options": ["a", "b", "c"]}] * 2,
            "are 3 options; they must be four texts",
        ),
        ("mcq", lambda _: [{}] * 2, "row 0: 'classification_task_options' are None; they must be four texts"),
        ("mcq", lambda _: [{"classification_task_options": ["a", "b", "c", ""]}] * 2, "they must be four texts"),
        ("mcq", lambda found: found[:1], "has 1 rows"),
    ],
)
def test_broken_row_is_named(tmp_path: Path, file: str, change: Callable[[Any], Any], message: str) -> None:
    pairs = write_pairs(tmp_path)
    path = write(pairs / FOLDERS[file] / "lamps.json", change(rows("lamps", file)))
    with pytest.raises(DataError) as caught:
        for form in FORMS:
            list(PreferencePairs(pairs).pairs("lamps", form, with_options=True))
    assert message in str(caught.value) and f"{path.name}: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"preference": ', "not JSON: Expecting value"),
        ("[" * 100_000, "nested more than 100 deep"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_file_that_is_no_list_of_rows_is_refused(tmp_path: Path, text: str, message: str) -> None:
    pairs = write_pairs(tmp_path)
    (pairs / FOLDERS["explicit"] / "boats.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DataError, match=message):
        list(PreferencePairs(pairs).pairs("boats", "explicit"))


def test_folder_without_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no folder explicit_preference"):
        PreferencePairs(tmp_path)
    with pytest.raises(DataError, match="there is no such folder or file"):
        PreferencePairs(tmp_path / "nowhere")
    with pytest.raises(DataError, match="contains no pairs"):
        PreferencePairs(write(tmp_path / "own.json", []))
    (tmp_path / "empty" / FOLDERS["explicit"]).mkdir(parents=True)
    with pytest.raises(DataError, match="contains no topic"):
        PreferencePairs(tmp_path / "empty").topics()
    pairs = write_pairs(tmp_path / "pairs")
    (pairs / FOLDERS["persona"] / "hats.json").unlink()
    with pytest.raises(DataError, match=r"hats\.json: there is no such file"):
        list(PreferencePairs(pairs).pairs("hats", "persona"))


@pytest.mark.parametrize(
    ("messages", "expected_message"),
    [
        ([("user", "A"), ("user", "B")], "chat 0, message 1: 'user', but the assistant must speak here"),
        ([("user", "A")], "chat 0: 'conversation' is not a list of messages of user and assistant in turn"),
        ([("user", "A"), ("assistant", "")], "chat 0, message 1: 'content' is ''"),
        ([], "chat 0: 'conversation' is not a list"),
    ],
)
def test_chat_out_of_turn_is_named(tmp_path: Path, messages: list[tuple[str, str]], expected_message: str) -> None:
    chat = {"turn": 99, "conversation": [{"role": role, "content": content} for role, content in messages]}
    with pytest.raises(DataError) as caught:
        read_chats(write(tmp_path / "pool.json", [chat]))
    assert expected_message in str(caught.value)
    assert [len(chat) for chat in read_chats(write_pool(tmp_path / "pool.json"))] == [10, 10, 4]


def test_samples_match_their_description() -> None:
    """Sixty pairs in six topics have all forms, four options and a conflicting preference; the pool has 129 turns."""
    source = sample_pairs()
    pairs = [
        pair for topic in source.topics() for form in FORMS for pair in source.pairs(topic, form, with_options=True)
    ]
    assert Counter(pair.form for pair in pairs) == dict.fromkeys(FORMS, 60) and len(source.topics()) == 6
    for text in ("preference", "question", "explanation", "conflicting"):
        assert len({getattr(pair, text) for pair in pairs}) == 60, text
    assert all(pair.conflicting and len(set(pair.options)) == 4 for pair in pairs)
    assert {len(pair.talk) for pair in pairs if pair.form == "choice"} == {4}
    turns = Counter(len(pair.talk) // 2 for pair in pairs if pair.form == "persona")
    assert turns == {3: 3, 4: 6, 5: 30, 6: 18, 7: 3}, "most have five or six, as in the release"
    lines = [line.content for pair in pairs for line in pair.talk]
    assert Counter(lines).most_common(1)[0][1] == 1
    chats = read_chats(DEFAULT_POOL)
    assert len(chats) == 24 and sum(map(len, chats)) == 2 * 129
    said = [line.content for chat in chats for line in chat]
    assert len(set(said)) == len(said)


def test_right_option_is_nearest_to_the_preference() -> None:
    for topic in sample_pairs().topics():
        for pair in sample_pairs().pairs(topic, "explicit", with_options=True):
            words = set(content_words(pair.preference))
            shared = [len(words & set(content_words(option))) for option in pair.options]
            assert shared[0] > max(shared[1:]), (pair.id, shared)


def test_only_the_first_option_fits_the_preference() -> None:
    folder = DEFAULT_POOL.parent / FOLDERS["choice"]
    for path in folder.glob("*.json"):
        for row in json.loads(path.read_text()):
            assert row["aligned_op"] == row["options"][0] and len(set(row["options"])) == 4
            assert row["implicit_query"] == row["conversation"]["query"]
            told = set(content_words(row["conversation"]["assistant_options"]))
            for option in row["options"]:
                words = set(content_words(option))
                assert len(words & told) * 2 >= len(words), (path.stem, option)
