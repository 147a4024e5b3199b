"""Traits of simulated users, drawn from real conversations, from columns, or of a stress kind, and reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom as api
from tests.conftest import Command

ADA = "length = '12', patience = 3, corrections = 0"
TRAITS = ("length", "directness", "patience", "corrections")
STUDY = """
name = "shop"
[people]
rows = [
    {{ name = "Ada", {more} }},
    {{ name = "Cy", length = 9 }}, {{ name = "Di", length = 8 }}, {{ name = "Ed", length = 7 }},
    {{ name = "Bo", length = 1.0, patience = "", directness = 40.0 }},
]
[tasks]
rows = ["return a kettle", "change an address"]
[dialogue]
max_turns = 2
[user]
brief = "You call a shop. <task>{{{{ task.goal }}}}</task>"
traits = "{traits}"
[assistant]
system = "You are a shop. Your customer: {{{{ person.portrait }}}}"
[[judge]]
metric = "resolved"
rubric = "It is settled."
"""


def talks(folder: Path) -> None:
    """Write six conversations with user messages of one to six words; the users of the last three object."""
    with (folder / "talks.jsonl").open("w") as file:
        for count in range(1, 7):
            words = "no, wait, the blue kettle please".split()[:count]
            line = " ".join(words if count > 3 else ["kettle"] * count)
            messages = [{"role": "user", "content": line}, {"role": "assistant", "content": "Well."}] * (count + 1)
            file.write(json.dumps({"messages": messages}) + "\n")


def study(folder: Path, traits: str, more: str = ADA) -> None:
    """Write a study of five people and two tasks."""
    (folder / "shop.toml").write_text(STUDY.format(traits=traits, more=more))


def asked(run: Path, role: str) -> list[str]:
    """Return the requests to a role."""
    opened = api.open_run(run)
    calls = [call for place in range(1, len(opened) + 1) for call in opened.calls(place) if call["role"] == role]
    assert calls
    return [str(opened.request(call["call"]).messages) for call in calls]


def facets(run: Path) -> list[dict[str, Any]]:
    """Return the facets of the episodes."""
    return [dict(episode.facets) for episode in api.open_run(run).episodes()]


def test_a_study_draws_the_traits_of_a_real_user_for_each_person(dialoom: Command, tmp_path: Path) -> None:
    talks(tmp_path)
    study(tmp_path, "talks.jsonl")
    assert "traits of users are drawn from 6 conversations" in dialoom("run", "shop.toml", "-o", "s.db").stdout
    found = facets(tmp_path / "s.db")
    traits = [(each["person"], each["trait_length"], each["trait_patience"]) for each in found]
    assert len(traits) == 10 and len(set(traits)) == 5  # a person has the same traits in all tasks
    assert {each["trait_length"] for each in found} <= {"1 to 2", "3 to 4", "5 to 6"}
    assert {each["trait_patience"] for each in found} <= {"2 to 3", "4 to 5", "6 to 7"}
    assert {each["trait_corrections"] for each in found} <= {"0", "100"}
    assert all("Each of your messages has" in each for each in asked(tmp_path / "s.db", "user"))
    for role in ("assistant", "judge"):
        assert not any("Each of your messages has" in each for each in asked(tmp_path / "s.db", role))
    assert "Scores by trait_length" in dialoom("report", "s.db").stdout
    (tmp_path / "talks.jsonl").unlink()
    dialoom("run", "shop.toml", "-o", "other.db", code=2)


@pytest.mark.parametrize(("kind", "words"), [("uncooperative", "You answer only"), ("mistaken", "You are wrong")])
def test_a_stress_kind_is_a_facet(dialoom: Command, tmp_path: Path, kind: str, words: str) -> None:
    study(tmp_path, kind)
    dialoom("run", "shop.toml", "-o", "s.db")
    assert {each["stress"] for each in facets(tmp_path / "s.db")} == {kind}
    assert all(words in each for each in asked(tmp_path / "s.db", "user"))
    assert not any(words in each for each in asked(tmp_path / "s.db", "assistant"))


def test_columns_of_people_are_traits(dialoom: Command, tmp_path: Path) -> None:
    study(tmp_path, "columns", "length = 12, length_unit = 'characters'")
    dialoom("run", "shop.toml", "-o", "characters.db")
    assert "about 12 characters." in asked(tmp_path / "characters.db", "user")[0]
    study(tmp_path, "columns")
    dialoom("run", "shop.toml", "-o", "s.db")
    first, *_, last = asked(tmp_path / "s.db", "user")
    for text in ("about 12 words.", "about 3 messages in all", "You do not object"):
        assert text in first and text not in last
    assert "has one word." in last and "tells about 40 %" in last


@pytest.mark.parametrize(
    ("traits", "more", "message"),
    [
        ("columns", "directness = 'high'", "traits of Ada: 'directness' must be a number from 0 to 100, got 'high'"),
        ("columns", "corrections = 120", "traits of Ada: 'corrections' must be a number from 0 to 100, got 120"),
        ("columns", "length = 9, length_unit = 'lines'", "'length_unit' must be 'words' or 'characters', got 'lines'"),
        ("columns", "length = 'nan'", "traits of Ada: 'length' must be a number of at least 0, got 'nan'"),
        ("none.jsonl", ADA, "none.jsonl: there is no such file; give one, or uncooperative or mistaken"),
        ("empty.jsonl", ADA, "empty.jsonl: contains no line of the role 'user'; its roles are none"),
        ("agents.jsonl", ADA, "agents.jsonl: contains no line of the role 'user'; its roles are customer, agent"),
        ("broken.jsonl", ADA, "broken.jsonl:2: there is no conversation"),
    ],
)
def test_wrong_traits_are_reported(dialoom: Command, tmp_path: Path, traits: str, more: str, message: str) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    lines = [{"role": role, "content": "Hello."} for role in ("customer", "agent")]
    (tmp_path / "agents.jsonl").write_text(json.dumps({"messages": lines}))
    (tmp_path / "broken.jsonl").write_text('{"messages": [{"role": "user", "content": "Hi"}]}\n{"a": 1}\n')
    study(tmp_path, traits, more)
    assert message in dialoom("run", "shop.toml", "-o", "s.db", code=2).stderr


def test_words_of_languages_without_spaces_are_characters(dialoom: Command, tmp_path: Path) -> None:
    lines = [{"role": "user", "content": text} for text in ("我想退货。可以吗？", "不对，我要退货！")]
    (tmp_path / "talks.jsonl").write_text(json.dumps({"messages": lines}, ensure_ascii=False) + "\n")
    study(tmp_path, "talks.jsonl")
    assert "drawn from 1 conversation\n" in dialoom("run", "shop.toml", "-o", "s.db").stdout
    (found,) = {(each["trait_length"], each["trait_directness"]) for each in facets(tmp_path / "s.db")}
    assert found == ("6.5", "57.1")  # seven and six characters; 我想, 想退, 退货, 以吗 of these and 不对, 我要, 要退
    for each in asked(tmp_path / "s.db", "user"):
        assert "Each of your messages has about 6 characters." in each


def test_a_language_without_separate_words_has_no_length(dialoom: Command, tmp_path: Path) -> None:
    lines = [{"role": "user", "content": text} for text in ("ฉันขอคืนสินค้าได้ไหม", "ขอบคุณค่ะ")]
    (tmp_path / "talks.jsonl").write_text(json.dumps({"messages": lines}, ensure_ascii=False) + "\n")
    study(tmp_path, "talks.jsonl")
    dialoom("run", "shop.toml", "-o", "s.db")
    (found,) = {tuple(each[f"trait_{name}"] for name in TRAITS) for each in facets(tmp_path / "s.db")}
    assert found == ("unknown", "unknown", "2", "unknown")
    for each in asked(tmp_path / "s.db", "user"):
        assert "You write about 2 messages in all" in each and "Each of your messages has" not in each


def test_people_without_the_columns_are_refused(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text('[people]\nrows = ["a nurse"]\n[user]\ntraits = "columns"\n')
    errors = dialoom("run", "shop.toml", "-o", "s.db", code=2).stderr
    assert "at least one of the columns length, directness, patience, corrections is needed" in errors


def test_personalens_reports_by_trait_and_warns_of_different_users(dialoom: Command, tmp_path: Path) -> None:
    talks(tmp_path)
    play = ["run", "personalens", "--limit", 4, "--setting", "D", "--setting", "base"]
    dialoom(*play, "--traits-from", "talks.jsonl", "-o", "drawn.db")
    dialoom(*play, "--traits-from", "mistaken", "-o", "mistaken.db")
    dialoom(*play, "-o", "plain.db")
    assert "Scores by setting and trait length of the user" in dialoom("report", "drawn.db").stdout
    assert "Scores by setting and stress of the user" in dialoom("report", "mistaken.db").stdout
    assert "of the user" not in dialoom("report", "plain.db", "--table", "scores").stdout
    assert all("Each of your messages has" in each for each in asked(tmp_path / "drawn.db", "user"))
    for role in ("assistant", "judge"):
        assert not any("Each of your messages has" in each for each in asked(tmp_path / "drawn.db", role))
    first, *_ = facets(tmp_path / "drawn.db")
    assert {"trait_length", "trait_directness", "trait_patience", "trait_corrections"} <= first.keys()
    plain, *_ = facets(tmp_path / "plain.db")
    assert not any(name.startswith("trait_") for name in plain)
    assert "(persona source)" in dialoom("report", "plain.db", "mistaken.db").stdout
