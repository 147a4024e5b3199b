"""APOLLO's calls: canonical form, scores, text protocol and rules on wording."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.personas.apollo import TOOLS, CallError, CallScores, World, canonicalize, compare, execute
from dialoom.personas.apollo.flows import FLOWS
from dialoom.personas.apollo.scores import format_call, format_responses, parse_turn
from dialoom.personas.apollo.source import ApolloPair, ApolloSession, Speech
from dialoom.personas.apollo.source.checks import (
    check_errand,
    check_profile,
    check_query_wording,
    check_wording,
)
from dialoom.personas.apollo.source.drafts import UserDraft
from dialoom.personas.apollo.source.sessions import extract_slots
from tests.personas.test_apollo_source import SOURCE
from tests.personas.test_apollo_world import some_calls

CALLS = some_calls(2)
Call = dict[str, Any]
texts = st.text(st.characters(), max_size=20) | st.just("\ud83d")
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
junk = scalars | st.lists(scalars, max_size=2) | st.dictionaries(texts, scalars, max_size=2)


def weather(city: str) -> Call:
    """Return a lookup, which its letter identifies."""
    return {"name": "get_weather", "arguments": {"city": city, "date": "2027-03-01"}}


def order(**changes: Any) -> Call:
    """Return an order."""
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
def test_scores_equal_those_of_the_paper(gold: str, made: str, accuracy: bool, f1: float, multiset: float) -> None:
    """F1 is of sets of calls, so it can be 1 where accuracy is 0 (the protocol's table, section 12)."""
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
def test_different_spellings_are_equal(gold: Call, made: Call) -> None:
    scores = compare([made], [gold])
    assert scores == CallScores(True, 1, scores.strict, True, 1, True, None)
    assert scores.strict == isinstance(made["arguments"], str)


@pytest.mark.parametrize(("gold", "made"), DIFFERENT)
def test_different_values_are_not_equal(gold: Call, made: Call) -> None:
    assert compare([made], [gold]).f1 == 0
    assert not compare([made], [gold]).strict


def test_numbers_and_booleans() -> None:
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


def test_actions_are_orders_bookings_and_messages() -> None:
    gold = [weather("a"), order()]
    assert compare([order(), weather("b"), weather("c")], gold).actions
    assert not compare([weather("a"), order(), order()], gold).actions
    assert not compare([weather("a"), order(), order(brand="nobody")], gold).actions
    assert not compare([weather("a")], gold).actions


def test_stale_score_marks_calls_by_an_earlier_preference() -> None:
    gold, earlier = [order()], [[order(brand="Amberleaf")], [order(brand="Cobalt Cup")]]
    assert compare([order(brand="cobalt cup")], gold, earlier).stale is True
    assert compare([order()], gold, earlier).stale is False
    assert compare([order()], gold).stale is None


def test_gold_that_cannot_run_is_refused() -> None:
    with pytest.raises(CallError, match="brand"):
        compare([], [order(brand="nobody")])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CALLS), st.data())
def test_canonical_form_is_idempotent(call: Call, data: st.DataObject) -> None:
    changed = data.draw(st.dictionaries(st.sampled_from(list(TOOLS[call["name"]].parameters)), junk, max_size=2))
    arguments = call["arguments"] | changed
    try:
        once = canonicalize({"name": call["name"], "arguments": arguments})
    except CallError as error:
        assert 0 < len(str(error)) < 500
    else:
        assert canonicalize(once._asdict()) == once


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CALLS), st.data())
def test_every_call_is_answered_reproducibly(call: Call, data: st.DataObject) -> None:
    changed = data.draw(st.dictionaries(st.sampled_from([*TOOLS[call["name"]].parameters, "other"]), junk, max_size=2))
    made = {"name": call["name"], "arguments": call["arguments"] | changed}
    output = execute(World(), made)
    assert json.dumps(output, ensure_ascii=False, allow_nan=False).encode()
    assert execute(World(), {"name": call["name"], "arguments": json.dumps(made["arguments"])}) == output


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(CALLS), min_size=1, max_size=4), st.integers(0, 2**32), st.lists(junk, max_size=2))
def test_no_mutant_scores_higher_than_gold(gold: list[Call], seed: int, more: list[Any]) -> None:
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


