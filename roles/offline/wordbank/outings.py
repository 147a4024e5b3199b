"""Invented restaurants, events and fixtures."""

from __future__ import annotations

from collections.abc import Mapping

from ..draws import Draws
from ..prose import capitalised

_TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Italian": (("Trattoria Lume", "Osteria Verde", "Da Nonna Pia"), ("hand-cut pasta", "risotto", "saffron gnocchi")),
    "Chinese": (("Jade Lantern", "Golden Sparrow", "Plum Garden"), ("dumplings", "mapo tofu", "hand-pulled noodles")),
    "Mexican": (("Casa Maíz", "La Paloma Azul", "Tres Agaves"), ("corn tacos", "mole", "charred salsa")),
    "British": (("The Copper Hen", "Mason's Table", "The Old Ferryman"), ("pies", "Sunday roasts", "smoked haddock")),
    "French": (("Chez Margot", "Le Petit Quai", "Bistro Lavande"), ("onion soup", "duck confit", "tarte fine")),
    "American": (
        ("Union Smokehouse", "The Maple Counter", "Blue Plate"),
        ("slow-smoked brisket", "cornbread", "buttermilk chicken"),
    ),
    "Japanese": (("Hoshi", "Kawa Kitchen", "Little Kyoto"), ("sushi", "ramen", "grilled aubergine")),
    "Spanish": (("Casa Romero", "El Farol", "Bodega Nueve"), ("tapas", "paella", "grilled padrón peppers")),
    "Korean": (("Seoul Table", "Han River House", "Dubu"), ("bibimbap", "kimchi stew", "table grills")),
    "Thai": (("Siam Orchid", "Baan Suan", "Lemongrass Lane"), ("green curry", "som tam", "pad see ew")),
    "Indian": (("Saffron Court", "The Tamarind Tree", "Dhaba 42"), ("dal makhani", "dosas", "tandoori dishes")),
    "Turkish": (("Anatolia Grill", "Sofra", "Bosphorus Table"), ("meze", "lahmacun", "lamb shish")),
    "African": (("Baobab House", "Karibu Kitchen", "Savanna Table"), ("jollof rice", "slow braai", "peanut stew")),
    "Mediterranean": (("Olive & Thyme", "Casa Marina", "The Fig Tree"), ("grilled vegetables", "sea bass", "mezze")),
    "Vietnamese": (("Saigon Corner", "Pho Mai", "Lotus Lane"), ("pho", "summer rolls", "bánh xèo")),
    "Lebanese": (("Cedar House", "Beirut Terrace", "Zaatar"), ("mezze", "fattoush", "grilled halloumi")),
    "Greek": (("Meltemi", "Taverna Elia", "Little Santorini"), ("moussaka", "grilled octopus", "spanakopita")),
    "Caribbean": (("Island Smoke", "Calypso Kitchen"), ("jerk chicken", "callaloo")),
    "Peruvian": (("Lima Alta", "Casa Cusco"), ("ceviche", "causa")),
    "Moroccan": (("Dar Zitoun", "Medina Table"), ("tagines", "couscous")),
    "Pakistani": (("Lahore Gardens", "Karahi House"), ("nihari", "karahi dishes")),
    "Russian": (("Samovar", "The Birch House"), ("pelmeni", "beetroot soup")),
    "Cuban": (("Havana Corner", "La Guarida Vieja"), ("ropa vieja", "black beans")),
    "Bangladeshi": (("Padma River", "Dhaka Lane"), ("bhuna dishes", "fish curry")),
    "Ethiopian": (("Addis Table", "Lalibela"), ("injera platters", "lentil wot")),
    "Portuguese": (("Casa do Mar", "Tasca Nova"), ("grilled sardines", "bacalhau")),
    "Nordic": (("Havn", "Birk & Salt"), ("cured trout", "rye bread and herring")),
}
_NEAR_TABLES = {
    "Norwegian": "Nordic",
    "Scandinavian": "Nordic",
    "Swedish": "Nordic",
    "Danish": "Nordic",
    "Seafood": "Portuguese",
    "Middle Eastern": "Lebanese",
}
CUISINES = (
    *_TABLES,
    *_NEAR_TABLES,
    "German",
    "Polish",
    "Brazilian",
    "Canadian",
    "Malaysian",
    "Filipino",
    "Indonesian",
)
_ANY_TABLE = (
    ("The Green Door", "Juniper", "The Long Table", "Number Nine"),
    ("seasonal plates", "fresh fish", "wood-fired vegetables"),
)
_AREAS = (
    "near the market",
    "a short walk from the centre",
    "close to the park",
    "on a quiet side street",
    "by the old post office",
    "around the corner from the station",
)
_ROOMS = ("friendly service", "a short menu", "good reviews", "big windows")


