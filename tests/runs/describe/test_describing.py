"""`describe` finds the planted properties of a set of dialogues; lexical diversity."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

import dialoom
from dialoom import DialoomError
from dialoom.graphs.tables.diversity import (
    compute_diversity,
    compute_published_diversity,
    distinct_share,
    entropy,
    self_bleu,
)
from dialoom.personas import load_samples
from tests.conftest import REAL, Command, needs_real_data

TALK = [
    {
        "role": "user",
        "content": "Could you find me a quiet table for two near the old harbour on Friday evening please?",
    },
    {"role": "assistant", "content": "There is one at eight, by the window; shall I keep it for you and your guest?"},
]


def written(path: Path, *talks: list[dict[str, str]]) -> Path:
    """Write conversations to a file."""
    path.write_text(
        "".join(json.dumps({"id": f"{path.stem}-{n}", "messages": talk}) + "\n" for n, talk in enumerate(talks))
    )
    return path


def other(words: str) -> list[dict[str, str]]:
    """Return a conversation about something else."""
    return [{"role": "user", "content": words}, {"role": "assistant", "content": f"About {words.split()[0]}: done."}]


def test_planted_copy_and_leak_are_found(tmp_path: Path) -> None:
    near = [
        {**TALK[0], "content": TALK[0]["content"].replace("?", "!")},
        {**TALK[1], "content": TALK[1]["content"] + " Yes."},
    ]
    train = written(tmp_path / "train.jsonl", TALK, near, other("Trains to Ghent leave when on Sundays in spring"))
    test = written(tmp_path / "test.jsonl", other("Sort my music by mood and by year"), TALK)
    table = dialoom.describe(train, [test])["duplicates"]
    rows = {(row[0], row[1]): row[2:5] for row in table.rows}
    assert rows["dialogues", "itself"] == [3, 0, 1]
    assert rows["dialogues of test.jsonl", "train.jsonl"] == [2, 1, 0]
    assert "dialogues: test-1 of test.jsonl resembles train-0" in table.notes
    assert rows["first lines", "itself"] == [3, 1, 0], "equal except for punctuation"


def test_characters_of_chinese_count_as_words(tmp_path: Path) -> None:
    opening = "你好，我想退掉上周买的水壶，它漏水，而且颜色也不对，请问可以退款吗？"
    rows = [[{"role": "user", "content": text}] for text in (opening, f"{opening}谢谢", "明天去上海的火车几点出发？")]
    found = dialoom.describe(written(tmp_path / "chinese.jsonl", *rows))
    assert found["sizes"].rows[1][:3] == ["words of the user", 3, 24]
    assert found["lexical"].rows[0][3] == 72
    assert found["duplicates"].rows[0][4] == 1, "nearly the same"


def test_copies_among_trials_are_named_with_the_trial(tmp_path: Path) -> None:
    rows = [{"id": "kettle", "trial": trial, "messages": TALK} for trial in (1, 2)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    table = dialoom.describe(tmp_path / "rows.jsonl")["duplicates"]
    assert "dialogues: kettle~2 resembles kettle" in table.notes


def test_paraphrases_are_found_by_an_embedder(tmp_path: Path) -> None:
    asked = "Could you find a quiet table for two people near the old harbour on Friday?"
    again = "On Friday, near the harbour that is old: two people, one quiet table. Could you find that?"
    own = written(tmp_path / "own.jsonl", other(asked), other("Trains to Ghent leave when on Sundays in spring"))
    test = written(tmp_path / "test.jsonl", other(again), other("Sort my music by mood and by year"))
    assert dialoom.describe(own, [test])["duplicates"].rows[-1][2:5] == [2, 0, 0]
    found = dialoom.describe(own, [test], embedder="lexical", alike=0.8)["alike"]
    rows = {(row[0], row[1]): row[2:4] for row in found.rows}
    assert rows["first lines", "itself"] == [2, 0] and rows["first lines of test.jsonl", "own.jsonl"] == [2, 1]
    assert "first lines: test-0 of test.jsonl resembles own-0" in found.notes
    with pytest.raises(DialoomError, match="embedder: embedder 'litellm:a/b' makes paid calls"):
        dialoom.describe(own, embedder="litellm:a/b")
    with pytest.raises(DialoomError, match="alike is a cosine of embeddings, so it needs an embedder"):
        dialoom.describe(own, alike=0.8)


def test_missing_combinations_of_facets_are_named(tmp_path: Path) -> None:
    rows = [
        {"messages": other(f"Line {n}"), "kind": kind, "domains": domains, "place": "here", "number": n}
        for n, (kind, domains) in enumerate([("single", ["Music"]), ("single", ["Books"]), ("multi", ["Music"])] * 9)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = dialoom.describe(tmp_path / "rows.jsonl")["combinations"]
    assert table.rows == [["kind", "domains", 4, 1, 0.25, "multi with Books"]]


def test_columns_determined_by_the_person_are_compared_over_people(tmp_path: Path) -> None:
    people = [("Ada", 34, "brief"), ("Bo", 34, "wordy"), ("Cy", 61, "brief"), ("Di", 61, "brief"), ("Ed", 61, "brief")]
    rows = [
        {"messages": other(f"Line {n}"), "person": person, "age": age, "style": style, "goal": n // 5 % 2 + (age > 34)}
        for n, (person, age, style) in enumerate(people * 10)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = dialoom.describe(tmp_path / "rows.jsonl")["combinations"]
    assert [row[:4] for row in table.rows] == [
        ["person", "goal", 15, 5],
        ["age", "style", 4, 1],
        ["age", "goal", 6, 2],
        ["style", "goal", 6, 1],
    ]
    assert table.notes[-1].endswith("only one value: age by person; style by person.")
    for last, is_compared in (("Di", True), ("Cy", False)):  # four combinations of four people, and of three
        few = [row for row in rows if str(row["person"]) <= last]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in few))
        found = dialoom.describe(tmp_path / "rows.jsonl")["combinations"]
        assert (["age", "style"] in [row[:2] for row in found.rows]) is is_compared


def test_real_looking_personal_data_is_found_and_not_repeated(tmp_path: Path) -> None:
    real = other(
        "Write to anna.keller@posteo.de, or ring +49 30 901820, card 4111 1111 1111 1111, DE89370400440532013000"
    )
    fictional = other("Write to anna@example.com or ring 212 555 0143 about order 1234 5678 9012 3456")
    found = dialoom.describe(written(tmp_path / "a.jsonl", real, fictional))["personal-data"]
    assert {row[0]: row[1] for row in found.rows} == {
        "mail address": 1,
        "telephone number": 1,
        "card number": 1,
        "account number": 1,
    }
    assert "keller" not in str(found.rows)


def test_run_is_described_on_a_self_contained_page(tmp_path: Path) -> None:
    run = dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 6, "setting": ["base", "I"]})
    found = run.describe()
    assert found.title.endswith("6 dialogues")
    assert found["endings"].rows == [["user_terminated", 6, 1.0]]
    sizes = {row[0]: row[1:3] for row in found["sizes"].rows}
    lines = [len(episode.outcome.messages) for episode in run.episodes()]
    assert sizes["lines"] == [6, sum(lines) / 6]
    said = {str(row[0]): int(str(row[1])) for row in found["preferences"].rows}
    wanted = sum(len(run.scenario(number).preferences()) for number in range(1, 7))
    assert sum(said.values()) == wanted and said["user"] > 0
    assert {"facet": "setting", "values": 2}.items() <= dict(
        zip(found["facets"].columns, next(row for row in found["facets"].rows if row[0] == "setting"), strict=True)
    ).items()
    paths = {path.name for path in found.write(tmp_path / "out", has_charts=False)}
    assert {"report.md", "report.html", "lexical.csv"} <= paths
    page = found.page()
    assert "<svg" in page and "src=" not in page and "<link" not in page, "charts are embedded, and nothing is loaded"


def test_text_is_escaped_on_the_page(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    found = dialoom.describe(written(tmp_path / "a.jsonl", other(hostile), other(hostile)))
    assert found["openings"].rows[0][0] == hostile
    assert "<script" not in found.page() and "&lt;script&gt;" in found.page()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"messages": []}\n{"x": 1}\n', "rows.jsonl:2"),
        (b"{no json\n", "rows.jsonl:1"),
        (b"", "no dialogues"),
        (b'{"messages": []}\n"caf\xe9"\n', "rows.jsonl:2: not UTF-8: byte 0xe9 at 5"),
        (b"PAR1 and no more PAR1", "not a readable Parquet file"),
    ],
)
def test_unreadable_file_is_refused_by_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / ("rows.parquet" if content.startswith(b"PAR1") else "rows.jsonl")
    path.write_bytes(content)
    with pytest.raises(DialoomError, match=message):
        dialoom.describe(path)


@pytest.mark.parametrize(
    ("front", "message"),
    [
        (b"configs: 5", "configs.0 is 5"),
        (b"configs: [[a]]", r"configs.0 is \['a'\]"),
        (b"configs: &a [*a]", r"README.md:2: aliases"),
        (b"configs: [{data_files: [{path: 7}]}]", "configs.0.data_files.0 contains 7"),
        (b"configs: [{data_files: [{split: train}]}]", "configs.0.data_files.0 contains None"),
        (b"when: 2026-13-41", "README.md names no data files"),
        (b"configs: " + b"[" * 2_000, "README.md:2: nested more than 100 deep"),
        (b"licen\xffe: a", "README.md:2: not UTF-8"),
    ],
)
def test_folder_with_a_malformed_card_is_refused_by_place(tmp_path: Path, front: bytes, message: str) -> None:
    (tmp_path / "README.md").write_bytes(b"---\n" + front + b"\n---\n")
    with pytest.raises(DialoomError, match=message):
        dialoom.describe(tmp_path)


def test_card_may_name_a_file_without_a_list(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\nconfigs:\n- data_files: rows.jsonl\n---\n")
    written(tmp_path / "rows.jsonl", TALK)
    assert dialoom.describe(tmp_path)["sizes"].rows


def test_rows_of_other_programs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    rows = [
        {"conversations": [{"from": "human", "value": "Is it late?"}, {"from": "gpt", "value": "Not yet."}]},
        {
            "prompt": [{"role": "user", "content": "And now?"}],
            "chosen": [{"role": "assistant", "content": "Now it is."}],
        },
        {"prompt": "Why so?", "completion": "It rained."},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Is it?"}]}]},
        {
            "conversations": [
                {"user": "Hello.", "assistant": {"preferred": "Hi!", "rejected": ["Good day.", "Yes?"]}, "chosen": said}
                for said in ("rejected", "preferred")
            ]
        },
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sizes = {row[0]: row[1:3] for row in dialoom.describe(path)["sizes"].rows}
    assert sizes == {"lines": [5, 2.2], "words of the user": [5, 2.2], "words of the assistant": [4, 2.5]}


def test_arguments_of_tool_calls_are_not_words(tmp_path: Path) -> None:
    call = {"name": "find", "arguments": json.dumps({"what": "a quiet table for two"})}
    talk = [
        {"from": "human", "value": "Find a table."},
        {"from": "function_call", "value": json.dumps(call)},
        {"from": "observation", "value": "One at eight."},
        {"from": "gpt", "value": "At eight?"},
    ]
    (tmp_path / "talks.jsonl").write_text(json.dumps({"conversations": talk}))
    run = dialoom.import_transcripts(tmp_path / "talks.jsonl", path=tmp_path / "talks.db").run
    of_rows, of_run = (
        {row[0]: row[1:3] for row in each["sizes"].rows}
        for each in (dialoom.describe(tmp_path / "talks.jsonl"), run.describe())
    )
    assert of_rows == of_run and of_rows["words of the assistant"] == [1, 2]


def test_conversation_begins_with_the_users_line(tmp_path: Path) -> None:
    path = tmp_path / "instructed.jsonl"
    questions = ("Is it late?", "Where is the boat?", "Where is the boat?")
    rows = [
        {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]}
        for question in questions
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = dialoom.describe(path)
    assert found["openings"].rows == [["Where is the boat?", 2, pytest.approx(2 / 3)]]
    first = dict(zip(found["duplicates"].columns, found["duplicates"].rows[1], strict=True))
    assert (first["of"], first["word for word"]) == ("first lines", 1)


def test_rows_without_a_conversation_are_described_by_their_texts(tmp_path: Path) -> None:
    run = dialoom.play("aloe", path=tmp_path / "run.db", options={"limit": 1, "rounds": 2})
    run.export("tree", tmp_path / "trees.jsonl", card=True)
    lengths = dialoom.describe(tmp_path / "trees.jsonl")["sizes"]
    assert {"words of the profile", "words of the preferred", "words of the rejected"} <= {
        row[0] for row in lengths.rows
    }
    folder = tmp_path / "source"
    folder.mkdir()
    for file in (load_samples().root / "apollo").glob("*.jsonl"):
        (folder / file.name).write_text("".join(file.read_text().splitlines(keepends=True)[:6]))
    source = dialoom.describe(folder)["sizes"]
    assert {"words of the query", "words of the user", "words of the persona"} <= {row[0] for row in source.rows}


def test_command_describes_the_people_of_a_release(dialoom: Command, tmp_path: Path) -> None:
    for name in ("alibek", "amara"):
        shutil.copytree(
            load_samples().root / "data" / "profile" / name, tmp_path / "release" / "data" / "profile" / name
        )
    done = dialoom("describe", tmp_path / "release")
    assert done.returncode == 0, done.stderr
    assert "Evenness of preferences" in done.stdout and "as published" in done.stdout
    (tmp_path / "empty").mkdir()
    refused = dialoom("describe", "empty", code=2)
    assert "contains neither files of rows" in refused.stderr


def test_lexical_measures_by_hand() -> None:
    assert distinct_share([["a", "b", "a"]], 1) == pytest.approx(2 / 3)
    assert distinct_share([["a", "b"], ["a", "b"]], 2) == pytest.approx(1 / 2), "no n-gram spans two texts"
    assert entropy([list("abcd"), list("bcde")], 4) == pytest.approx(math.log(2))
    assert distinct_share([], 1) is None and entropy([["a"]], 4) is None and self_bleu(["alone"]) is None
    assert self_bleu(["the same line", "the same line"]) == pytest.approx(1.0)
    assert self_bleu(["abc", "xyz"]) == 0.0, "nothing in common"
    assert compute_published_diversity(["", " "]).dist_1 is None and compute_diversity([]).words == 0


def _bleu(texts: Sequence[str]) -> float:
    """Return NLTK's self-BLEU of characters, which compares every text with all others."""
    others = ([*texts[:place], *texts[place + 1 :]] for place in range(len(texts)))
    smoothed = SmoothingFunction().method1
    return fmean(
        sentence_bleu(rest, text, smoothing_function=smoothed) for rest, text in zip(others, texts, strict=True)
    )


