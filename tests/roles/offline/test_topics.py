"""Topics and style of offline PersonaLens lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import pytest

from dialoom.graphs.personalens.scenario import PersonaLensScenario
from dialoom.personas import samples

from .asking import answer
from .people import DINNER, EVENING, MIRA, Case, assistant_request, judged, play, user_request

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


def taken_for(*lines: str) -> list[str]:
    """Name the domains that the assistant takes a user's lines to be about: it quotes its notes on that domain."""
    notes = {name: f"She always likes matter {at} this way." for at, name in enumerate(EVERYDAY)}
    talk: list[tuple[str, str]] = []
    for line in lines:
        talk += [("assistant", "Of course. Shall I?"), ("user", line)]
    case = Case({}, {}, notes, {}, "", "")
    reply = answer("attentive", assistant_request(case, talk[1:], "I"), "personalens/assistant")
    return [name for name, note in notes.items() if note in reply]


def test_everyday_openings_are_found() -> None:
    """At least 19 of 20 everyday openings, four for each domain, are told apart."""
    lines = [(name, line) for name, lines in EVERYDAY.items() for line in lines]
    missed = [(name, line, taken_for(line)) for name, line in lines if taken_for(line) != [name]]
    assert len(lines) >= 80 and len(missed) <= len(lines) * 0.05, missed


@pytest.mark.parametrize("name", sorted(EVERYDAY))
def test_understudies_understand_each_other(name: str) -> None:
    other = "Books" if name != "Books" else "Train"
    one = Case(MIRA, {name: {"Liking": "zebra stripes"}}, {}, EVENING, "Sort it out.", "")
    two = Case(MIRA, {other: {"Liking": "red"}, **one.affinities}, {}, EVENING, "Sort it out.", "")
    for seed in range(6):
        opening = answer("attentive", user_request(one, []), "personalens/user", seed=seed)
        assert taken_for(opening) == [name] and "zebra" not in opening
        lines = [text for role, text in play(two, "base", seed=seed) if role == "user"]
        assert [name] in [taken_for(*lines[:end]) for end in range(2, len(lines))], lines


def test_later_lines_change_the_domain_only_outright() -> None:
    assert taken_for("Book us a table at a restaurant.", "The last film made me hungry for soup.") == []
    assert taken_for("I'd like to see a film.", "No, I meant the restaurant.") == ["Restaurants"]
    assert taken_for("I'd like to see a film.", "Great. Next, could you help with the train?") == ["Train"]
    assert taken_for("I'd like to see a film.", "And then I also need a hotel.") == ["Hotels"]


def test_assistant_asks_about_an_unclear_request() -> None:
    talk = [{"role": "system", "content": "Be personal."}, {"role": "user", "content": "Hi there, a favour?"}]
    reply = answer("attentive", talk, "personalens/assistant")
    assert "?" in reply
    talk += [{"role": "assistant", "content": reply}, {"role": "user", "content": "I need a haircut."}]
    assert answer("attentive", talk, "personalens/assistant") != reply


def test_user_corrects_an_answer_to_something_else() -> None:
    massage = "I've booked the massage at Hands & Stone, Friday at 9:00 AM. Your appointment is confirmed."
    line = answer(
        "attentive", user_request(DINNER, [("user", "I'd like dinner."), ("assistant", massage)]), "personalens/user"
    )
    assert "restaurant" in line and "TERMINATE" not in line


def test_booked_massage_is_no_dinner() -> None:
    asked = ("user", "Find us a restaurant and book a table, please.")
    massage = ("assistant", "I've booked the massage: your appointment is at 9:00 AM.")
    table = ("assistant", "I've reserved a table at Meltemi, Friday at 8:00 PM. They know about the nut allergy.")
    thanks = ("user", "Thank you, that is all.")
    assert judged(DINNER, [asked, massage, thanks], "task_completion") is False
    assert judged(DINNER, [asked, table, thanks], "task_completion") is True
    given_up = ("user", "Never mind, that will have to do. Thanks.")
    assert judged(DINNER, [asked, table, given_up], "task_completion") is False


SEAMS = re.compile(
    r"  |[{}<>\[\]|]|\.\.|,,|[.,]\?|\?\.|\bN/A\b|"
    r"\b[Aa] [aeiou]\w|\b[Aa]n [^aeiou\W]|\b([a-z]+) \1\b|^\s*$|^[a-z]|[.!?] [a-z]"
)
NAMES = ["amara", "gwen", "hiroshi"]


def cases(user: str) -> Iterator[Case]:
    """The tasks of one of the sample people."""
    release = samples()
    profile = release.profile(user)
    for task in release.tasks(profile, user):
        found = PersonaLensScenario.of(profile, task, "base")
        yield Case(
            dict(found.demographics),
            {domain.name: dict(domain.affinities) for domain in found.domains},
            {domain.name: domain.summary for domain in found.domains},
            dict(found.situation),
            found.intent,
            found.goal,
        )


def own_words(text: str) -> str:
    """What the understudies say of their own: without what they quote."""
    return re.sub("“[^”]*”", "“”", text)


@pytest.mark.parametrize("user", NAMES)
def test_no_line_shows_a_seam(user: str) -> None:
    for case, setting in product(list(cases(user))[::2], ["vanilla", "base", "I", "all"]):
        values = " ".join(case.values)
        for role, text in play(case, setting):
            told = SEAMS.search(own_words(text))
            assert not told or told.group() in values, (setting, role, text)


@pytest.mark.parametrize("user", NAMES)
def test_nobody_says_what_belongs_to_another(user: str) -> None:
    tasks = list(cases(user))
    own = " ".join([str(task) for task in tasks]).lower()
    others = {value for name in samples().user_ids() if name != user for case in cases(name) for value in case.values}
    foreign = [value for value in others if value.lower() not in own and len(value.split()) > 1]
    assert len(foreign) > 100
    said = "\n".join(text for case in tasks[::3] for _, text in play(case, "all"))
    assert not [value for value in foreign if value in said]


def test_no_fact_is_invented() -> None:
    for case in list(cases("amara"))[::2]:
        shown = f"{case} {' '.join(case.summaries.values())}"
        for _, text in play(case, "all"):
            for fact in re.findall(r"\d[\d:.,]*\d|(?<=[a-z,] )[A-Z]\w+", own_words(text)):
                assert fact in shown or fact in ("I", "TERMINATE", "AM", "PM", "Saturday", "Thursday", "Next"), text