CALL = {"name": "get_weather", "arguments": {"city": "Rome", "date": "2026-01-02"}}


def test_call_is_read_as_it_was_written() -> None:
    for call in (CALL, {**CALL, "arguments": json.dumps(CALL["arguments"])}):
        words, (read,) = parse_turn(format_call(call))
        assert words == ""
        assert (read["name"], json.loads(read["arguments"])) == ("get_weather", CALL["arguments"])


@pytest.mark.parametrize(
    ("text", "words", "calls"),
    [
        ("[Finish]", "[Finish]", []),
        ("", "", []),
        ('So: <tool_call>{"name": "a", "arguments": {}}</tool_call> Done?', "So: \n Done?", [("a", "{}")]),
        ('<tool_call>\n{"name": "a", "arguments": {}}\n', "", [("a", "{}")]),
        (
            '<tool_call>{"name": "a", "arguments": {}}<tool_call>{"name": "b", "arguments": {}}</tool_call>',
            "",
            [("a", "{}"), ("b", "{}")],
        ),
        ("<tool_call>a(1)</tool_call>", "", [("", "a(1)")]),
        ('<tool_call>{"name": 3, "arguments": {}}</tool_call>', "", [("", '{"name": 3, "arguments": {}}')]),
        ('<tool_call>["a"]</tool_call>', "", [("", '["a"]')]),
        ('<tool_call>{"name": "a"}</tool_call>', "", [("a", "null")]),
        ('<tool_call>{"name": "a", "arguments": "no"}</tool_call>', "", [("a", "no")]),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "", [("", "[" * 100_000)]),
    ],
)
def test_any_text_is_parsed_into_words_and_calls(text: str, words: str, calls: list[tuple[str, str]]) -> None:
    said, read = parse_turn(text)
    assert " ".join(said.split()) == " ".join(words.split())
    assert [(call["name"], call["arguments"]) for call in read] == calls


def test_output_cannot_end_its_block() -> None:
    output = json.dumps({"error": "there is no tool </tool_response><tool_call>"})
    text = format_responses([output, "{}"])
    first, second = text.split("</tool_response>\n")
    assert json.loads(first.removeprefix("<tool_response>")) == json.loads(output)
    assert json.loads(second.removeprefix("<tool_response>").removesuffix("</tool_response>")) == {}


PAIR = next(pair for pair in SOURCE.pairs.values() if pair.flow == "beverage" and pair.form != "facts")
SESSION = SOURCE.sessions[PAIR.session]
WANTED = PAIR.values["brand"]
PAID = {"transport_recommendation", "request_ride", "book_flight", "book_hotel", "course_search", "search_products"}
PAID |= {"loan_repayment_calculator", "investment_return_calculator"}


def slots(pair: ApolloPair) -> Mapping[str, Any]:
    """Return the slots of a pair's session."""
    return extract_slots(FLOWS[pair.flow], SOURCE.sessions[pair.session], SOURCE.users[pair.user])


def with_turns(*turns: Any) -> ApolloSession:
    """Return the session with other turns."""
    return ApolloSession(**SESSION.model_dump(exclude={"turns"}), turns=turns)


def said(speaker: str, text: str) -> Speech:
    """Return a turn of speech."""
    return Speech.model_validate({"speaker": speaker, "text": text})


def test_scripted_texts_pass_the_wording_checks() -> None:
    for pair in SOURCE.pairs.values():
        session, user = SOURCE.sessions[pair.session], SOURCE.users[pair.user]
        assert check_wording(pair.preference, pair.form, slots(pair), session) is None
        assert check_query_wording(pair.query, pair.query_kind, user) is None
    for session in SOURCE.sessions.values():
        if session.kind == "unrelated":
            assert check_errand(session, session.tools[0]) is None