@settings(max_examples=40)
@given(st.lists(st.text("abc ", min_size=1, max_size=12), min_size=2, max_size=6))
def test_fast_self_bleu_equals_nltks(texts: list[str]) -> None:
    assert self_bleu(texts) == pytest.approx(_bleu(texts))


@needs_real_data
def test_published_figures_of_the_four_users() -> None:
    users = [REAL / "data" / "profile" / f"user{number}" for number in (2, 42, 874, 1041)]
    profiles = (json.loads((user / "profile.json").read_text()) for user in users)
    summaries = compute_published_diversity([text for profile in profiles for text in profile["interactions"].values()])
    assert (summaries.texts, round(summaries.dist_1 or 0, 6), round(summaries.dist_2 or 0, 5)) == (
        80,
        0.259225,
        0.65014,
    )
    assert round(summaries.ent_4 or 0, 6) == 8.612626
    # The specification has 0.927179. This is NLTK's figure on the samples whose other figures are the specification's.
    # A sample's last text is cut, and a short rest resembles no text: hundreds of other samples give 0.9251 to 0.9294.
    assert round(summaries.self_bleu or 0, 4) == 0.9251
    files = (json.loads((user / name).read_text()) for name in ("tasks.json", "tasks_md.json") for user in users)
    intents = compute_published_diversity([task["User Intent"] for file in files for task in file.values()])
    found = [intents.dist_1, intents.dist_2, intents.ent_4, intents.self_bleu]
    assert (intents.texts, intents.words) == (304, 6150)
    assert [round(figure or 0, 6) for figure in found] == [0.102276, 0.246835, 7.365209, 0.99824]
