"""The items of a run: axes, shared parts, random choices and refused options."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from dialoom.graphs import RecipeError
from dialoom.graphs.prefeval.scenario import (
    PrefEvalOptions,
    PrefEvalScenario,
    build_conversation,
    find_own_lines,
    fold_conversation,
    plan_items,
)
from dialoom.personas import DataError
from dialoom.roles.parameters import count_tokens
from tests.graphs.prefeval.invented import TOPICS, row, write_pairs, write_pool


def planned(folder: Path, **options: Any) -> Iterator[PrefEvalScenario]:
    """Return the items of the invented pairs."""
    pairs = write_pairs(folder / "pairs")
    pool = write_pool(folder / "pool.json")
    chosen = PrefEvalOptions.model_validate({"pairs": pairs, "distractors": pool, **options})
    return plan_items(chosen, random.Random(5), lambda _text: None)


def texts(item: PrefEvalScenario, replies: dict[str, str] | None = None, position: float | None = None) -> list[str]:
    """Return the texts before the question."""
    place = item.position if position is None else position
    return [line.content for line in build_conversation(item, replies or {}, place)]


def test_every_combination_of_the_axes_is_planned_once(tmp_path: Path) -> None:
    found = list(
        planned(
            tmp_path,
            form=("explicit", "choice", "persona"),
            task=("generation", "classification"),
            turns=(0, 7),
            method=("zero-shot", "rag", "self-critic"),
            retrieved=(1, 3),
        )
    )
    assert len(found) == 6 * 3 * 2 * 2 * 4
    assert len({item.id for item in found}) == len(found)
    assert Counter(item.method for item in found) == {"zero-shot": 72, "rag": 144, "self-critic": 72}
    assert {item.retrieved for item in found if item.method != "rag"} == {0}


def test_items_of_a_length_share_their_turns(tmp_path: Path) -> None:
    """They are the pool's chats in order, cut inside a chat: 7 of 5 + 5 + 2 turns."""
    found = planned(tmp_path, turns=(7,), position=tuple(share / 10_000 for share in range(10_000)))
    first = list(islice(found, 30))
    assert len({id(item.distractors.value) for item in first}) == 1
    assert [line.content for line in first[0].distractors.value[-2:]] == ["Ask t6", "Say t6"]
    assert isinstance(found, Iterator)


def test_length_in_tokens_is_the_largest_that_fits(tmp_path: Path) -> None:
    a_turn, own = count_tokens("Ask t1") + count_tokens("Say t1"), count_tokens(row("boats", 0)["preference"])
    most = own + 3 * a_turn + 1
    item = next(planned(tmp_path, tokens=(most,)))
    assert (item.turns, item.tokens, item.token_limit, item.counter) == (3, own + 3 * a_turn, most, "cl100k_base")
    persona = next(planned(tmp_path, form=("persona",), tokens=(most + a_turn * 4,)))
    assert persona.turns < 7 and most + a_turn * 3 < persona.tokens <= most + a_turn * 4
    assert next(planned(tmp_path, turns=(3,))).tokens == item.tokens


def test_preference_is_placed_at_start_middle_or_end(tmp_path: Path) -> None:
    item = next(planned(tmp_path, turns=(4,)))
    said, reply = item.pair.preference, {item.pair.preference: "Noted."}
    for position, at in ((0.0, 0), (0.5, 4), (1.0, 8)):
        found = texts(item, reply, position)
        assert found[at : at + 2] == [said, "Noted."] and len(found) == 10
        assert find_own_lines(item, reply, position) == range(at, at + 2)
    assert [line.content for line in fold_conversation(item, reply, 0.5)] == [
        "2 turns of unrelated talk",
        said,
        "Noted.",
        "2 turns of unrelated talk",
    ]


def test_further_preferences_are_of_other_topics_and_spread_evenly(tmp_path: Path) -> None:
    """Number j of m comes after round(j n / (m + 1)) turns, the item's own first; larger sets extend smaller ones."""
    two, three = (next(planned(tmp_path, turns=(12,), extra=(count,))) for count in (2, 3))
    assert two.extras == three.extras[:2]
    assert all(extra.topic != "boats" and extra.form == "explicit" for extra in three.extras)
    places = [place for place, text in enumerate(texts(three)) if text.startswith("I never")]
    assert places == [0, 1 + 2 * 3, 2 + 2 * 6, 3 + 2 * 9]


def test_conflict_arms_differ_in_the_earlier_preference(tmp_path: Path) -> None:
    found = list(islice(planned(tmp_path, turns=(4,), conflict=True), 3))
    assert [item.arm for item in found] == ["alone", "agreeing", "conflicting"]
    alone, agreeing, conflicting = (texts(item) for item in found)
    own = "I never want boats of kind 0."
    assert alone.index(own) == 4 and agreeing.index(own) == conflicting.index(own) == 5
    assert conflicting[0] == "I only want boats of kind 0."
    assert agreeing[0].startswith("I never") and "boats" not in agreeing[0]


def test_options_are_shown_in_the_pairs_own_order(tmp_path: Path) -> None:
    found = list(planned(tmp_path, task=("classification",), form=("explicit", "persona"), turns=(0, 5)))
    by_pair: dict[str, set[tuple[int, ...]]] = {}
    for item in found:
        by_pair.setdefault(item.pair.id, set()).add(item.order)
    assert len(by_pair) == 2 * len(TOPICS) and all(len(orders) == 1 for orders in by_pair.values())
    assert len({order for orders in by_pair.values() for order in orders}) > 1
    assert all(sorted(item.order) == [0, 1, 2, 3] for item in found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": "boots"}, "topics: there is no 'boots'; the names are boats, hats, lamps"),
        ({"turns": (13,)}, "has 12 turns; give no more"),
        ({"tokens": (5_000,)}, "tokens in 12 turns; give no more"),
        ({"tokens": (2,)}, "tokens 2: the preference of boats-0 (explicit) alone has"),
        ({"extra": (5,)}, "4 preferences of topics other than boats; 5 are needed"),
    ],
)
def test_impossible_plans_are_refused_with_the_available_values(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(RecipeError) as caught:
        list(planned(tmp_path, **options))
    assert message in str(caught.value)


def test_conflict_without_a_conflicting_preference_names_the_row(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs")
    path = pairs / "explicit_preference" / "boats.json"
    path.write_text(path.read_text().replace("conflicting_preference", "other"))
    options = PrefEvalOptions(pairs=pairs, distractors=write_pool(tmp_path / "pool.json"), conflict=True)
    with pytest.raises(DataError, match="boats, row 0: conflict needs a 'conflicting_preference'"):
        list(plan_items(options, random.Random(5), lambda _text: None))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"turns": (4,), "tokens": (100,)}, "give one of them"),
        ({"turns": (-1,)}, "give numbers of at least 0"),
        ({"retrieved": (0,)}, "give numbers of at least 1"),
        ({"position": (1.5,)}, "give shares from 0 to 1"),
        ({"conflict": True, "extra": (1,)}, "conflict and extra exclude each other"),
        ({"conflict": True, "position": (0.0,)}, "must be above 0 with conflict"),
        ({"embedder": "near"}, "'near' is not an embedder"),
        ({"form": ()}, "give at least one value"),
    ],
)
def test_conflicting_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrefEvalOptions.model_validate(options)
