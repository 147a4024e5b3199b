"""Rental Cars and Travel: getting about once away."""

from __future__ import annotations

from ..model import Domain, Facet
from ..wordbank.routes import car, trip

RENTAL_CARS = Domain(
    name="Rental Cars",
    thing=("the rental car", "a car", "the car"),
    kind="recommend",
    facets=(
        Facet(
            "type", r"(?<!fuel )type|size|class",
            ("I'd like {p}", "{p} would be right", "I'm thinking of {p}"),
            ("What size of car do you need?", "What kind of car are you after?"),
            ("It's {p}, as you usually take.", "I looked for {p}, your usual choice."),
            r"size|kind of car|type of car",
            frame="a {v} car",
            say={"suv": "an SUV", "minivan": "a minivan", "convertible": "a convertible", "van": "a van"},
            lexicon=("SUVs", "SUV", "economy", "intermediate", "premium", "minivan", "convertible", "luxury",
                     "compact"),
            heads=r"four-wheel drive|ramp van|estate car|kei car|small hatchback|compact SUV|eight-seater|pickup "
                  r"truck|motorbike|eight-seat van|low doors",
            noun="the car",
            shape="thing",
        ),
        Facet(
            "company", r"compan|agency|provider",
            ("I usually rent from {v}", "I've been happy with {v}"),
            ("Which rental company do you prefer?",),
            ("It's from {v1}, where you usually rent.", "I asked {v} first, since you've rented there."),
            r"rental company|which company",
            lexicon=("Enterprise", "Hertz", "Avis", "Europcar", "Sixt", "Budget", "Alamo", "Thrifty",
                     "Zipcar", "Green Motion"),
            proper=True,
        ),
        Facet(
            "brand", r"brand|make",
            ("I like driving {p}", "{p} would be nice", "I'm used to {p}"),
            ("Any make you like?",),
            ("You like {p}, and they have one.",),
            r"\bmake\b|brand",
            frame="a {v}",
            lexicon=("BMW", "Audi", "Honda", "Lexus", "Kia", "Ford", "Jaguar", "Tesla", "Toyota",
                     "Volkswagen", "Mercedes-Benz",
                     "Porsche", "Nissan", "Chevrolet", "Subaru", "Hyundai", "Mazda", "Land Rover", "Volvo",
                     "Mini", "Peugeot",
                     "Renault", "Opel", "Skoda", "Fiat"),
            proper=True,
        ),
        Facet(
            "fuel", r"fuel|engine|power",
            ("I'd like {p}", "it should be {p}"),
            ("Petrol, diesel or electric?",),
            ("It's {p}, which you prefer.",),
            r"petrol|diesel|fuel|electric",
            frame="{v}",
            say={"gasoline": "a gasoline engine", "petrol": "a petrol engine", "diesel": "a diesel",
                 "electric": "an electric car",
                 "hybrid": "a hybrid"},
            lexicon=("gasoline", "petrol", "diesel", "electric", "hybrid"),
        ),
        Facet(
            "length", r"duration|length|days",
            ("I'd need it for {p}", "{p} should do"),
            ("How long do you need it?",),
            ("I've quoted {p}, as you usually rent.",),
            r"how long",
            say={"1 month+": "more than a month (1 month+)"},
            lexicon=("1-2 days", "3-7 days", "1-2 weeks", "3-4 weeks"),
        ),
        Facet(
            "extras", r"feature|extra|additional",
            ("I'd need {p}", "{p} would help", "it should have {p}"),
            ("Any extras, such as navigation or a child seat?",),
            ("It comes with {p}, as you like.", "I've added {p}, which you always ask for."),
            r"extras|child seat|navigation",
            say={"gps": "GPS", "sunroof": "a sunroof", "child seat": "a child seat", "ski rack": "a ski rack",
                 "luggage rack": "a luggage rack", "additional driver": "an additional driver",
                 "roof box": "a roof box"},
            lexicon=("GPS", "ski rack", "additional driver", "child seat", "navigation", "sunroof",
                     "all-wheel drive",
                     "roadside assistance", "luggage rack"),
            heads=r"roof tent|rooftop tent|snow chains|panniers|spare tube|crash guard|tie-down straps|winter tyres|"
                  r"winter tires|roof box|roof rack|dog blanket|child seat|booster seats|tow bar|satellite radio|"
                  r"bicycle rack|talking navigation|aux cable",
            noun="the extras",
            shape="thing",
        ),
        Facet(
            "gearbox", r"gear",
            ("the gearbox should be {v}", "about the gearbox: {v}, please"),
            ("Manual or automatic?",),
            ("It's {v}, as you drive.", "The gearbox is {v}, as it should be.",),
            r"manual or automatic",
            noun="the gearbox",
            lexicon=("automatic with hand controls", "manual", "automatic",),
            shape="any",
        ),
    ),
    offers={
        "": ("There's {car}[ from {company1}] for ${price} a day[, with {extras}]. Pick-up is {pickup}, and "
             "{car2} would be the "
             "alternative.",
             "I'd take {car}[ from {company1}], ${price} a day[, {fuel}][, with {extras}]; {car2} is a "
             "little cheaper.",
             "<My suggestion is|How about> {car}[ from {company1}], ${price} a day, picked up {pickup}[? It "
             "comes with {extras}].",),
    },
    done={
        "": ("I've reserved {car}[ from {company1}] for you[, {date}], ${price} a day[, with {extras}]. "
             "Pick-up is {pickup}.",
             "Your car is reserved: {car}[, {company1}][, {date}], pick-up {pickup}."),
    },
    opening=("I need a rental car", "I'd like to rent a car"),
    bland=("Rental cars come in many sizes. It depends on your needs.",
           "I found some rental cars. A mid-size car is a common choice.",
           "You can compare prices of different rental companies online."),
    needs=("date",),
    items=car,
)  # fmt: skip