def restaurant_picks(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose an invented restaurant of the first known cuisine, with a dish, an area and an hour."""
    wanted = [
        cuisine
        for cuisine in values.get("cuisine") or []
        if capitalised(cuisine) in _TABLES or capitalised(cuisine) in _NEAR_TABLES
    ]
    cuisine = capitalised(wanted[0]) if wanted else (values.get("cuisine") or [""])[0]
    names, dishes = _TABLES.get(_NEAR_TABLES.get(cuisine, cuisine), _ANY_TABLE)
    all_dishes = dishes
    diet = " ".join(values.get("diet", [])).lower()
    meaty = (
        "duck",
        "brisket",
        "lamb",
        "chicken",
        "haddock",
        "octopus",
        "bass",
        "trout",
        "sardines",
        "fish",
        "bacalhau",
        "braai",
        "ropa",
        "nihari",
        "herring",
        "pies",
        "roasts",
    )
    if "veg" in diet:
        dishes = tuple(dish for dish in dishes if not any(word in dish for word in meaty)) or ("vegetable plates",)
    stream = draws.fork("table", cuisine)
    order = stream.fork("dish").shuffled(all_dishes)
    return {
        "place": stream.pick(names),
        "dish": next((dish for dish in order if dish in dishes), dishes[0]),
        "area": stream.pick(_AREAS),
        "cuisine_kind": f"a {cuisine}"
        if cuisine
        else stream.fork("small").pick(["a small", "a popular", "a well-kept"]),
        "room": slots.get("ambiance") or stream.fork("ambiance").pick(_ROOMS),
        "hour": stream.pick(["6:45 PM", "7:00 PM", "7:30 PM", "8:00 PM"]),
    }


_EVENTS: dict[str, tuple[tuple[str, str], ...]] = {
    "concerts": (
        ("the Lantern Sessions", "a small concert with three local acts"),
        ("Harbour Sounds", "an evening concert outdoors"),
    ),
    "festivals": (
        ("the Riverside Festival", "a day of music, food and stalls"),
        ("the Lights Festival", "a festival after dark"),
    ),
    "cultural celebrations": (
        ("the Heritage Weekend", "dance, food and costume from many places"),
        ("the Harvest Fair", "a cultural celebration with parades"),
    ),
    "art exhibitions": (
        ('"Slow Colour"', "an art exhibition of large abstract works"),
        ('"The Working City"', "photographs and prints of the town"),
    ),
    "theater": (
        ('"The Glass Orchard"', "a new play at the theater by the canal"),
        ('"Twelve Chairs"', "a farce with a fine cast"),
    ),
    "musical": (('"Paper Moons"', "a new musical with a live band"), ('"The Station Master"', "an old-style musical")),
    "comedy shows": (
        ("Friday Mic", "a comedy show with six short acts"),
        ("The Laughing Stock", "a late comedy night"),
    ),
    "book readings": (
        ("Page One", "a book reading with a debut novelist"),
        ("Words at Six", "readings and a glass of wine"),
    ),
    "workshops": (("Clay & Coffee", "a pottery workshop for beginners"), ("Kitchen Garden Day", "a hands-on workshop")),
    "lectures": (
        ('"Rivers of Empire"', "an evening lecture on trade and power"),
        ("Open Lab Night", "short lectures and questions"),
    ),
    "film screenings": (
        ("Cinema under Stars", "an open-air film screening"),
        ("the Silent Night", "a silent film with live piano"),
    ),
    "sports": (
        ("the City Derby", "a local match with a loud crowd"),
        ("the Night Run", "five kilometres through town"),
    ),
    "food and drink tastings": (
        ("Cheese & Stories", "a tasting with the makers"),
        ("The Long Pour", "a wine tasting in a cellar"),
    ),
    "community fairs": (
        ("the Old Town Fair", "stalls, music and cake"),
        ("the Makers' Market", "a community fair with crafts"),
    ),
    "historical reenactments": (
        ("the Siege Days", "a reenactment with camps and drills"),
        ("Roman Sunday", "history you can touch"),
    ),
    "dance performances": (
        ('"Weightless"', "a dance performance in an old factory"),
        ('"Red Thread"', "contemporary dance, one hour"),
    ),
    "opera": (('"La Bohème" at the Old Opera', "a classic staging"), ("Opera in the Park", "arias and picnic rugs")),
    "gaming conventions": (
        ("PlayFair", "a gaming convention with a retro hall"),
        ("Dice & Pixels", "board games and new releases"),
    ),
    "charity events": (
        ("the Winter Gala", "a charity evening with an auction"),
        ("the Bridge Walk", "a charity walk along the water"),
    ),
}
EVENT_KINDS = tuple(_EVENTS)


def _events_of(kind: str) -> tuple[tuple[str, str], ...]:
    stem = kind.lower().rstrip("s")[:7]
    return next((bank for name, bank in _EVENTS.items() if stem in name or name.rstrip("s") in kind.lower()), ())


def event_picks(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose two invented events of the known kinds and a day."""
    kinds = [kind for kind in values.get("kind") or [] if _events_of(kind)]
    kinds = kinds or draws.fork("kind").shuffled(["concerts", "festivals", "art exhibitions", "workshops"])
    one = draws.fork("event", kinds[0]).pick(_events_of(kinds[0]))
    second = kinds[1 if len(kinds) > 1 else 0]
    two = next((event for event in draws.fork("event", second, 2).shuffled(_events_of(second)) if event != one), one)
    when = slots.get("date") or draws.fork("when").pick(["this Saturday", "on Sunday afternoon", "on Friday evening"])
    return {"event1": one[0], "about1": one[1], "event2": two[0], "about2": two[1], "when": when}


SPORTS_KINDS = (
    "football",
    "basketball",
    "tennis",
    "baseball",
    "badminton",
    "swimming",
    "soccer",
    "ice hockey",
    "hockey",
    "golf",
    "cricket",
    "rugby",
    "volleyball",
    "motorsports",
    "boxing",
    "gymnastics",
    "cycling",
    "athletics",
    "skiing",
    "cross-country skiing",
    "handball",
    "snooker",
    "darts",
    "curling",
    "biathlon",
    "eSports",
    "surfing",
    "climbing",
    "running",
    "table tennis",
    "Formula 1",
)


def sport_picks(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Invent a result, a fixture and two figures for the known team or sport."""
    sports = values.get("sport") or []
    team = slots.get("team", "").split(" and ")[0] or (f"the {sports[0]} matches" if sports else "the local side")
    stream = draws.fork("sport", team)
    day, hour = (
        stream.pick(["Saturday", "Sunday", "Wednesday"]),
        stream.pick(["3:00 PM", "5:30 PM", "7:45 PM"]),
    )
    return {
        "exercise_or": slots.get("exercise") or "a light session",
        "team": team,
        "team1": team,
        "team_cap": capitalised(team),
        "result": stream.pick(["a narrow win last time out", "a draw in the last round", "two wins in a row"]),
        "fixture": f"on {day} at {hour}",
        "ground": stream.pick(["Riverside Ground", "Old Park Stadium", "Meadow Lane Arena"]),
        "inn": stream.pick(["the Gatehouse Inn", "the Harbour Lodge", "Hotel Linden"]),
        "price": str(stream.pick([18, 24, 32, 45])),
        "stat": stream.pick(
            ["seven wins in the last ten meetings", "their best start in five years", "a record run at home"]
        ),
        "stat2": stream.pick(
            ["the defence has improved most", "away results still lag behind", "younger players score more"]
        ),
    }
