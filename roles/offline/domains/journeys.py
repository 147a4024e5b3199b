"""Flights, Train and Buses: getting from one place to another."""

from __future__ import annotations

from ..model import Domain, Facet
from ..wordbank.routes import bus_ride, flight, train_ride

_SEAT = Facet(
    "seat", r"seat(?! class)",
    ("I'd like {p}", "{p} <if there is one|please>", "I always take {p}"),
    ("Window or aisle?", "Where would you like to sit?"),
    ("I picked {p}, as you usually do.", "It's {p}, your usual choice."),
    r"window or|sit\b|aisle|which seat",
    frame="a {v} seat",
    lexicon=("window", "aisle"),
    heads=r"(?:[\w-]+ )?(?:window|aisle|berth)(?: (?:ahead of|behind|by|at|on|facing|near|with) (?:the |movable "
          r")?[\w-]+(?: \w+)?)|right side,? single|exit row|front row|back row|side lower|wheelchair \w+",
    noun="the seat",
            shape="seat",
        )  # fmt: skip

_HOURS = Facet(
    "hours", r"time|depart|when",
    ("I'd rather leave {p}", "I like to <leave|travel> {p}", "I'd set off {p}"),
    ("What time of day suits you?", "When would you like to leave?"),
    ("It leaves {p}, when you prefer to travel.", "I looked for something {p}, as you like it."),
    r"time of day|when would you like to leave|what time",
    lexicon=("morning", "afternoon", "evening", "night", "late morning", "early morning"),
    heads=r"red-eye|after dawn|before sunrise|midday,? off-peak|mid-morning|first departure of the morning|early "
          r"afternoon|late night|overnight|weekday daytime|between two shifts",
    noun="the time",
            shape="time",
        )  # fmt: skip

FLIGHTS = Domain(
    name="Flights",
    thing=("the flight", "the flights"),
    kind="book",
    facets=(
        Facet(
            "airline", r"airline|carrier",
            ("I <usually|prefer to> fly with {v}", "{v} would be best", "I collect miles with {v}"),
            ("Do you have a favourite airline?", "Which airline do you like to fly with?"),
            ("You <usually fly|like flying> with {v}, so I looked there first.",
             "It's with {v1}, which you've chosen before."),
            r"airline",
            lexicon=("Delta Airlines", "Delta", "United Airlines", "British Airways", "Qatar Airways",
                     "Singapore Airlines",
                     "Emirates", "RyanAir", "Ryanair", "EasyJet", "Air Canada", "Air China", "KLM",
                     "Turkish Airlines",
                     "Cathay Pacific Airways", "Cathay Pacific", "Japan Airlines", "American Airlines",
                     "Southwest Airlines",
                     "Lufthansa", "Air France", "Etihad Airways", "Iberia", "Qantas", "JetBlue", "Vueling",
                     "Thai Airways",
                     "Virgin Atlantic", "Aer Lingus", "Alaska Airlines", "LATAM Airlines", "LATAM",
                     "EgyptAir", "Avianca",
                     "Korean Air", "SAS", "Scandinavian Airlines (SAS)", "Scandinavian Airlines", "Norwegian",
                     "WestJet",
                     "ANA All Nippon Airways", "Air India", "IndiGo", "Kenya Airways", "Ethiopian Airlines",
                     "TAP Air Portugal"),
            proper=True,
        ),
        Facet(
            "cabin", r"class|cabin",
            ("I fly {v}", "{v} <would be|is> right for me", "I'd take {v}"),
            ("Which class would you like to fly?", "Economy, or something with more room?"),
            ("I looked in {v}, as you usually do.", "It's in {v1}, your usual class."),
            r"which class|economy|cabin",
            say={"first": "first class"},
            lexicon=("premium economy", "economy", "business class", "business", "first class"),
            heads=r"staff standby or economy|cheapest economy|extra legroom economy|economy with [\w ]{3,20}bags?|"
                  r"business class|premium economy",
            noun="the cabin",
            shape="any",
        ),
        Facet(
            "stops", r"layover|stop|connection",
            ("I want {p}", "{p} only, if you can", "{p} would be important to me"),
            ("Is a stop on the way all right?", "Non-stop, or would a layover be fine?"),
            ("I kept to {p}, since you <prefer|like> that.", "You like {p}, so I left out the rest."),
            r"stop on the way|layover|non-stop",
            frame="a {v} flight",
            say={"short layover": "a short layover at most", "long layover": "a long layover",
                 "non-stop": "a non-stop flight"},
            lexicon=("non-stop", "nonstop", "short layovers", "short layover", "long layover",
                     "direct flights"),
        ),
        _SEAT,
        _HOURS,
    ),
    offers={
        "": ("I found {flight} [with {airline1} ]to {dest}, leaving {date_or} at {dep} and landing at "
             "{arr}[, {stops}][, in "
             "{cabin1}].",
             "There's {flight} [on {airline1} ]{date_or}, {dep} to {arr}[, {stops}], to {dest}[ in "
             "{cabin1}]. It has {seat_or} free.",
             "To {dest} I'd take the {dep} {date_or}[ with {airline1}][ in {cabin1}]: it lands at {arr}[, "
             "{stops}]."),
        "change": ("I can move you to the {dep}[ with {airline1}] {date_or}, landing in {dest} at {arr}[, "
                   "{stops}]. The change "
                   "costs ${fee}.",),
        "plan": ("Here's a route: {city_or} to {mid} in the {daypart_dep}, two nights there, then on to "
                 "{dest}[ with {airline1}], "
                 "and home {date_or} at {dep}[, {stops}][, all in {cabin1}].",),
    },
    done={
        "": ("I've booked {flight} to {dest}[ with {airline1}], {date_or} at {dep}[, {cabin1}][, {seat}].",
             "Your flight to {dest} is booked: {date_or}, {dep}[, {airline1}][, {seat}]. The reference is "
             "{code}."),
        "change": ("I've changed your booking: {dest}, {date_or} at {dep}[, {airline1}][, {seat}]. The "
                   "reference is {code}.",),
        "plan": ("I've booked the whole round: {mid}, then {dest}, and home {date_or}[, with {airline1}]. "
                 "The reference is {code}.",),
    },
    opening=("I need to book a flight", "I'd like to fly somewhere soon"),
    bland=("There are many airlines to choose from. Comparison sites can show you prices.",
           "I found some flights. Prices vary depending on the date.",
           "Booking early is usually a good idea when you fly."),
    needs=("dest", "date"),
    items=flight,
)  # fmt: skip

