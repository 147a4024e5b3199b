"""The shortcut check of preference datasets: it finds the planted shortcuts and no others."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.graphs import Estimate, Table
from dialoom.runs.export.shortcuts import PairSample, shortcut_table

COMMON = [f"word{number}" for number in range(60)]


def rows(
    people: int, prompts: int, *, longer: int = 0, word: str = "", sizes: tuple[int, int] = (8, 30)
) -> Iterator[Any]:
    """Yield pairs of replies with common words; the chosen ones are `longer`, or have an additional `word`.

    In `word`, `{}` is the person's number.
    """
    draw = random.Random(4)
    for person in range(people):
        for prompt in range(prompts):
            size = draw.randint(*sizes)
            chosen, rejected = (" ".join(draw.choices(COMMON, k=size + more)) for more in (longer, 0))
            yield {
                "id": f"person-{person}",
                "prompt": [{"role": "user", "content": f"Message {prompt} of {person}"}],
                "chosen": [{"role": "assistant", "content": f"{chosen} {word.format(person)}".strip() + "."}],
                "rejected": [{"role": "assistant", "content": f"{rejected}."}],
            }


def checked(pairs: Iterable[Any]) -> Table:
    """Return the check's table for the rows."""
    sample = PairSample()
    for row in pairs:
        sample.add(row)
    table = shortcut_table(sample)
    assert table is not None
    return table


def figures(table: Table) -> dict[str, tuple[Estimate, Estimate]]:
    """Return the AUC and the share of prompts by feature, as far as they were estimated."""
    return {str(row[0]): (row[1], row[2]) for row in table.rows if isinstance(row[1], Estimate)}  # type: ignore[misc]


def test_random_differences_are_no_shortcut() -> None:
    """All intervals contain 0.5, and there is no warning."""
    table = checked(rows(40, 5))
    found = figures(table)
    assert [*found] == ["length", "punctuation", "words"]
    for auc, share in found.values():
        assert auc.n == 400 and share.n == 200
        for figure in (auc, share):
            assert figure.low is not None and figure.high is not None
            assert figure.low < 0.5 < figure.high and abs(figure.mean - 0.5) < 0.1
    assert not any("Warning" in note for note in table.notes)


@pytest.mark.parametrize(("planted", "feature"), [({"longer": 15}, "length"), ({"word": "wonderful"}, "words")])
def test_planted_shortcut_is_found_and_named(planted: dict[str, Any], feature: str) -> None:
    table = checked(rows(30, 5, **planted))
    auc, _ = figures(table)[feature]
    assert auc.mean > 0.8 and (auc.low is None or auc.low > 0.7)
    warning = next(note for note in table.notes if note.startswith("Warning"))
    assert f" {feature}" in warning.partition(" (above 0.65)")[0]
    assert figures(table)["punctuation"][0].mean < 0.65 or feature == "length", "punctuation is rarer in longer replies"


def test_shortcut_within_pairs_is_found() -> None:
    table = checked(rows(30, 5, longer=3, sizes=(10, 150)))
    auc, share = figures(table)["length"]
    assert auc.mean < 0.6 and share.mean > 0.8
    assert any("Warning" in note and "by length" in note for note in table.notes)


def test_words_of_one_person_are_no_shortcut() -> None:
    table = checked(rows(30, 8, word="liked{}"))
    assert 0.4 < figures(table)["words"][0].mean < 0.6


def test_nineteen_people_are_too_few_for_the_words() -> None:
    table = checked(rows(19, 5, longer=20))
    assert [*figures(table)] == ["length", "punctuation"]
    assert table.rows[2][1:] == [None, None]
    assert any("cannot be estimated with 19 people; it needs 20" in note for note in table.notes)
    assert "words" in figures(checked(rows(20, 5, longer=20)))


def test_order_and_form_of_the_rows_do_not_matter() -> None:
    pairs = [*rows(20, 3, longer=4)]
    single = [
        {"id": row["id"], "prompt": row["prompt"], "completion": row[key], "label": key == "chosen"}
        for key in ("rejected", "chosen")
        for row in pairs
    ]
    first = checked(pairs)
    assert checked(pairs[::-1]).rows == first.rows
    assert checked(single).rows == first.rows


def test_large_set_is_sampled_with_a_note() -> None:
    """The check uses at most 20 prompts of a person and at most 300 people."""
    table = checked(rows(20, 24))
    assert figures(table)["length"][1].n == 20 * 20
    assert any("At most 300 people and 20 prompts" in note for note in table.notes)
    assert figures(checked(rows(310, 1)))["length"][1].n == 300


PLAYERS = """
import hashlib, json, random

def words(messages):
    draw = random.Random(json.dumps(messages))
    return " ".join(draw.choices(messages[0]["content"].split(), k=12))

async def user(messages):
    return "I am at home, " + hashlib.sha256(json.dumps(messages).encode()).hexdigest()

async def induction(messages):
    return json.dumps({"profile": None, "personality": None})

async def preferred(messages):
    return words(messages)

async def rejected(messages):
    return words(messages)
"""


def test_card_of_aloe_pairs_has_the_shortcut_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spoken.py").write_text(PLAYERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    models = {role: f"python:spoken:{role}" for role in ("user", "induction", "preferred", "rejected")}
    run = dialoom.play("aloe", path=tmp_path / "run.db", options={"rounds": 3}, models=models)
    run.export("dpo", tmp_path / "dpo", test_share=0.2)
    run.export("kto", tmp_path / "kto.jsonl")
    run.export("sft", tmp_path / "sft.jsonl")
    card = (tmp_path / "dpo" / "README.md").read_text()
    assert (
        "Chosen replies were written by `python:spoken:preferred`, rejected ones by `python:spoken:rejected`." in card
    )
    assert "These are different models" in card
    check = card.partition("## What separates chosen from rejected replies\n")[2].partition("\nChosen")[0]
    assert "| words | 0." in check and "cross-validated by person" in check and "Warning" not in check
    assert check in (tmp_path / "kto.jsonl.card.md").read_text()
    assert "What separates" not in (tmp_path / "sft.jsonl.card.md").read_text()
    for path in ("dpo", "kto.jsonl"):
        described = figures(dialoom.describe(tmp_path / path)["shortcuts"])
        for name, (auc, _) in described.items():
            assert f"| {name} | {auc.mean:.2f} [{auc.low:.2f}, {auc.high:.2f}] n={auc.n} |" in check
