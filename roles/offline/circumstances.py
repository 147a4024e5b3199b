"""The practical side of a request: where to, when, for whom. Invented by the user, read by the assistant.

None of it is a preference; without it nothing concrete could be booked, and no two dialogues would differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .declarative import first_person
from .draws import Draws
from .grammar import render_first
from .lazy import Lazy
from .matching import mentions_any
from .model import Slots
from .prose import capitalised
from .tags import Request
from .wordbank.cities import cities_far, town_of, towns_near

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DATES = (
    "next Friday",
    "next Thursday",
    "next Monday",
    "next Tuesday",
    "next Wednesday",
    "next Saturday",
    "the day after tomorrow",
)
_SERVICES = (
    "a haircut",
    "a dental cleaning",
    "an eye test",
    "a massage",
    "a check-up with the doctor",
    "a physio session",
)
_OCCASIONS = (
    "a long drive",
    "a lazy Sunday",
    "cooking with friends",
    "my morning run",
    "a birthday dinner",
    "a rainy evening in",
)
_EVENTS = (
    "lunch with an old friend",
    "the parents' evening",
    "the plumber's visit",
    "a check-up at the clinic",
    "a video call with my aunt",
    "the neighbours' barbecue",
    "my driving lesson",
    "a planning session",
    "coffee with my cousin",
    "the flat viewing",
)
_NUMBERS = {"ten": 10, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40}
_EVENT_OF = (
    (r"first-aid", "the first-aid course"),
    (r"invited", "the new invitation"),
    (r"early flight", "the early flight"),
    (r"season", "the first match of the season"),
    (r"to your home", "the visit at home"),
    (r"birthday", "the birthday"),
    (r"book club", "the book club meeting"),
    (r"gaming", "the gaming night"),
    (r"family movie", "the family film night"),
    (r"movie night", "the film night"),
    (r"business", "the meeting with the partners"),
    (r"workout|fitness|exercise", "the workout"),
    (r"viewing party|watch party", "the viewing party"),
    (r"shopping", "the shopping day"),
    (r"romantic|date night", "our evening out"),
    (r"invest|earnings", "the earnings call"),
    (r"routine", "the evening routine"),
    (r"music-themed|concert", "the concert evening"),
    (r"appointment|service", "the appointment"),
    (r"birthday", "the birthday"),
    (r"weekend", "the weekend plan"),
    (r"trip|travel", "the trip"),
    (r"dinner", "the dinner"),
)
_TASK_EVENTS = frozenset(["the trip", "the first-aid course", "the new invitation"])
_PEOPLE = (
    "my sister",
    "my brother",
    "an old friend",
    "my cousin",
    "my aunt",
    "my neighbour",
    "my godmother",
    "a friend from work",
)
_GISTS = (
    ("say that I'm running ten minutes late", "Running about ten minutes late, see you soon!"),
    ("ask whether Sunday still works", "Hi! Does Sunday still work for you?"),
    ("say happy birthday from me", "Happy birthday! Have a lovely day, I'm thinking of you."),
    ("say thank you for last weekend", "Thank you again for last weekend, it was good to see you."),
    ("ask how the move went", "How did the move go? Tell me when you have a minute."),
    ("say that I've arrived safely", "Just to say I've arrived safely. I'll call tomorrow."),
    (
        "say that I can't help this month after all",
        "I'm so sorry, I can't help this month after all. I'll make up for it.",
    ),
    ("say that I have a new number", "I have a new phone number, and this is it. Please save it!"),
    (
        "ask whether a film and a meal would do some good",
        "How about a film and a good meal, just us? I'd love to see you.",
    ),
    ("ask for the soup recipe", "Could you send me your soup recipe when you get a chance?"),
)
_WISH_OF = (
    (r"promised", "say that I can't help this month after all"),
    (r"phone number|new number", "say that I have a new number"),
    (r"hard month|invitation", "ask whether a film and a meal would do some good"),
)
_GROUP_GIST = ("ask everyone whether {date} works", "tell everyone the plan for {date}", "invite everyone for {date}")
_DATE = Lazy(
    rf"\b(?:(?:next|this|this coming) (?:{'|'.join(_DAYS)}|weekend|week|month)|the day after "
    rf"tomorrow|tomorrow|tonight)\b",
    re.IGNORECASE,
)
_PLACE = r"((?:[A-ZÀ-ÞŁŚŻ][\w'’-]+)(?: (?:[A-ZÀ-ÞŁŚŻ][\w'’-]+))*)"
_DEST = Lazy(rf"(?<!close )(?<!back )\b(?:[Tt]o|[Ii]n|around|visit(?:ing)?|see) {_PLACE}|(?:^|[.!?] ){_PLACE}\.(?= |$)")
_CITY = Lazy(rf"\b(?:I'm in|I live in|here in|we're in|near me in) {_PLACE}")
_PARTY = Lazy(
    r"\b(?:(two|three|four|five|six|seven|eight) of us|(?:table|dinner|seats) for (two|three|four|five|six|"
    r"seven|eight))\b"
)
_NOT_PLACE = Lazy(
    rf"{'|'.join(_DAYS)}|To|In|Yes|Okay|Great|Good|Perfect|Cool|Lovely|Thanks|Done|Sure|Right|Fine|Next|I|TERMINATE|"
    rf"Spring|Summer|"
    r"Autumn|Fall|Winter|English|UTC"
)

# What the user says of its own accord, by domain.
_DETAILS: dict[str, tuple[str, ...]] = {
    "flights": ("I'm flying to {dest} {date}", "it's to {dest}, {date}", "I have to be in {dest} {date}"),
    "train": ("I'm going to {dest} {date}", "it's to {dest}, {date}"),
    "buses": ("I'm going to {dest} {date}", "it's to {dest}, {date}"),
    "hotels": ("I'll be in {dest} {date}", "it's a stay in {dest}, {date}", "we're going to {dest} {date}"),
    "rental cars": ("I'd pick it up {date}", "I'd need it from {date}", "I'm picking it up in {dest} {date}"),
    "travel": ("I'm thinking of going to {dest}", "I'd like to see {dest}", "I have my eye on a trip to {dest}"),
    "restaurants": ("there'll be {party} of us", "it's a table for {party}"),
    "messaging": ("it's for {recipient}, <please |>{wish}", "it should go to {recipient}, <please |>{wish}"),
    "calendar": ("it's for {event}, {date}", "the entry is {event}, {date}", "{event} <needs|has> to go in for {date}"),
    "services": ("I need {service}", "it's for {service}"),
    "music": ("it's for {occasion}",),
}
_ANSWERS: dict[str, tuple[str, ...]] = {
    "dest": ("To {dest}", "To {dest}, please", "I'm going to {dest}"),
    "date": ("{date_cap}", "{date_cap} would be best", "{date_cap}, if possible"),
    "city": ("I'm in {city}", "Here in {city}"),
    "party": ("There'll be {party} of us", "A table for {party}"),
    "recipient": ("It's for {recipient}, {wish}", "{recipient_cap}, and please {wish}"),
    "event": ("It's {event}", "{event_cap}"),
    "service": ("I need {service}", "{service_cap}"),
    "occasion": ("It's for {occasion}",),
}
ASKED = {
    "city": r"which (?:city|town) are you|where are you (?:right now|based|at the moment)",
    "dest": r"where (?:are you|would you like to|do you want to|to\b)|destination|which (?:city|town|place) "
    r"(?:is it|should|are you going)",
    "date": r"which (?:day|date)|what (?:day|date)|when (?:are you|do you|is it|would you like to (?:go|"
    r"travel))",
    "party": r"how many (?:of you|people|guests)",
    "recipient": r"who (?:should|is it|shall)|what should it say|whom",
    "event": r"what(?:'s| is) (?:the|it)\b.*(?:event|entry|called|about)|what should I (?:put|enter|move)",
    "service": r"what (?:service|appointment|kind of appointment)|what do you need",
    "occasion": r"what(?:'s| is) the occasion|which occasion",
}


def invented(request: Request, draws: Draws) -> Slots:
    """Invent the practical facts of a user's request; the same for the same person, task and situation.

    What the task itself says (a day, how many people) stands.
    """
    stream = draws.fork("circumstances")
    intent = request.task.lower()
    several = len(request.affinities) > 1
    group = bool(re.search(r"group|friends|party|family|everyone|club|guests|multi-gen", intent))
    sizes = ["two"] if "romantic" in intent else ["five", "six", "four"] if group else ["two", "three", "four"]
    today = request.situation.get("day of the week", "-")
    date = stream.pick([day for day in _DATES if today not in day])
    facts = {
        "dest": _destination(request, stream),
        "date": date,
        "party": stream.pick(sizes),
        "event": _event(intent, several, stream),
        "service": stream.pick(_SERVICES),
        "occasion": stream.pick(_OCCASIONS),
        "city": town_of(request.situation.get("location", "")),
    }
    facts |= {key: value for key, value in read([first_person(request.task)]).items() if key in ("date", "party")}
    facts["recipient"], facts["wish"] = _errand(request, intent, group or several, facts["date"], stream)
    return with_capitals(facts)


def _destination(request: Request, stream: Draws) -> str:
    tastes = [value for domain in request.affinities.values() for values in domain.values() for value in values]
    here = request.situation.get("location", "")
    country = request.demographics.get("reside_country", "") or here.rpartition(",")[2]
    flies = any(name.lower() == "flights" for name in request.affinities)
    pool = cities_far() if flies else towns_near(country) or cities_far()
    return stream.pick([city for city in pool if city not in here and not mentions_any(city, tastes)] or ["the coast"])


def _event(intent: str, several: bool, stream: Draws) -> str:
    fitting = next((name for words, name in _EVENT_OF if re.search(words, intent)), "")
    drawn = stream.pick(_EVENTS)
    return fitting if fitting and (several or fitting in _TASK_EVENTS) else drawn


def _errand(request: Request, intent: str, several: bool, date: str, stream: Draws) -> tuple[str, str]:
    """Say whom the message is for, and what it should say."""
    contacts = [
        value
        for name, values in request.affinities.get("Messaging", {}).items()
        for value in values
        if re.search(r"contact|people", name, re.IGNORECASE) and re.search(r"\b[A-Z]", value)
    ]
    recipient, wish = stream.pick(_PEOPLE), stream.pick(_GISTS[:6])[0]
    if contacts:
        recipient = stream.pick(contacts)
        recipient = recipient if recipient[:1].isupper() else f"my {recipient}"
    for words, fitting in _WISH_OF:
        if re.search(words, intent):
            return recipient, fitting
    if several:
        return "the others", stream.pick(_GROUP_GIST).replace("{date}", date)
    return recipient, wish


def with_capitals(slots: Slots) -> Slots:
    """Add to each practical fact its form at the start of a sentence."""
    return slots | {f"{key}_cap": capitalised(value) for key, value in slots.items()}


def detail_line(domain: str, facts: Slots, intent: str, draws: Draws) -> str:
    """Give what the user volunteers about the practical side, as a clause; empty when the domain needs nothing."""
    templates = _DETAILS.get(domain.lower(), ())
    if domain.lower() == "music" and (not re.search(r"playlist|occasion", intent) or "evening" in intent):
        return ""
    if domain.lower() == "messaging" and re.search(r"location", intent):
        templates = ("it's for {recipient}",)
    if domain.lower() == "messaging" and re.search(r"mute|leave", intent):
        templates = ("it's the family group", "it's the group from my old job", "it's the neighbourhood group")
    return render_first(templates, facts, draws) if templates else ""


def particulars() -> list[str]:
    """Give what entries and occasions may be called; their words tell nothing of the domain."""
    phrases = [*_EVENTS, *(name for _, name in _EVENT_OF), *_OCCASIONS]
    return sorted({form for phrase in phrases for form in (_your(phrase), capitalised(_your(phrase)))}, reverse=True)


def answer_line(need: str, facts: Slots, draws: Draws) -> str:
    """Answer one practical question."""
    return render_first(_ANSWERS.get(need, ()), facts, draws)


def _your(text: str) -> str:
    return re.sub(r"\b[Oo]ur\b", "your", re.sub(r"\b[Mm]y\b", "your", text))


def read(lines: Iterable[str]) -> Slots:
    """Collect the practical facts that a user has stated, newest last."""
    facts: Slots = {}
    for line in lines:
        for name, pattern in (("date", _DATE), ("city", _CITY), ("party", _PARTY)):
            if found := pattern.search(line):
                facts[name] = next((group for group in found.groups() if group), found.group()).strip()
        for found in _DEST.finditer(line):
            place = next(group for group in found.groups() if group).removeprefix("To ").removeprefix("In ")
            if not _NOT_PLACE.fullmatch(place.split()[0]) and place != facts.get("city"):
                facts["dest"] = place
        _read_phrases(line, facts)
    if facts.get("date", "")[:1].isupper():
        facts["date"] = facts["date"][0].lower() + facts["date"][1:]
    return with_capitals(facts)


def _read_phrases(line: str, facts: Slots) -> None:
    low = line.lower()
    for name, bank in (
        ("service", _SERVICES),
        ("occasion", _OCCASIONS),
        ("event", (*_EVENTS, *(name for _, name in _EVENT_OF))),
    ):
        if said := next((phrase for phrase in bank if phrase.lower() in low), ""):
            facts[name] = _your(said)
    if found := re.search(
        r"\b(my (?:sister|brother|cousin|aunt|uncle|neighbour|godmother|mum|dad|mother|father|son|daughter|"
        r"boss|colleague|wife|husband|friend)|an old friend|a friend from work|the others)\b(?=,|\.|"
        r"\s(?:and|say|ask|tell|invite))",
        low,
    ):
        facts["recipient"] = "your " + found.group(1)[3:] if found.group(1).startswith("my ") else found.group(1)
        facts["recipient"] = (
            facts["recipient"].replace("an old friend", "your old friend").replace("a friend from", "your friend from")
        )
    named = re.search(
        r"\b(?:It's for|it's for|should go to|^|[.!?]) ?([\w'’ -]{2,40}?),(?: and)?(?: please)? (?:say|ask|tell|"
        r"invite)\b",
        line,
    )
    if named and "recipient" not in facts:
        facts["recipient"] = _your(re.sub(r"^(?:It's for|It should go to) ", "", named.group(1).strip()))
    for wish, message in _GISTS:
        if wish.lower() in low:
            facts["gist"] = message
    if found := re.search(r"(ask|tell|invite) everyone", low):
        day = _DATE.search(line)
        date = day.group() if day else ""
        gists = {
            "ask": "Hi all, would {date} work for everyone?",
            "tell": "Hi all, here's the plan for {date}. Shout if anything changes!",
            "invite": "You're all invited for {date}. Tell me if you can make it!",
        }
        facts["gist"] = gists[found.group(1)].replace("{date}", date or facts.get("date", "the weekend"))
    if shift := re.search(r"\b(ten|fifteen|twenty|thirty|forty|\d+) minutes earlier\b", low):
        facts["shift"] = str(_NUMBERS.get(shift.group(1), shift.group(1)))
    if re.search(r"\b(?:family group|group from my old job|neighbourhood group)", low):
        facts["group"] = "yes"