TRAIN = Domain(
    name="Train",
    thing=("the train", "the train ticket"),
    kind="book",
    facets=(
        Facet(
            "company", r"operator|compan|railway",
            ("I travel with {v}", "I usually go with {v}",),
            ("Which railway do you use?",),
            ("It runs with {v1}, your usual railway.", "I looked at {v}, whom you travel with.",),
            r"which railway|operator",
            noun="the railway",
            proper=True,
        ),
        Facet(
            "cabin", r"class|cabin",
            ("I travel {v}", "{v}, please", "I'd take {v}"),
            ("First or standard class?", "Which class would you like?"),
            ("I looked in {v}, your usual class.", "It's {v}, the way you like to travel."),
            r"which class|first or standard",
            lexicon=("first class", "first-class", "standard class", "second class", "sleeper"),
            heads=r"kupe|AC two-tier overnight|quiet carriage in second class|Green Car|sleeper roomette|economy "
                  r"carriage|standard class|second class|sleeper",
            noun="the class",
        ),
        _HOURS,
        Facet(
            "extras", r"amenit|feature|onboard|on board",
            ("I <need|'d like> {p}", "{p} would help, I <usually work|like to be comfortable> on the way",
             "it should have {p}"),
            ("Anything you need on board, like Wi-Fi or a table?", "What matters to you on board?"),
            ("There's {p} on board, which you usually ask for.", "I made sure there's {p}, as you like it."),
            r"on board|wi-?fi|need on",
            say={"wifi": "WiFi", "power outlet": "a power outlet", "table": "a table",
                 "quiet coach": "a quiet coach",
                 "quiet carriage": "a quiet carriage", "dining car": "a dining car",
                 "bike space": "a bike space",
                 "quiet zone": "a quiet zone", "family area": "a family area"},
            lexicon=("Wi-Fi", "WiFi", "power outlets", "power outlet", "tables", "table", "quiet coaches",
                     "quiet coach",
                     "quiet carriage", "dining car"),
        ),
        _SEAT,
        Facet(
            "habit", r"habit|booking",
            ("about buying the ticket: {v}", "I buy the ticket this way: {v}"),
            ("When do you like to buy the ticket?",),
            ("The ticket is bought the way you like: {v}.", "I'll handle the ticket as always: {v}.",),
            r"buy the ticket",
            noun="the ticket",
            heads=r"(?:one|two|three|four|five|six|seven|eight|nine|ten|ninety|forty-five|thirty|fifteen|twenty|"
                  r"\d+) days ahead|weeks ahead|a month ahead|a week ahead|at the last minute|on the day|whenever "
                  r"the price drops|two months out",
            shape="any",
        ),
    ),
    offers={
        "": ("There's a <direct train|good train> to {dest} {date_or} at {dep}, arriving {arr}[, {cabin}]. "
             "It has {seat_or} free.",
             "The {dep} to {dest} {date_or} looks best: {length}[, {cabin}][, with {extras}].",
             "I'd take the {dep} {date_or}, in {dest} by {arr}[; {cabin}, with {extras}]. There's {seat_or} "
             "left."),
        "recommend": ("The line to {dest} is the one for views: {length} along {view}, {dep} {date_or}[, "
                      "{cabin}][, with {extras}].",
                      "For scenery I'd take the {dep} to {dest}: {view} most of the way, {length}[, "
                      "{cabin}][, {seat}]."),
    },
    done={
        "": ("I've booked the {dep} train to {dest} {date_or}[, {cabin}][, {seat}].",
             "Your train is booked: {dest}, {date_or} at {dep}[, {cabin}][, with {extras}]. The reference "
             "is {code}."),
    },
    opening=("I need a train ticket", "I'd like to go by train"),
    bland=("Trains run regularly on most lines. You can buy tickets online or at the station.",
           "I found several trains. Prices depend on the time of day.",
           "Taking the train is a comfortable way to travel."),
    needs=("dest", "date"),
    items=train_ride,
)  # fmt: skip