TRAVEL = Domain(
    name="Travel",
    thing=("things to see", "the sights", "the trip itself"),
    kind="plan",
    facets=(
        Facet(
            "list", r"places on|list|dream",
            ("{v1} has been on my list for ages", "I'd love to see {v1}", "I keep dreaming of {v1}"),
            ("Which places are on your list?",),
            ("{v1} has been on your mind, I remember.", "I thought of {v} right away, from your list.",),
            r"on your list|which place",
            noun="the place",
            proper=True,
        ),
        Facet(
            "kind", r"destination types?|type|kind|interest",
            ("I'm after {p}", "I <like|enjoy> {p}", "I can never resist {p}"),
            ("Sea, city or mountains?", "What kind of place do you enjoy?"),
            ("You <like|enjoy> {p}, so I built it around that.", "I looked for {p}, your kind of trip."),
            r"kind of place|sea, city|type of (?:place|trip)",
            frame="{v} places",
            say={"food and wine": "food and wine", "wildlife": "wildlife", "road trip": "a road trip",
                 "cruise": "a cruise",
                 "photography": "photography", "countryside": "the countryside",
                 "national park": "a national park",
                 "spa and wellness": "spa and wellness", "beach": "the beach", "mountain": "mountain places",
                 "city": "city trips", "adventure": "adventure", "ski resort": "a ski resort",
                 "heritage": "heritage sites"},
            lexicon=("beach", "beaches", "mountains", "mountain", "cultural", "historical", "rural",
                     "adventure", "wildlife",
                     "island", "islands", "desert", "food and wine", "road trips", "road trip", "scenic",
                     "countryside",
                     "heritage", "cruise", "photography", "national parks", "national park", "city breaks",
                     "coastal",
                     "hiking", "museums"),
            heads=r"(?:\w+ )?(?:passes|deserts|cities(?: with \w+)?|valleys|waterfalls|backwaters|roads|coasts?|"
                  r"islands(?: with \w+)?|towns|baths|springs|gardens|hotspots|paths|lakes|mountains|beaches|"
                  r"northern lights|national parks)",
            noun="the kind of place",
            shape="any",
        ),
        Facet(
            "length", r"duration|length",
            ("I'd go for {p}", "{p} would be right"),
            ("How long would you like to be away?",),
            ("I planned for {p}, your usual length.",),
            r"how long",
            say={"1 month+": "a month or more (1 month+)"},
            lexicon=("1-2 days", "3-7 days", "1-2 weeks", "3-4 weeks", "1 month+", "long weekend"),
            heads=r"(?:one|two|three|four|five|six|seven|eight|nine|ten|ninety|forty-five|thirty|fifteen|twenty|"
                  r"\d+) (?:or \w+ )?(?:nights|days|weeks)(?: (?:off in a row|at most|after tax season|at "
                  r"Christmas))?|a week and a half|a weekend at most|long weekend",
            noun="the length",
            shape="any",
        ),
        Facet(
            "group", r"group|company|party|companion",
            ("I travel {p}", "we'd be going {p}"),
            ("Who's coming along?", "Are you travelling alone or with others?"),
            ("It works well {p}, the way you like to travel.", "I planned it {p}, as usual."),
            r"coming along|alone|who's|with others",
            say={"solo": "solo", "couple": "as a couple", "family": "with the family",
                 "large group": "in a large group",
                 "friends": "with friends", "small group": "in a small group"},
            lexicon=("solo", "couple", "family", "large group", "with friends"),
            noun="the company",
            shape="with",
        ),
        Facet(
            "favorite", r"frequent|favou?rite",
            ("I've been to {v} often", "I always love going back to {v}"),
            ("Which places have you loved before?",),
            ("If you love {v}, this has some of that.", "It has a touch of {v1}, where you like to go."),
            r"loved before|which places",
            cue=r"destinations?|trips? (?:to|in)|visit(?:s|ed|ing)?|to|in", proper=True,
        ),
        Facet(
            "season", r"season|month|when",
            ("I like to go in {v}", "{v} would suit me"),
            ("When in the year would you like to go?",),
            ("It's lovely in {v}, when you like to travel.",),
            r"when in the year|season",
            lexicon=("spring", "summer", "autumn", "fall", "winter"),
        ),
    ),
    offers={
        "": ("For {dest} I'd plan {sight1} on the first morning, then {sight2}[, and leave the last day for "
             "{kind}].",
             "Here's a short plan for {dest}: {sight1} first, {sight2} after lunch, and {sight3} as the "
             "quiet tip.",
             "In {dest} I'd start with {sight1} and go on to {sight2}; {sight3} is the part most visitors "
             "miss."),
    },
    done={
        "": ("I've saved the plan for {dest}[, {date}]: {sight1}, {sight2} and {sight3}.",
             "Your plan is saved: {dest}[, {date}], with {sight1}, {sight2} and {sight3}."),
    },
    opening=("I'd like to plan a trip", "I'm thinking about a trip"),
    bland=("There are many beautiful places to visit. Travel guides can give you ideas.",
           "A city break is always nice. You could look for popular attractions.",
           "Travelling is a great way to relax and see the world."),
    needs=("dest",),
    items=trip,
)  # fmt: skip

DOMAINS = (RENTAL_CARS, TRAVEL)