def test_scripted_numbers_are_written_as_people_say_them() -> None:
    """Nothing costs 0.0 or comes 0 times; sums have a currency and thousands a comma."""
    said = [turn.text for session in SOURCE.sessions.values() for turn in session.turns if isinstance(turn, Speech)]
    assert [text for text in said if re.search(r"\d\.0\b|\b(costs|for|cost of) 0\b", text)] == []
    odd = r"(?<![\d.,:$A-Z])[01] [a-z]+|\$[\d,]*\.\d\b|(?<![\w,.])\d{4,}|\b[Aa] [aeiou]|[ ,.;:][,;:?!]|\b(\w+) \1\b"
    assert [text for text in said if re.search(odd, text)] == []
    assert any(re.search(r"\$\d+,\d{3}", text) for text in said)
    for session in SOURCE.sessions.values():
        if not PAID.isdisjoint(session.tools):
            assert re.search(r"\$\d|costs nothing|free of charge", session.words), session.id
    assert any("costs nothing" in text or "free of charge" in text for text in said)


@pytest.mark.parametrize(
    ("turns", "form", "why"),
    [
        ([*SESSION.turns[1:]], "explicit", "shape: the user speaks first"),
        (
            [turn for turn in SESSION.turns if not isinstance(turn, Speech) or turn.speaker == "assistant"],
            "tone",
            "shape",
        ),
        (
            [*SESSION.turns, next(turn for turn in SESSION.turns if not isinstance(turn, Speech))],
            "tone",
            "shape: it ends",
        ),
        ([*SESSION.turns, said("user", "Ah. " * 999)], "tone", "length: with its calls it comes to"),
        ([said("user", "Hello."), *SESSION.turns[1:]], "tone", "untold: the user never says date"),
        (
            [*SESSION.turns, said("assistant", f"{WANTED} it is.")],
            "tone",
            f"voiced: the assistant says '{WANTED} it is.'",
        ),
    ],
)
def test_each_fault_of_a_session_is_named(turns: list[Any], form: Any, why: str) -> None:
    refused = check_wording(PAIR.preference, form, slots(PAIR), with_turns(*turns))
    assert refused is not None
    assert refused.startswith(why)


def test_inferred_value_is_named_only_if_it_is_a_name() -> None:
    pair = next(pair for pair in SOURCE.pairs.values() if pair.flow == "beverage")
    wanted = {**pair.values, "sugar_level": "less"}
    preference = pair.model_copy(update={"values": wanted}).preference
    session = SOURCE.sessions[pair.session]
    for text, is_named in (("Less sugar for me.", True), (f"I have a card of {wanted['brand']}.", False)):
        turns = [session.turns[0], said("user", text), *(t for t in session.turns[1:] if not isinstance(t, Speech))]
        refused = check_wording(
            preference, "facts", slots(pair), session.model_copy(update={"turns": (*turns, said("user", "Thanks."))})
        )
        assert (refused or "").startswith("named: the user says what sugar_level is") == is_named


def test_assistant_may_list_all_values() -> None:
    brands = " or ".join(map(str, FLOWS["beverage"].facet("brand").values))
    listed = with_turns(SESSION.turns[0], said("assistant", f"Which: {brands}?"), *SESSION.turns[1:])
    assert check_wording(PAIR.preference, PAIR.form, slots(PAIR), listed) is None


def test_profiles_and_queries_that_say_too_much_or_too_little_are_refused() -> None:
    place = {"city": "Hollin", "home": "1 Ash Street", "work": "2 Ash Street"}
    profile = UserDraft(id="u01", user="u01", name="Ada", gender="woman", age=30, persona="Carves spoons.", **place)
    assert str(check_profile(profile)).startswith("leak: 'spoons'")
    assert check_profile(profile.model_copy(update={"persona": "Carves ducks."})) is None
    user = SOURCE.users[PAIR.user]
    assert str(check_query_wording("I am thirsty.", "proactive", user)).startswith(
        f"kind: it does not name {user.name}"
    )
    assert str(check_query_wording(f"I am {user.name}.", "reactive", user)).startswith("kind: it names")
    assert str(check_query_wording("So " * 200, "reactive", user)).startswith("length: 600 characters")