BUSES = Domain(
    name="Buses",
    thing=("the bus", "the bus ticket"),
    kind="book",
    facets=(
        Facet(
            "company", r"company|operator|line\b",
            ("I usually go with {v}", "{v} would be my choice"),
            ("Is there a bus company you like?", "Which company do you usually travel with?"),
            ("It's with {v1}, your usual company.", "You've travelled with {v} before, so I started there."),
            r"company|operator",
            cue=r"compan(?:y|ies)|operators?|lines?", proper=True,
            lexicon=("Megabus", "FlixBus", "Flixbus", "National Express", "Greyhound", "Baz Bus", "Intercape",
                     "Vy",
                     "Nor-Way Bussekspress", "Regional operators", "Well-established national companies",
                     "local operators"),
        ),
        _SEAT,
        _HOURS,
        Facet(
            "pace", r"frequen|often",
            ("I make that trip {p}", "I go {p}"),
            ("How often do you make that trip?",),
            ("You travel {p}, so I checked the pass as well.",),
            r"how often",
            lexicon=("daily", "weekly", "monthly", "occasionally"),
        ),
    ),
    offers={
        "": ("There's a bus[ with {company1}] to {dest} {date_or} at {dep}, arriving at {arr}. It has "
             "{seat_or} free for ${price}.",
             "The {dep}[ with {company1}] {date_or} gets you to {dest} by {arr}; ${price}, {seat_or} still "
             "free.",
             "I'd take the {dep} bus to {dest}[ with {company1}], {date_or}: {length}, ${price}."),
    },
    done={
        "": ("I've booked the {dep} bus to {dest}[ with {company1}], {date_or}[, {seat}].",
             "Your ticket is booked: {dest}, {date_or} at {dep}[, {company1}][, {seat}]. The code is {code}."),
    },
    opening=("I need a bus ticket", "I'd like to go by bus"),
    bland=("Buses are an affordable way to travel. Timetables are posted online.",
           "There are several buses a day. You can buy a ticket from the driver.",
           "Most bus companies offer online booking."),
    needs=("dest", "date"),
    items=bus_ride,
)  # fmt: skip

DOMAINS = (FLIGHTS, TRAIN, BUSES)
