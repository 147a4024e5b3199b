"""The canonical form of calls, and scores: by hand, and what holds of any calls."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.personas.apollo import TOOLS, CallError, CallScores, World, canonical, compare, execute
from tests.personas.test_apollo_world import some_calls

CALLS = some_calls(2)
Call = dict[str, Any]
texts = st.text(st.characters(), max_size=20) | st.just("\ud83d")
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
junk = scalars | st.lists(scalars, max_size=2) | st.dictionaries(texts, scalars, max_size=2)


def weather(city: str) -> Call:
    """A call that looks something up; its letter tells it from others."""
    return {"name": "get_weather", "arguments": {"city": city, "date": "2027-03-01"}}


def order(**changes: Any) -> Call:
    """A call that orders something."""
    arguments = {"beverage_id": "BV991", "brand": "Daybreak", "ice_level": "less", "sugar_level": "regular"}
    return {"name": "order_beverage", "arguments": {k: v for k, v in (arguments | changes).items() if v != "absent"}}


@pytest.mark.parametrize(
    ("gold", "made", "accuracy", "f1", "multiset"),
    [
        ("ab", "ab", True, 1, 1),
        ("ab", "ba", False, 1, 1),
        ("ab", "a", False, 2 / 3, 2 / 3),
        ("ab", "aab", False, 1, 0.8),
        ("ab", "ax", False, 0.5, 0.5),
        ("ab", "abx", False, 0.8, 0.8),
        ("ab", "", False, 0, 0),
        ("ab", "x", False, 0, 0),
        ("abc", "a", False, 0.5, 0.5),
        ("abc", "abxy", False, 4 / 7, 4 / 7),
        ("aab", "aab", True, 1, 1),
        ("aab", "ab", False, 1, 0.8),
    ],
)
def test_scores_are_the_papers(gold: str, made: str, accuracy: bool, f1: float, multiset: float) -> None:
    """F1 counts members, and so can be 1 where accuracy is 0; the protocol's table, section 12."""
    scores = compare([weather(letter) for letter in made], [weather(letter) for letter in gold])
    assert (scores.accuracy, scores.strict) == (accuracy, accuracy)
    assert [scores.f1, scores.f1_multiset] == pytest.approx([f1, multiset])
    assert scores.any_order == (sorted(made) == sorted(gold))


SAME = [
    (order(), {"name": "order_beverage", "arguments": json.dumps(order()["arguments"])}),
    (order(), order(sugar_level="absent")),
    (order(), order(sugar_level=None)),
    (order(beverage_id="991"), order(beverage_id=991)),
    (order(), order(beverage_id=" bv991.")),
    (order(), order(brand="DAY BREAK", ice_level="Less")),
    (order(ice_level="room_temperature"), order(ice_level="Room-Temperature")),
    (weather("Old  Town."), weather(" old town")),
    (weather("St. Mary's"), weather("ST. MARY’S")),
    (weather("Straße"), weather("ｓｔｒａｓｓｅ")),
    (weather("a"), {"name": "get_weather", "arguments": {"city": "a", "date": "2027/03/01"}}),
]
DIFFERENT = [
    (order(), order(sugar_level="none")),
    (order(), order(size="large")),
    (order(), order(brand="absent")),
    (order(), order(brand="Day Brake")),
    (order(beverage_id="2.5"), order(beverage_id="25")),
    (order(beverage_id="1"), order(beverage_id=True)),
    (order(), {"name": "Order_beverage", "arguments": order()["arguments"]}),
    (order(), {"name": "order_beverage", "arguments": "beverage_id=BV991"}),
    (order(), {"name": "order_beverage", "arguments": [order()["arguments"]]}),
    (order(), {"arguments": order()["arguments"]}),
    (weather("a"), {"name": "get_weather", "arguments": {"city": "a", "date": "1 March 2027"}}),
    (weather("a"), {"name": "get_weather", "arguments": {"city": "a", "date": "2027-3-1"}}),
    (weather("a"), {"name": "get_weather", "arguments": {"city": "a", "date": "2027-02-30"}}),
]


@pytest.mark.parametrize(("gold", "made"), SAME)
def test_what_is_spelt_differently_is_the_same(gold: Call, made: Call) -> None:
    """Except when JSON is compared as it is."""
    scores = compare([made], [gold])
    assert scores == CallScores(True, 1, scores.strict, True, 1, True, None)
    assert scores.strict == isinstance(made["arguments"], str)


@pytest.mark.parametrize(("gold", "made"), DIFFERENT)
def test_what_is_something_else_equals_nothing(gold: Call, made: Call) -> None:
    """No synonyms, no distance, and what cannot run is wrong."""
    assert compare([made], [gold]).f1 == 0
    assert not compare([made], [gold]).strict


