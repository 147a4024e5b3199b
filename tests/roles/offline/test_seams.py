"""Values of anyone's own making in sentences: each kind of shape reads well, and is understood again."""

from __future__ import annotations

import re

import pytest

from dialoom.roles import offline
from dialoom.roles.offline.circumstances import read
from dialoom.roles.offline.declarative import told
from dialoom.roles.offline.domains import domain_named
from dialoom.roles.offline.knowledge import from_line, from_summary

from .people import EVENING, MIRA, OTTO, Case, assistant_request, play

ODD = Case(
    OTTO,
    {
        "Restaurants": {
            "Favourite Cuisines": "dumplings; Faroese",
            "Dietary Needs": "no raw leek",
            "Atmosphere": "calm and friendly",
            "Budget": "under 18 crowns",
        },
        "Hotels": {"Room Needs": "drying rack", "Part of Town": "harbour side", "Lodging Style": "converted mill"},
        "Travel": {"Kinds of Destination": "peninsulas", "Travel Companions": "nephew Ib"},
    },
    {},
    EVENING,
    "Plan two days by the sea with a meal and a bed.",
    "Trip, room and table are settled.",
)


@pytest.mark.parametrize(
    ("domain", "facet", "value", "phrase"),
    [
        ("Travel", "kind", "peninsulas", "peninsulas"),
        ("Travel", "kind", "cultural", "cultural places"),
        ("Media", "hours", "noon", "at noon"),
        ("Media", "hours", "tea time", "at tea time"),
        ("Media", "hours", "while ironing", "while ironing"),
        ("Buses", "hours", "late morning", "in the late morning"),
        ("Buses", "seat", "window", "a window seat"),
        ("Buses", "seat", "beside the stairs", "a seat beside the stairs"),
        ("Restaurants", "ambiance", "calm and friendly", "a calm and friendly feel"),
        ("Restaurants", "ambiance", "bench by the stove", "a bench by the stove"),
        ("Restaurants", "cuisine", "Faroese", "Faroese food"),
        ("Restaurants", "cuisine", "soup and bread", "soup and bread"),
        ("Hotels", "amenities", "drying rack", "a drying rack"),
        ("Hotels", "area", "harbour side", "on the harbour side"),
        ("Finance", "goal", "a boat", "a boat"),
        ("Finance", "goal", "second kiln", "a second kiln"),
        ("Events", "group", "two neighbours", "with two neighbours"),
    ],
)
def test_a_value_becomes_a_phrase_of_its_own_shape(domain: str, facet: str, value: str, phrase: str) -> None:
    """Things get an article, times a preposition, adjectives a noun, plurals nothing."""
    shape = domain_named(domain).facet(facet)
    assert shape is not None and shape.phrase([value]) == phrase


@pytest.mark.parametrize("setting", ["base", "I"])
@pytest.mark.parametrize("seed", range(6))
def test_odd_values_read_well(setting: str, seed: int) -> None:
    """No stiff stopgaps and no bare thing where an article belongs."""
    text = " ".join(line for _, line in play(ODD, setting, seed=seed))
    assert not re.search(
        r"would be good\b|for the \w+, [\w ]+ suits me|peninsulas places|(?:like|is) drying rack", text
    )
    assert not re.search(r"It has calm|with nephew", text)


def test_what_the_user_says_of_odd_values_is_taken_up() -> None:
    """The assistant understands the phrases that the user makes of them."""
    told_of = from_line(domain_named("Hotels"), "I'd like a drying rack.")
    assert told_of["amenities"] == ["a drying rack"]
    assert from_line(domain_named("Finance"), "About the alerts: above 70 crowns, please.")["alert"]
    assert from_line(domain_named("Media"), "I'd have time for it at noon.")["hours"] == ["at noon"]


def test_the_recipient_is_a_person_and_not_a_clause() -> None:
    """The lead-in ("It should go to ...") leaves the name alone."""
    assert read(["It should go to Aunt Olga, please say that I have a new number."])["recipient"] == "Aunt Olga"


def test_put_together_keeps_its_word() -> None:
    """Only a lone "together" means "with me"."""
    assert told("Have a small list put together.")[0][1].endswith("put together")
    assert told("Turn it into a plan together.")[0][1].endswith("with me")


def test_sizes_and_dates_are_no_names() -> None:
    """A size such as "EU 41" is no shop, and "Since 2019" is no bank."""
    shops = from_summary(
        domain_named("Shopping"), "She wears EU 41 and returns what pinches. EU 41 ran small at Nordhall."
    )
    assert not [name for name in shops.get("store", []) if name.startswith("EU")]
    banks = from_summary(domain_named("Finance"), "Since 2019 all goes through Fjordbank. Since 2019 he also saves.")
    assert not [name for name in banks.get("bank", []) if "Since" in name]


def test_a_late_wish_changes_what_was_booked() -> None:
    """After the booking a further wish is acknowledged as a change, not as news before the booking."""
    case = Case(MIRA, {"Restaurants": {"Price Range": "moderate"}}, {}, EVENING, "Book a table.", "A table is booked.")
    talk = [
        ("user", "Please book a table at a restaurant."),
        ("assistant", "How about The Green Door, a small place on a quiet side street?"),
        ("user", "Yes, please."),
        ("assistant", "I've reserved a table at The Green Door, 7:30 PM."),
        ("user", "I should have said: my budget is moderate."),
    ]
    reply = offline.answer("attentive", assistant_request(case, talk, "base"))
    assert re.search(r"chang|noted now|passed that on|added|Not too late", reply) and "moderate" in reply
