"""Hotels: a roof for the night."""

from __future__ import annotations

from ..model import Domain, Facet
from ..wordbank.routes import hotel

HOTELS = Domain(
    name="Hotels",
    thing=("the hotel", "a place to stay", "the room"),
    kind="book",
    facets=(
        Facet(
            "chain", r"chain|brand|hotel type",
            ("I usually stay at {v}", "{v} would be my first choice", "I <like|trust> {v}"),
            ("Is there a hotel chain you like?", "Any chain you prefer, or rather something small?"),
            ("You've been happy with {v}, so I looked there first.", "It's from your usual list, {v}."),
            r"chain",
            say={"boutique": "boutique hotels", "budget": "budget hotels"},
            lexicon=("Marriott", "Hilton", "IHG", "Accor", "Best Western", "Hyatt", "boutique", "Radisson",
                     "Holiday Inn",
                     "Intercontinental", "InterContinental", "Scandic", "Thon Hotels", "Ibis", "Premier Inn"),
            proper=True,
        ),
        Facet(
            "amenities", r"amenit|facilit|feature|needs",
            ("I'd like {p}", "what matters to me is {p}", "it should have {p}"),
            ("What should the hotel have?", "Which amenities matter to you?"),
            ("It has {p}, which you usually ask for.", "There's {p} too, as you like it."),
            r"amenit|hotel have|facilit",
            say={"pool": "a pool", "gym": "a gym", "spa": "a spa", "wifi": "WiFi",
                 "24-hour front desk": "a 24-hour front desk",
                 "bar/lounge": "a bar/lounge", "on-site restaurant": "an on-site restaurant",
                 "airport shuttle": "an airport shuttle",
                 "business center": "a business center", "kitchenette": "a kitchenette",
                 "balcony": "a balcony",
                 "hot tub": "a hot tub", "sauna": "a sauna", "mini-bar": "a mini-bar",
                 "gift shop": "a gift shop"},
            lexicon=("free WiFi", "WiFi", "Wi-Fi", "pool", "gym", "spa", "free breakfast",
                     "24-hour front desk", "room service",
                     "pet-friendly", "laundry", "airport shuttle", "free parking", "on-site restaurant",
                     "bar/lounge",
                     "kitchenette", "balcony", "sauna", "non-smoking rooms", "complimentary breakfast",
                     "parking"),
            heads=r"(?:\w+ )?(?:curtains|checkout|dryer|shower|\d+ cm doors|kettle|parking|ceiling fan|"
                  r"hot-water bottle|"
                  r"dog welcome|bathtub|bath|shades|early coffee|breakfast before \w+|prayer space|lift|desk|"
                  r"corridor)",
            noun="the room",
            shape="thing",
        ),
        Facet(
            "area", r"location|area|neighbo|where|town",
            ("I'd like to be {p}", "it should be {p}", "{p} would be ideal"),
            ("Where should it be, roughly?", "Which part of town would you like?"),
            ("It's {p}, where you like to stay.", "You like to be {p}, so that's where I looked."),
            r"part of town|where should|which area|location",
            frame="in a place with {v}",
            say={
                "city center": "in the city center", "downtown": "downtown",
                "beachfront": "on the beachfront",
                "historic district": "in the historic district",
                "business district": "in the business district",
                "countryside": "in the countryside", "near tourist attractions": "near tourist attractions",
                "near cultural landmarks": "near cultural landmarks",
                "near public transport": "near public transport",
                "near universities or colleges": "near universities or colleges", "quiet residential area":
                "in a quiet residential area", "suburban area": "in a suburban area",
                "mountain view": "somewhere with a mountain view",
                "lakefront": "on the lakefront", "coastal area": "in a coastal area",
                "airport proximity": "in airport proximity",
                "near shopping districts": "near shopping districts",
                "near hiking trails": "near hiking trails",
                "near local markets": "near local markets", "along a river": "along a river",
                "near nature": "near nature",
                "tourist attractions": "near tourist attractions",
                "cultural landmarks": "near cultural landmarks", "public transport":
                "near public transport", "universities or colleges": "near universities or colleges",
                "hiking trails": "near hiking trails",
                "city centre": "in the city centre", "old town": "in the old town",
                "near the station": "near the station", "near the beach": "near the beach",
            },
            lexicon=("city centers", "city center", "city centre", "downtown", "beachfront",
                     "historic district", "tourist attractions",
                     "cultural landmarks", "public transport", "universities or colleges",
                     "business district", "countryside",
                     "old town", "hiking trails"),
            heads=r"(?:near|by|beside|at|on|outside) the \w+(?: station)?|old town|river side|edge of town|"
                  r"trailhead or airport|within earshot of water|marsh edge",
            noun="the place",
            shape="place",
        ),
        Facet(
            "stars", r"star|rating|standard",
            ("{p} would be right", "I'm looking at {p}"),
            ("How many stars should it have?",),
            ("It's in your usual range, {p}.", "I kept to {p}, as you like."),
            r"stars?|standard",
            frame="{v} hotels",
            say={"3 star": "3 star hotels", "4 star": "4 star hotels", "5 star": "5 star hotels"},
            lexicon=("3-star", "4-star", "5-star", "3 star", "4 star", "5 star", "4 or 5-star"),
        ),
        Facet(
            "room", r"room|bed",
            ("I'd like {p}", "{p} would be best", "{p}, please"),
            ("What kind of room would you like?", "Which room type should I look for?"),
            ("It's {p}, your usual choice.", "I asked for {p}, as you usually take."),
            r"kind of room|room type|which room|single or",
            frame="a {v} room",
            say={"suite": "a suite", "apartment": "an apartment", "studio": "a studio"},
            lexicon=("single", "double", "deluxe", "suites", "suite", "twin", "family room"),
        ),
        Facet(
            "style", r"style|lodging",
            ("I'm after something like {p}", "{p} is what I like to stay in"),
            ("What sort of house do you like?",),
            ("It's the kind of place you like: {v}.", "I looked for {p}, as you like it."),
            r"sort of house",
            noun="the place",
            heads=r"guest ?house|hostel|mountain hut[\w ]*|homestay[\w ]*|design hotel|apartment hotel|farmhouse|"
                  r"ryokan|lodge[\w ]*|pousada|cabin|capsule",
            shape="thing",
        ),
        Facet(
            "price", r"price|budget|cost",
            ("I can spend {v}", "{v} is my limit"),
            ("What may a night cost?",),
            ("It stays within {v}.", "I kept to {v}, your usual limit.",),
            r"cost|budget|spend",
            noun="the price",
            heads=r"\d[\d,.]* \w+ a night",
            shape="any",
        ),
    ),
    offers={
        "": ("{hotel}[ in {dest}] <looks right|would be my pick>: {room_or}[, {area}], for ${price} a "
             "night[, with {amenities}].",
             "I found {room_or} at {hotel}[ in {dest}], ${price} a night[, {area}][. It has {amenities}].",
             "How about {hotel}[ in {dest}]? It's {distance}, and {room_or} is ${price} a night[, including "
             "{amenities}]."),
    },
    done={
        "": ("I've booked {room_or} at {hotel}[ in {dest}][, {date}], ${price} a night. You can cancel "
             "until two days before.",
             "Your room is booked: {hotel}[, {dest}][, {date}], {room_or}. The reference is {code}."),
    },
    opening=("I need a hotel", "I'm looking for a place to stay"),
    bland=("There are hotels for every budget. Reviews can help you choose one.",
           "I found some hotels. Prices start at a range of levels.",
           "Many travellers book their hotel online these days."),
    needs=("dest", "date"),
    items=hotel,
)  # fmt: skip

DOMAINS = (HOTELS,)