def test_numbers_and_truths() -> None:
    """Whole numbers in three spellings, truth in two, and neither is the other."""
    hotel = {"city": "a", "check_in": "2027-03-01", "nights": 3, "stars": 4}
    for nights, stars in ((3.0, "4"), ("3", 4.0)):
        assert _equal("search_hotel", hotel, hotel | {"nights": nights, "stars": stars})
    for bad in (True, 3.5, "3.0", "three", [3], 99**99, float("inf")):
        assert not _equal("search_hotel", hotel, hotel | {"nights": bad})
    flight = {"date": "2027-03-01", "from_city": "a", "to_city": "b", "direct": True}
    assert _equal("search_flight", flight, flight | {"direct": "True"})
    for bad in (1, 1.0, "1", "yes"):
        assert not _equal("search_flight", flight, flight | {"direct": bad})
    loan = {"amount": 1000, "rate_percent": 0.3, "years": 5}
    assert _equal("loan_repayment_calculator", loan, loan | {"rate_percent": 0.1 + 0.2})
    assert not _equal("loan_repayment_calculator", loan, loan | {"rate_percent": 0.30001})
    assert not _equal("loan_repayment_calculator", loan, loan | {"rate_percent": float("nan")})


def _equal(tool: str, gold: dict[str, Any], made: dict[str, Any]) -> bool:
    return compare([{"name": tool, "arguments": made}], [{"name": tool, "arguments": gold}]).accuracy


def test_actions_are_what_orders_books_and_sends() -> None:
    """Looking something up once more changes nothing, and ordering twice does."""
    gold = [weather("a"), order()]
    assert compare([order(), weather("b"), weather("c")], gold).actions
    assert not compare([weather("a"), order(), order()], gold).actions
    assert not compare([weather("a"), order(), order(brand="nobody")], gold).actions
    assert not compare([weather("a")], gold).actions


def test_stale_is_who_follows_an_earlier_preference() -> None:
    """None where there was no earlier one."""
    gold, earlier = [order()], [[order(brand="Amberleaf")], [order(brand="Cobalt Cup")]]
    assert compare([order(brand="cobalt cup")], gold, earlier).stale is True
    assert compare([order()], gold, earlier).stale is False
    assert compare([order()], gold).stale is None


def test_gold_that_cannot_run_is_refused() -> None:
    """It could be reached by nobody."""
    with pytest.raises(CallError, match="brand"):
        compare([], [order(brand="nobody")])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CALLS), st.data())
def test_the_canonical_form_of_a_canonical_form_is_itself(call: Call, data: st.DataObject) -> None:
    """Whatever stands in the arguments; what has no such form is refused in words."""
    changed = data.draw(st.dictionaries(st.sampled_from(list(TOOLS[call["name"]].parameters)), junk, max_size=2))
    arguments = call["arguments"] | changed
    try:
        once = canonical({"name": call["name"], "arguments": arguments})
    except CallError as error:
        assert 0 < len(str(error)) < 500
    else:
        assert canonical(once._asdict()) == once


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CALLS), st.data())
def test_whatever_is_called_is_answered(call: Call, data: st.DataObject) -> None:
    """With what JSON can hold and a file too, and equal calls equally."""
    changed = data.draw(st.dictionaries(st.sampled_from([*TOOLS[call["name"]].parameters, "other"]), junk, max_size=2))
    made = {"name": call["name"], "arguments": call["arguments"] | changed}
    output = execute(World(), made)
    assert json.dumps(output, ensure_ascii=False, allow_nan=False).encode()
    assert execute(World(), {"name": call["name"], "arguments": json.dumps(made["arguments"])}) == output


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(CALLS), min_size=1, max_size=4), st.integers(0, 2**32), st.lists(junk, max_size=2))
def test_no_mutant_scores_higher_than_gold(gold: list[Call], seed: int, more: list[Any]) -> None:
    """Gold has everything; calls dropped, swapped, repeated, altered or added never have more."""
    best = compare(gold, gold)
    assert best == CallScores(True, 1, True, True, 1, True, None)
    draw = random.Random(seed)
    mutant = [draw.choice([*gold, *CALLS]) for _ in range(draw.randrange(6))]
    mutant += [{"name": draw.choice([*TOOLS, "order_all"]), "arguments": arguments} for arguments in more]
    scores = compare(mutant, gold)
    assert scores.f1 >= scores.f1_multiset >= scores.any_order >= scores.accuracy >= scores.strict
    assert scores.actions >= scores.any_order
    assert 0 <= scores.f1 <= 1
    assert scores.accuracy == (mutant == gold)
