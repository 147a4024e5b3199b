"""`describe --like` measures how far simulated users are from real ones."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.graphs import Estimate
from tests.conftest import Command

WORDS = "table harbour friday evening window guest quiet dinner music train ticket early later morning garden".split()


def talk(draw: random.Random, lines: int, said: Callable[[random.Random], str]) -> list[dict[str, str]]:
    """Return a conversation of that many turns."""
    turns = [[("user", said(draw)), ("assistant", "There is one at eight.")] for _ in range(lines)]
    return [{"role": role, "content": text} for turn in turns for role, text in turn]


def plain(draw: random.Random) -> str:
    """Return a line of varied length."""
    return " ".join(draw.choices(WORDS, k=draw.randint(4, 20))).capitalize() + "."


def written(path: Path, said: Callable[[random.Random], str], seed: int, count: int = 60) -> Path:
    """Write a file of conversations of three to nine turns."""
    draw = random.Random(seed)
    rows = [{"id": f"{path.stem}-{n}", "messages": talk(draw, draw.randint(3, 9), said)} for n in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows_of(simulated: Path, real: Path) -> dict[str, list[Any]]:
    """Return the rows of the table by their first cells."""
    return {str(row[0]): [*row[1:]] for row in dialoom.describe(simulated, like=real)["likeness"].rows}


PLANTED: dict[str, tuple[str, Callable[[random.Random], str]]] = {
    "long": ("words per turn", lambda draw: f"{plain(draw)} {plain(draw)} {plain(draw)}"),
    "asking": ("questions, % of turns", lambda draw: plain(draw) + " Right?"),
    "polite": ("politeness, % of turns", lambda draw: "Could you please help? " + plain(draw)),
    "hasty": ("typing errors, per 100 words", lambda draw: f"i dont know , teh {plain(draw)}"),
    "objecting": ("push-back, % of later turns", lambda draw: "No, that's not what I asked for. " + plain(draw)),
    "poor": ("different words (type-token ratio)", lambda draw: " ".join(draw.choices(WORDS[:2], k=12))),
}


def mixed(said: Callable[[random.Random], str]) -> Callable[[random.Random], str]:
    """Return a speaker who says it in one of four lines, so that real users have some of it."""
    return lambda draw: said(draw) if draw.random() < 0.25 else plain(draw)


@pytest.mark.parametrize(("measure", "speaker"), PLANTED.values(), ids=PLANTED.keys())
def test_planted_difference_of_simulated_users_is_far(
    measure: str, speaker: Callable[[random.Random], str], tmp_path: Path
) -> None:
    real = written(tmp_path / "real.jsonl", mixed(speaker), 1)
    like = rows_of(written(tmp_path / "like.jsonl", mixed(speaker), 2), real)
    unlike = rows_of(written(tmp_path / "unlike.jsonl", speaker, 3), real)
    *_, near, chance = like[measure]
    *_, far, _ = unlike[measure]
    assert isinstance(near, Estimate) and isinstance(far, Estimate)
    assert near.low is not None and near.low < 0.2 and near.mean < 2.5 * chance
    assert far.low is not None and far.low > 0.5 > near.mean
    assert unlike["all: mean distance"][2].mean > like["all: mean distance"][2].mean


def test_intervals_contain_their_distances_and_chance_depends_on_the_number_of_dialogues(tmp_path: Path) -> None:
    real = written(tmp_path / "real.jsonl", mixed(PLANTED["polite"][1]), 1)
    chances = []
    for count in (15, 60, 240):
        found = rows_of(written(tmp_path / "like.jsonl", mixed(PLANTED["polite"][1]), 2, count), real)
        estimates = [each for *_, each, _ in found.values() if isinstance(each, Estimate)]
        assert len(estimates) > 5
        assert all(each.low is not None and each.low <= each.mean <= (each.high or 0) for each in estimates)
        chances.append(found["all: mean distance"][-1])
    assert chances == sorted(chances, reverse=True) and chances[0] > 1.5 * chances[2]


def test_full_disclosure_in_the_opening_and_long_dialogues_are_far(tmp_path: Path) -> None:
    real = written(tmp_path / "real.jsonl", plain, 1)
    draw = random.Random(4)
    whole = " ".join(WORDS)
    talks = [talk(draw, 30, lambda draw: " ".join(draw.choices(WORDS, k=8))) for _ in range(20)]
    for each in talks:
        each[0]["content"] = whole
    disclosing = tmp_path / "disclosing.jsonl"
    disclosing.write_text("".join(json.dumps({"messages": each}) + "\n" for each in talks))
    found = rows_of(disclosing, real)
    assert found["disclosed in the opening, %"][0] == 100
    assert found["turns until the end"][0] == 30 and found["turns until the end"][2].low > 2


def test_other_languages_and_small_files_have_no_invented_figures(tmp_path: Path) -> None:
    german = written(
        tmp_path / "german.jsonl", lambda _: "Ich möchte bitte einen Tisch für heute und das ist nicht viel.", 1
    )
    found = rows_of(german, german)
    assert found["politeness, % of turns"] == [None, None, None, None]
    chinese = written(
        tmp_path / "chinese.jsonl", lambda draw: draw.choice(["我想退货，可以吗？", "不对，我要退款。"]), 1
    )
    hindi = written(tmp_path / "hindi.jsonl", lambda draw: "नमस्ते, मैं केतली " + "लौटाना " * draw.randint(1, 2), 1)
    assert rows_of(chinese, chinese)["words per turn"][0] == pytest.approx(6.5, abs=0.2)
    assert rows_of(chinese, chinese)["questions, % of turns"][0] == pytest.approx(50, abs=5)
    assert rows_of(hindi, hindi)["words per turn"][0] == pytest.approx(4.5, abs=0.2)
    few = rows_of(written(tmp_path / "few.jsonl", plain, 1, 3), written(tmp_path / "other.jsonl", plain, 2, 3))
    assert few["words per turn"][2].low is None


@pytest.mark.parametrize(
    ("asked", "stated"),
    [
        ("Πού είναι το κατάστημα;", "Θέλω να επιστρέψω τον βραστήρα· ευχαριστώ."),
        ("Έχετε iPhone\u037e", "Ναι."),
        ("هل يمكنني إرجاعه؟", "أريد إرجاعه؛ شكرا."),
        ("Կարո՞ղ եմ վերադարձնել", "Ուզում եմ վերադարձնել։"),
        ("መመለስ እችላለሁ፧", "መመለስ እፈልጋለሁ።"),
        ("可以退货吗？", "我要退货；谢谢。"),
        ("Can I return it?", "I want to return it; thank you."),
    ],
    ids=["Greek", "Greek mark", "Arabic", "Armenian", "Ethiopic", "Chinese", "English"],
)
def test_questions_are_recognised_in_scripts_with_question_marks(asked: str, stated: str, tmp_path: Path) -> None:
    file = written(tmp_path / "users.jsonl", lambda draw: draw.choice([asked, stated]), 1)
    assert rows_of(file, file)["questions, % of turns"][0] == pytest.approx(50, abs=6)


@pytest.mark.parametrize(
    ("lines", "has_words"),
    [
        (("ฉันขอคืนสินค้าได้ไหม", "ขอบคุณ Acme ค่ะ"), False),
        (("ຂ້ອຍສາມາດສົ່ງຄືນໄດ້ບໍ", "ຂອບໃຈ"), False),
        (("返品できますか。", "商品を返品したいです。"), True),
    ],
    ids=["Thai", "Lao", "Japanese"],
)
def test_questions_and_words_that_nothing_marks_are_not_measured(
    lines: tuple[str, ...], has_words: bool, tmp_path: Path
) -> None:
    file = written(tmp_path / "users.jsonl", lambda draw: " ".join(draw.choices(lines, k=draw.randint(1, 4))), 1)
    found = rows_of(file, file)
    assert found["questions, % of turns"] == [None, None, None, None]
    for measure in ("words per turn", "different words (type-token ratio)", "disclosed in the opening, %"):
        assert (found[measure][0] is not None) == has_words
    assert found["politeness, % of turns"] == found["push-back, % of later turns"] == [None, None, None, None]
    assert found["turns until the end"][0] is not None


@pytest.mark.parametrize(
    ("said", "may_be_english"),
    [
        ("Café?", True),
        ("My naïve fiancée's résumé.", True),
        ("👍 12345 https://example.com/caf%C3%A9", True),
        ("for each in rows: print(each)", True),
        ("Tôi muốn trả hàng.", False),
        (unicodedata.normalize("NFD", "Tôi muốn trả hàng."), False),
        ("Größe?", False),
        ("Привет!", False),
    ],
)
def test_short_texts_of_unknown_language_may_be_english(said: str, may_be_english: bool, tmp_path: Path) -> None:
    file = tmp_path / "users.jsonl"
    file.write_text(
        "".join(
            json.dumps({"id": str(n), "messages": talk(random.Random(n), 1, lambda _: said)}) + "\n" for n in range(5)
        )
    )
    politeness, *_ = rows_of(file, file)["politeness, % of turns"]
    assert politeness == (0 if may_be_english else None)


def test_dialogues_in_other_languages_do_not_count_in_mixed_sets(tmp_path: Path) -> None:
    english = written(tmp_path / "english.jsonl", lambda _: "Could you please return my kettle?", 1, 9)
    thai = written(tmp_path / "thai.jsonl", lambda _: "ฉันขอคืนสินค้าได้ไหม", 2, 6)
    mixed_file = tmp_path / "mixed.jsonl"
    mixed_file.write_text(english.read_text() + thai.read_text())
    found, alone = rows_of(mixed_file, mixed_file), rows_of(english, english)
    for measure in ("words per turn", "questions, % of turns", "politeness, % of turns", "push-back, % of later turns"):
        assert found[measure] == alone[measure] and found[measure][0] is not None


def test_measures_left_out_of_the_mean_are_named(tmp_path: Path) -> None:
    """No real user is polite, so politeness has no standard deviation, however polite the simulated users are."""
    polite = written(tmp_path / "polite.jsonl", mixed(PLANTED["polite"][1]), 1)
    table = dialoom.describe(polite, like=written(tmp_path / "plain.jsonl", plain, 2))["likeness"]
    (note,) = (each for each in table.notes if each.startswith("Not in the mean distance: "))
    omitted = note.removeprefix("Not in the mean distance: ").partition(". ")[0].split("; ")
    assert "politeness, % of turns" in omitted and "words per turn" not in omitted
    distances = {str(row[0]): row[3] for row in table.rows}
    assert {name for name, distance in distances.items() if distance is None} == {*omitted}
    means = {name: each.mean for name, each in distances.items() if isinstance(each, Estimate)}
    overall = means.pop("all: mean distance")
    assert overall == pytest.approx(sum(means.values()) / len(means))


def test_likeness_on_the_command_line(dialoom: Command, tmp_path: Path) -> None:
    real = written(tmp_path / "real.jsonl", plain, 1)
    dialoom("run", "personalens", "--users", "1", "--limit", "6", "--no-judge", "-o", "r.db")
    shown = dialoom("describe", "r.db", "--like", str(real)).stdout
    assert "Distance of the simulated users from those of real.jsonl" in shown and "by chance" in shown
    assert "Made with an offline model (user), a scripted stand-in" in " ".join(shown.split())
    written_files = dialoom("describe", "r.db", "--like", str(real), "-o", "out").stdout
    assert "likeness.csv" in written_files
    silent = tmp_path / "silent.jsonl"
    silent.write_text(json.dumps({"messages": [{"role": "assistant", "content": "Is anybody there?"}]}) + "\n")
    output = dialoom("describe", "r.db", "--like", str(silent), code=2).stderr
    assert "--like: silent.jsonl has fewer than two dialogues with lines of a user; its roles are assistant" in output
