"""Which domain a piece of talk is about: weighted cues, so that the most specific one wins.

The same function serves the assistant, the user, who makes sure of being understood, and the judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from .lazy import Lazy
from .prose import sentences

# For each domain the cues that settle it (3), that point to it (2), and that are no more than a hint (1).
_CUES: dict[str, tuple[str, str, str]] = {
    "Alarm": (
        r"alarms?|wake-up|wake me|waking me|snooze|alarm clock|get me up|(?:want|need|have) to (?:wake|be) up|"
        r"be up (?:at|by|before)|oversle\w+",
        r"wake up|get up|out of bed|ring at",
        r"in the morning|early",
    ),
    "Books": (
        r"books?(?! (?:a|an|the|it|them|me|two|seats?|tickets?|flights?|club)\b)|novels?|novellas?|"
        r"to read(?! back)|authors?|reading list|audiobooks?|library|bedside",
        r"reading|read|chapters?|poetry|poems|page-turner",
        r"stories|pages|shelf",
    ),
    "Buses": (
        r"bus(?:es)?|coach(?:es)?(?! (?:car|class))|minibus|bus stop",
        r"coach trip|bus line",
        r"timetable|stop",
    ),
    "Calendar": (
        r"calendar|diary|agenda|reminders?|my schedule|schedul\w+|double-booked|time slot|"
        r"(?:block|keep)(?:ed|s)? (?:out |off )?(?:the )?(?:time|date|day|morning|week)|clash(?:es)?|"
        r"same time as|very hour|regular commitments?",
        r"commitments?|remind me|invites?|invited me|put in the dates?|rehearsals?|dates?(?= (?:for|in) my)",
        r"appointments?|meetings?|entry|evenings|(?<!of )course|week",
    ),
    "Events": (
        r"events?|concerts?|festivals?|exhibitions?|sold out|gigs?|live music|things? to do|something to do|"
        r"(?:worth|somewhere|something) (?:going|to go) (?:to|out)|what's on(?! tv)|night out|going out|"
        r"flea market|fairs?(?! price)",
        r"tickets? for|activities|go out|outing|show in town|museum|theatre tickets|Saturday is suddenly free",
        r"tickets?|nearby|tonight|weekend|performance|evening I wanted",
    ),
    "Finance": (
        r"financ\w+|stocks?|invest\w*|portfolio|bank(?:ing)?(?! holiday)|bank account|account|savings?|"
        r"strange charge|spending|mortgage|"
        r"put aside|save up|saving (?:up )?for|interest rates?|earnings|stock market|market trends|expert opinions|"
        r"pension|my money|the money side",
        r"charges?(?=\s(?:slipped|on|from|that))|charged|payments?|afford|alerts?|markets?(?!place| stalls?)|shares?|"
        r"sectors?|transfers?|card|"
        r"budget(?:ing)? for the month|debts?|loan|cash",
        r"money|euros|month",
    ),
    "Flights": (
        r"flights?|fly(?:ing)?(?= )|airlines?|plane|airport|boarding pass|red-eye|fly|take-off|layover",
        r"moved my departure|departure by|abroad",
        r"luggage|gate|terminal",
    ),
    "Games": (
        r"(?:video|board|card|computer|new|party|mobile|co-op|of) games?|games? (?:to|night|evening|for|of|with|world|"
        r"from)|gaming|"
        r"multiplayer|console|something (?:new )?to play|to play(?! (?:music|in the))|play on what|"
        r"evening of games|gamers?|puzzle game",
        r"games?(?! (?:on tv|is on|tonight|score))|play(?:ing)? (?:it )?on|level|controller",
        r"play|players?|fun",
    ),
    "Hotels": (
        r"hotels?|accommodations?|(?:place|places|somewhere|where) to (?:stay|sleep)|a stay|overnight|guest ?house|"
        r"hostel|bed and breakfast|book a room|(?:a|the|my) room|(?:one|two|three|four|five|\d) nights?|lodgings?|"
        r"building site outside|beds? for|nights? (?:there|in a)|sleep on the way|check in",
        r"rooms?|apartment|to stay|stay(?:ing)? (?:in|at)|put (?:me|us) up|cabin|night there",
        r"nights?|beds?|sleep|town I do not know",
    ),
    "Media": (
        r"tv|telly|television|streaming|series to watch|(?:new|a|another) series|seasons? of|episodes?|podcasts?|"
        r"radio|documentar(?:y|ies)|"
        r"programmes?|broadcast(?:s|er)?|watchlist|media|something (?:good )?to watch|what to watch|to binge|"
        r"for the screen|(?:tv )?shows? (?:to|I|for|that|like)|movie nights?|spoken",
        r"stream|watch(?:ing)?|series|channels?|shows?|video|binge",
        r"screen|seasons?|usual hour|find it again",
    ),
    "Messaging": (
        r"messag\w+|text (?:my|her|him|them|back)|send (?:a|the) (?:text|note|word)|whatsapp|group chat|"
        r"write to (?:someone|somebody|my|a|him|her|them)|phone number|new number|"
        r"let (?:\w+ ){1,4}know|letting (?:\w+ ){0,3}know|"
        r"share my (?:current )?location|reply to|drop (?:\w+ )?a line|tell everyone|have it sent|"
        r"invitation written|the invitation(?! card)",
        r"send|text|invitation|apologi[sz]e|promised|write",
        r"people I write|contact|invit(?:e|es)|sounds like me",
    ),
    "Movies": (
        r"movies?(?! nights?)|films?(?! night)|cinema|showtimes?|screening|matinee|at the pictures|blockbuster",
        r"movie theat(?:er|re)|premiere|theaters?",
        r"theatres?|actors?|director|series put together|language version",
    ),
    "Music": (
        r"music|songs?|playlists?|albums?|musicians?|bands?|listen(?:ing)?(?: to)?|pieces (?:to|of|for|made)|tunes?|"
        r"singers?|composers?",
        r"artists?|tracks?|sing|melod\w+",
        r"pieces|play",
    ),
    "Rental Cars": (
        r"rental(?: cars?)?|rent (?:a|the)|hire(?:d)? (?:a )?car|car hire|(?:a|the) car|vehicles?|car for|"
        r"cars|minivan|something to drive|van",
        r"drive|car|wheels|pick-up|rented",
        r"luggage|days",
    ),
    "Restaurants": (
        r"restaurants?|(?:book|get|reserve|find|want|need) (?:us |me )?a table|table (?:for|at|changed|by)|dinner|"
        r"dining|dine|lunch|brunch|"
        r"(?:somewhere|place|places|something) to eat|eat(?:ing)? out|takeaway|takeout|cuisine|be fed|"
        r"order (?:some )?(?:food|dinner|pizza|something for everybody)|supper|a meal|meals?|something to eat|caf[eé]|"
        r"hungry",
        r"eat(?:ing)?|food|table|feed|cook(?:ing)?|dishes|deliver(?:y|ed)? food",
        r"for the (?:two|three|four|five|six) of us|everybody|order|deliver(?:y|ed)?",
    ),
    "Services": (
        r"haircut|hairdresser|dentist|dental|massage|doctor|salon|barber|check-up|provider|eye test|physio\w*|plumber|"
        r"electrician|mechanic|cleaner|tutor|repair(?:er|s|ed|man)?|handyman|somebody to (?:fix|come|do)|"
        r"someone to (?:fix|come|do|look)|service appointment|services I use|a service|"
        r"(?:an?|the|my|first|make an|new) appointment(?! in my calendar)|whose services|vet|boiler|tradesman|"
        r"job that takes|come to (?:my|your|the) (?:home|house|flat)",
        r"services?|appointments?|fix(?:ed)?|successor|booked? in with",
        r"retired|leak\w*|home|broken",
    ),
    "Shopping": (
        r"shop(?:ping)?|products?|buy(?:ing)?|gifts?|presents?|purchase|parcels?|wrong size|worn out|run out|"
        r"exchanged?|returns?(?= (?:is|are|label|it|a|the))|for returns|online order|(?:came|arrived) in the wrong|"
        r"replacement (?:found|ordered)|"
        r"something (?:I|that I) ordered|store|stores",
        r"ordered|brands?|shops|basket|good replacement|deadline for returns",
        r"order|size|price|wear",
    ),
    "Sports": (
        r"sports?|match(?:es)?(?! (?:my|your|the|me))|scores?|teams?|tournaments?|league|fixtures?|stadium|"
        r"merchandise|memorabilia|athletes?|workout|"
        r"start moving again|moving again|exercise|the game on tv|training plan|work out(?! (?:with|by|how|what|when))|"
        r"get(?:ting)? fit|fit again|"
        r"who won|results|marathon|football|tennis",
        r"attend\w*|season is about to start|club|running|championship|out of touch",
        r"fortnight|won|season|catch up",
    ),
    "Train": (
        r"trains?(?! (?:for|my|at the gym))|rail(?:way)?|carriage|closed the line|the line (?:is|was)|line that I need|"
        r"railway station|by rail",
        r"connections? there|the line|station|detour",
        r"tickets?|seat|journey|there and back",
    ),
    "Travel": (
        r"trips?(?! (?:by|with))|vacation|holidays?|getaway|sights?|sightseeing|attractions?|itinerary|destinations?|"
        r"get away|big journey|travel plans?|things to see|where to go|go away for|"
        r"places (?:in mind|to visit|on my list)|place from my list|next season and have|somewhere new|weekend away",
        r"travel(?:l?ing)?|visit|compare them|journey of (?:my|the) year|rough plan|places?(?= in mind)",
        r"abroad|journey|places|city",
    ),
}
_WEIGHTS = (3.0, 2.0, 1.0)
# A sentence with one of these says outright what the line is about.
_DECIDES = Lazy(
    r"^(?:Next, could|Now for|Then there|What about|Could you look after|On to|That leaves|Can we do|After that)\b|"
    r"\b(?:start with|begin with|starting with|comes first|[Ff]irst up)\b"
)
_CORRECTS = Lazy(
    r"\bI meant\b|\bI (?:mean|was after|was asking about)\b|\bI'm (?:talking|asking) about\b|"
    r"(?:^|, )(?:[Ii]t's|[Ii]t is|[Tt]his is) (?:all )?about\b"
)


@lru_cache(maxsize=64)
def _patterns(name: str) -> tuple[tuple[float, re.Pattern[str]], ...]:
    cues = _CUES.get(name) or (re.escape(name.lower()),)
    return tuple(
        (weight, re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE))
        for weight, words in zip(_WEIGHTS, cues, strict=False)
    )


@lru_cache(maxsize=4096)
def weighed(text: str, names: tuple[str, ...] = tuple(_CUES)) -> dict[str, float]:
    """Weigh the cues of each domain in a text; what is said last counts a shade more. Zero is left out."""
    found: dict[str, float] = {}
    for name in names:
        cues: dict[str, float] = {}
        for weight, pattern in _patterns(name):
            for hit in pattern.finditer(text):
                cues.setdefault(hit.group().lower(), weight + 0.2 * hit.start() / len(text))
        strongest = sorted(cues.values(), reverse=True)
        if strongest:
            found[name] = strongest[0] + 0.5 * sum(strongest[1:3])
    return found


def topic_of(text: str, names: Iterable[str] = ()) -> str:
    """Name the domain that a text is most about; empty when nothing tells."""
    return max(
        weighed(text, tuple(names) or tuple(_CUES)).items(),
        key=lambda pair: pair[1],
        default=("", 0.0),
    )[0]


def declared(line: str) -> str:
    """Give the part of a line that says outright what it is about, if any part does."""
    parts = sentences(line)
    return next(
        (part for part in reversed(parts) if _DECIDES.search(part) or _CORRECTS.search(part)),
        "",
    )


def topic_of_line(line: str, names: Iterable[str] = (), first: bool = True) -> str:
    """Name the domain that a user's line brings up; a later line must say outright that it is about something else."""
    line = line.replace("TERMINATE", "")
    outright = declared(line)
    found = topic_of(outright, names) if outright else ""
    return found or (topic_of(line, names) if first else "")
