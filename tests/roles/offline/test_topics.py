"""Finding out what a line is about, and being understood: everyday openings, the sample tasks, moving on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dialoom.personas
from dialoom.roles import offline
from dialoom.roles.offline.declarative import first_person
from dialoom.roles.offline.draws import Draws
from dialoom.roles.offline.echoes import strays
from dialoom.roles.offline.openings import named_plainly
from dialoom.roles.offline.topics import topic_of, topic_of_line
from dialoom.roles.offline.userphrases import CLARIFY, NEXT, PLAINLY, STRAYED

from .people import DINNER, EVENING, MIRA, Case, judged, user_request

_SAMPLES = Path(dialoom.personas.__file__).parent / "samples" / "data"
EVERYDAY = {
    "Alarm": (
        "I have to be up at five tomorrow.",
        "Can you wake me before the others?",
        "My snooze button is ruining my mornings.",
        "The alarm went off an hour late today.",
    ),
    "Books": (
        "I've nothing left to read on the tram.",
        "A novel for a long weekend would be nice.",
        "Which author should I try next?",
        "Could you find something to read for my holiday?",
    ),
    "Buses": (
        "How do I get to my gran's by bus?",
        "I need a seat on the coach on Friday.",
        "The minibus to the village isn't running.",
        "Which bus goes to the lake?",
    ),
    "Calendar": (
        "Please put the parents' evening in my calendar.",
        "I'm double-booked on Monday.",
        "Can you add a few reminders for my pills?",
        "My diary for next week needs tidying up.",
    ),
    "Events": (
        "Are there any concerts on this weekend?",
        "I fancy a night out.",
        "We need something to do with the in-laws on Sunday.",
        "Is there a flea market or a fair near us?",
    ),
    "Finance": (
        "There's something odd on my bank account.",
        "How are my stocks doing?",
        "I'd like to put aside a bit of money every month.",
        "Can you keep an eye on my savings?",
    ),
    "Flights": (
        "I need to fly home for a wedding.",
        "Find me a cheap plane ticket.",
        "My airline has cancelled on me.",
        "We're flying to my aunt's in March and have no seats yet.",
    ),
    "Games": (
        "I'd like a new game for the train home.",
        "We want a board game for four.",
        "Got any ideas for something to play on my console?",
        "My cousins are coming over for a games night.",
    ),
    "Hotels": (
        "We need a place to stay near the clinic.",
        "Two nights somewhere quiet, please.",
        "Could you find me a hotel?",
        "Is there a room free above the harbour?",
    ),
    "Media": (
        "There's nothing good on TV.",
        "I want a new series for the evenings.",
        "Which podcast should I try?",
        "I missed an episode yesterday.",
    ),
    "Messaging": (
        "Tell my sister I'm late, please send her a message.",
        "I need to write to somebody and don't know how.",
        "Can you text my landlord?",
        "Let my boss know that I'm ill.",
    ),
    "Movies": (
        "What's on at the cinema?",
        "Let's pick a film.",
        "I feel like a good old movie.",
        "Which films are worth seeing?",
    ),
    "Music": (
        "I need a playlist for the party.",
        "Which song was that again?",
        "I'm bored with my music.",
        "Something to listen to while I paint, please.",
    ),
    "Rental Cars": (
        "I want to rent a van for the move.",
        "We'd need a car on the island.",
        "The vehicle they gave me has no child seat.",
        "Picking up the rental car went wrong.",
    ),
    "Restaurants": (
        "Where could we have dinner?",
        "Book a table for tonight, please.",
        "I'm too tired to cook, let's get a takeaway.",
        "The four of us want to eat out on Friday.",
    ),
    "Services": (
        "My hairdresser has closed down.",
        "I need a plumber.",
        "Can you get me in at the dentist?",
        "I can't make it to my doctor, it needs another appointment.",
    ),
    "Shopping": (
        "I have to buy a present for my nephew.",
        "The parcel I got is the wrong one.",
        "My kettle has worn out.",
        "I'd like to buy a pair of boots.",
    ),
    "Sports": (
        "Who won the match last night?",
        "I want to get fit again.",
        "How is my team doing in the league?",
        "When does the tournament start?",
    ),
    "Train": (
        "I want to go to Lyon by train.",
        "Is the railway running on Sunday?",
        "Two seats in the quiet carriage, please.",
        "I've missed the last train.",
    ),
    "Travel": (
        "We'd like to get away for a bit.",
        "I'm dreaming of a holiday by the sea.",
        "Which sights shouldn't I miss?",
        "Help me with the itinerary for next month.",
    ),
}


def _sample_tasks() -> Iterator[tuple[str, str, str]]:
    for path in sorted(_SAMPLES.glob("task/*/task.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            task = json.loads(line)
            yield path.parent.name, task["User Intent"], task["Task Goal"]


SINGLES = [task for task in _sample_tasks() if task[0] != "Multi-Domain"]


def test_everyday_openings_are_found() -> None:
    """At least 19 of 20 everyday openings, four for each domain, are told apart."""
    lines = [(name, line) for name, lines in EVERYDAY.items() for line in lines]
    missed = [(name, line, topic_of(line)) for name, line in lines if topic_of(line) != name]
    assert len(lines) >= 80 and len(missed) <= len(lines) * 0.05, missed


@pytest.mark.parametrize(("name", "intent", "_goal"), SINGLES)
def test_intents_of_the_samples_are_found(name: str, intent: str, _goal: str) -> None:
    """Each single-domain intent of the samples is recognised in the first person."""
    assert topic_of(first_person(intent)) == name


@pytest.mark.parametrize(("name", "intent", "_goal"), SINGLES)
def test_real_openings_of_the_samples_are_found(name: str, intent: str, _goal: str) -> None:
    """What the user makes of an intent is understood as well, whatever the wording."""
    for path in sorted(_SAMPLES.glob("profile/*/profile.json"))[:4]:
        affinities = json.loads(path.read_text(encoding="utf-8"))["affinities"].get(name)
        if not affinities:
            continue
        shown = {key: value if isinstance(value, str) else "; ".join(value) for key, value in affinities.items()}
        case = Case(MIRA, {name: shown}, {}, EVENING, intent, "")
        for seed in range(4):
            line = offline.answer("attentive", user_request(case, []), seed=seed)
            assert topic_of_line(line) == name, line


def test_an_opaque_intent_is_made_clear() -> None:
    """A request that could be about anything gets a clause that names the domain and no preference."""
    for name in PLAINLY:
        case = Case(MIRA, {name: {"Liking": "zebra stripes"}}, {}, EVENING, "Sort it out for you, please.", "")
        line = offline.answer("attentive", user_request(case, []))
        assert topic_of_line(line) == name and "zebra" not in line


@pytest.mark.parametrize("name", sorted(PLAINLY))
@pytest.mark.parametrize("bank", [CLARIFY, NEXT, STRAYED])
def test_naming_a_domain_plainly_is_always_understood(name: str, bank: tuple[str, ...]) -> None:
    """Clarifying, moving on and correcting name the domain so that a later line is understood, too."""
    for seed in range(12):
        assert topic_of_line(named_plainly(bank, name, [], Draws(seed)), first=False) == name


def test_later_lines_change_the_domain_only_outright() -> None:
    """A film in passing does not lead away from the table; a correction does."""
    assert topic_of_line("And later we may see a film.", first=False) == ""
    assert topic_of_line("No, I meant somewhere to eat.", first=False) == "Restaurants"
    assert topic_of_line("Great. Next, could you help with the train ticket?", first=False) == "Train"


def test_the_assistant_asks_when_nothing_tells() -> None:
    """An unclear request is asked about instead of being taken for an appointment; the answer is understood."""
    talk = [{"role": "system", "content": "Be personal."}, {"role": "user", "content": "Hi there, a favour?"}]
    reply = offline.answer("attentive", talk)
    assert reply.endswith("?") and not topic_of(reply)
    talk += [{"role": "assistant", "content": reply}, {"role": "user", "content": "I need a haircut."}]
    assert not strays(offline.answer("attentive", talk), "Services")


def test_user_corrects_an_answer_to_something_else() -> None:
    """Asked for a restaurant and answered with a massage, the user says what was meant."""
    talk = [
        ("user", "I need a place for dinner."),
        ("assistant", "I've booked the massage at Hands & Stone, Friday at 9:00 AM. Your appointment is confirmed."),
    ]
    line = offline.answer("attentive", user_request(DINNER, talk))
    assert topic_of_line(line, first=False) == "Restaurants" and "TERMINATE" not in line


def test_a_booked_massage_is_no_dinner() -> None:
    """A confirmation about another matter completes nothing, however content the user sounds."""
    asked = ("user", "Find us a restaurant and book a table, please.")
    massage = ("assistant", "I've booked the massage at Hands & Stone, Friday at 9:00 AM.")
    table = ("assistant", "I've reserved a table at Meltemi, Friday at 8:00 PM. They know about the nut allergy.")
    thanks = ("user", "Thank you, that is all.")
    assert judged(DINNER, [asked, massage, thanks], "task_completion") is False
    assert judged(DINNER, [asked, table, thanks], "task_completion") is True
    given_up = ("user", "Never mind, that will have to do. Thanks.")
    assert judged(DINNER, [asked, table, given_up], "task_completion") is False


def test_every_way_of_giving_up_is_noticed() -> None:
    """The judge knows each of the user's resigned lines."""
    from dialoom.roles.offline.judge import _GIVEN_UP
    from dialoom.roles.offline.userphrases import GRUDGE

    assert all(_GIVEN_UP.search(line) for line in GRUDGE)
    assert not re.search(r"<", "".join(GRUDGE))
