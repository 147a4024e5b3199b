"""What rules say of words that models write: nothing of scripted ones, and each fault by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from dialoom.personas.apollo.flows import FLOWS
from dialoom.personas.apollo.source import ApolloPair, ApolloSession, Speech
from dialoom.personas.apollo.source.drafts import UserDraft
from dialoom.personas.apollo.source.sessions import slots_of
from dialoom.personas.apollo.source.wording import (
    errand_refusal,
    profile_refusal,
    query_wording_refusal,
    wording_refusal,
)
from tests.personas.test_apollo_source import SOURCE

PAIR = next(pair for pair in SOURCE.pairs.values() if pair.flow == "beverage" and pair.form != "facts")
SESSION = SOURCE.sessions[PAIR.session]
WANTED = PAIR.values["brand"]
PAID = {"transport_recommendation", "request_ride", "book_flight", "book_hotel", "course_search", "search_products"}
PAID |= {"loan_repayment_calculator", "investment_return_calculator"}


def slots(pair: ApolloPair) -> Mapping[str, Any]:
    """What the session of a pair is about."""
    return slots_of(FLOWS[pair.flow], SOURCE.sessions[pair.session], SOURCE.users[pair.user])


def with_turns(*turns: Any) -> ApolloSession:
    """The session with other turns."""
    return ApolloSession(**SESSION.model_dump(exclude={"turns"}), turns=turns)


def said(speaker: str, text: str) -> Speech:
    """A turn of words."""
    return Speech.model_validate({"speaker": speaker, "text": text})


def test_scripted_words_pass() -> None:
    """All of the shipped sample, with every form."""
    for pair in SOURCE.pairs.values():
        session, user = SOURCE.sessions[pair.session], SOURCE.users[pair.user]
        assert wording_refusal(pair.preference, pair.form, slots(pair), session) is None
        assert query_wording_refusal(pair.query, pair.query_kind, user) is None
    for session in SOURCE.sessions.values():
        if session.kind == "unrelated":
            assert errand_refusal(session, session.tools[0]) is None


def test_scripted_numbers_read_as_people_say_them() -> None:
    """What costs nothing costs nothing, and not 0.0; sums have a currency, thousands a comma, nothing comes 0 times."""
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
def test_each_fault_of_a_session_has_its_name(turns: list[Any], form: Any, why: str) -> None:
    """Of the first that there is."""
    refused = wording_refusal(PAIR.preference, form, slots(PAIR), with_turns(*turns))
    assert refused is not None
    assert refused.startswith(why)


def test_what_follows_from_facts_is_not_named_unless_it_is_a_name() -> None:
    """An amount of sugar has other words, a brand has not."""
    pair = next(pair for pair in SOURCE.pairs.values() if pair.flow == "beverage")
    wanted = {**pair.values, "sugar_level": "less"}
    preference = pair.model_copy(update={"values": wanted}).preference
    session = SOURCE.sessions[pair.session]
    for text, is_named in (("Less sugar for me.", True), (f"I have a card of {wanted['brand']}.", False)):
        turns = [session.turns[0], said("user", text), *(t for t in session.turns[1:] if not isinstance(t, Speech))]
        refused = wording_refusal(
            preference, "facts", slots(pair), session.model_copy(update={"turns": (*turns, said("user", "Thanks."))})
        )
        assert (refused or "").startswith("named: the user says what sugar_level is") == is_named


def test_the_assistant_may_list_all_values() -> None:
    """And none of them alone."""
    brands = " or ".join(map(str, FLOWS["beverage"].facet("brand").values))
    listed = with_turns(SESSION.turns[0], said("assistant", f"Which: {brands}?"), *SESSION.turns[1:])
    assert wording_refusal(PAIR.preference, PAIR.form, slots(PAIR), listed) is None


def test_profiles_and_queries_that_say_too_much_or_too_little() -> None:
    """A word of any facet; a name where there is to be none, and none where there is to be one."""
    place = {"city": "Hollin", "home": "1 Ash Street", "work": "2 Ash Street"}
    profile = UserDraft(id="u01", user="u01", name="Ada", gender="woman", age=30, persona="Carves spoons.", **place)
    assert str(profile_refusal(profile)).startswith("leak: 'spoons'")
    assert profile_refusal(profile.model_copy(update={"persona": "Carves ducks."})) is None
    user = SOURCE.users[PAIR.user]
    assert str(query_wording_refusal("I am thirsty.", "proactive", user)).startswith(
        f"kind: it does not name {user.name}"
    )
    assert str(query_wording_refusal(f"I am {user.name}.", "reactive", user)).startswith("kind: it names")
    assert str(query_wording_refusal("So " * 200, "reactive", user)).startswith("length: 600 characters")
