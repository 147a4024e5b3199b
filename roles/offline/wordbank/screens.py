"""Shows and films by genre, and invented cinemas."""

from __future__ import annotations

from collections.abc import Mapping

from ..draws import Draws

_SHOWS: dict[str, tuple[tuple[str, str], ...]] = {
    "drama": (
        ("Call My Agent", "sharp and warm about the film trade"),
        ("The Queen's Gambit", "seven tight episodes"),
        ("Halt and Catch Fire", "slow to start and then wonderful"),
        ("Babylon Berlin", "lavish and restless"),
    ),
    "comedy": (
        ("Derry Girls", "quick, loud and kind"),
        ("Schitt's Creek", "a family you grow to love"),
        ("Detectorists", "quiet fields and quiet jokes"),
        ("Paddington 2", "funny for all ages"),
    ),
    "fantasy": (
        ("The Dragon Prince", "better than it first looks"),
        ("Good Omens", "an angel and a demon who bicker"),
        ("Pan's Labyrinth", "dark and gorgeous"),
    ),
    "science-fiction": (
        ("Arrival", "patient and clever"),
        ("Severance", "an office you'll think about for days"),
        ("The Expanse", "politics in space done well"),
    ),
    "documentary": (
        ("My Octopus Teacher", "a friendship under water"),
        ("13th", "tightly argued"),
        ("Free Solo", "vertigo guaranteed"),
        ("The Rescue", "a cave, a flood and steady nerves"),
    ),
    "historical": (
        ("The Last Kingdom", "mud, oaths and England in the making"),
        ("Wolf Hall", "candlelight and danger"),
        ("1917", "one long breath of a film"),
        ("A Royal Affair", "court life and big ideas"),
    ),
    "biography": (
        ("Hidden Figures", "three minds that changed a space programme"),
        ("The Imitation Game", "tense and sad"),
        ("Lincoln", "all talk, in the best way"),
    ),
    "thriller": (
        ("Bodyguard", "six episodes at full tilt"),
        ("The Night Manager", "elegant and nasty"),
        ("Wind River", "cold and gripping"),
    ),
    "crime": (
        ("Broadchurch", "grief in a seaside town"),
        ("The Bridge", "where the Nordic wave began"),
        ("Mare of Easttown", "grim and humane"),
    ),
    "action": (("Edge of Tomorrow", "smart and quick"), ("Andor", "a rebellion built piece by piece")),
    "romance": (
        ("Past Lives", "small gestures and big feelings"),
        ("Normal People", "tender and true"),
        ("About Time", "sweet with a tear at the end"),
    ),
    "family": (
        ("The Mitchells vs. the Machines", "bright and fast"),
        ("Bluey", "as good for the grown-ups"),
        ("Song of the Sea", "drawn with great care"),
    ),
    "animation": (
        ("Spirited Away", "a bathhouse full of spirits"),
        ("Arcane", "striking from the first minute"),
        ("Wolfwalkers", "forests and freedom"),
    ),
    "horror": (("The Others", "candlelit and clever"), ("A Quiet Place", "nearly silent and very tense")),
    "musical": (("Sing Street", "teenagers and a garage band"), ("tick, tick... BOOM!", "full of drive")),
}
_NEAR = {
    "sci-fi": "science-fiction",
    "science fiction": "science-fiction",
    "historical fiction": "historical",
    "war": "historical",
    "history": "historical",
    "period drama": "historical",
    "mystery": "crime",
    "psychological": "thriller",
    "superhero": "action",
    "adventure": "action",
    "western": "action",
    "coming-of-age": "drama",
    "foreign film": "drama",
    "foreign cinema": "drama",
    "independent": "drama",
    "biographies": "biography",
    "biopics": "biography",
    "documentaries": "documentary",
    "dramas": "drama",
    "comedies": "comedy",
    "romantic comedy": "romance",
    "anime": "animation",
    "epic": "historical",
    "reality": "documentary",
    "cooking show": "documentary",
    "nature documentaries": "documentary",
    "children's film": "family",
    "thrillers": "thriller",
    "sports": "documentary",
}

# Invented, so that nobody looks for tonight's programme in vain.
_FILMS: dict[str, tuple[tuple[str, str], ...]] = {
    "drama": (
        ('"The Salt Road"', "a family drama that takes its time"),
        ('"Eleven Letters"', "quiet and well acted"),
        ('"What the River Kept"', "a homecoming that goes wrong"),
    ),
    "comedy": (('"Wrong Wedding"', "a comedy of errors with a good heart"), ('"Plan C"', "silly in the right way")),
    "historical": (('"The Cartographer"', "a map maker in a country at war"), ('"Winter Treaty"', "politics in furs")),
    "biography": (
        ('"The Lamplighter"', "the life of an inventor nobody remembers"),
        ('"Her Own Hand"', "a painter's story"),
    ),
    "romance": (('"Two Stops Early"', "a love story on a tram line"), ('"Letters from May"', "tender, a little sad")),
    "action": (('"Ridge Line"', "a chase through the mountains"), ('"Ironfall"', "big, loud and quick")),
    "thriller": (('"The Ninth Witness"', "hard to see through"), ('"Low Tide"', "a slow burn on the coast")),
    "science-fiction": (
        ('"Afterlight"', "a lonely station and one signal"),
        ('"The Long Orbit"', "thoughtful space drama"),
    ),
    "family": (('"The Kite Maker\'s Dog"', "fun for all ages"), ('"Moss and Button"', "sweet and short")),
    "documentary": (('"Tides"', "a year on a small harbour"), ('"The Last Printers"', "craft and stubbornness")),
    "horror": (('"The Attic Choir"', "properly creepy"), ('"Hollow Lane"', "more dread than blood")),
}
_CINEMAS = (
    "the Orpheum",
    "the Lantern",
    "the Corner House",
    "the Astoria",
    "the Roxy",
    "the Plaza",
    "the Scala",
    "the Regent",
)


def _genre_keys(values: Mapping[str, list[str]], bank: Mapping[str, object]) -> list[str]:
    near = (_NEAR.get(genre.lower(), genre.lower()) for genre in values.get("genre") or [])
    return [genre for genre in near if genre in bank]


def _two(
    bank: Mapping[str, tuple[tuple[str, str], ...]], genres: list[str], named: str, draws: Draws
) -> list[tuple[str, str]]:
    first, second = genres[0], genres[1 if len(genres) > 1 else 0]
    pool = [pick for pick in draws.fork(first).shuffled(bank[first]) if pick[0].lower() not in named]
    pool += [pick for pick in draws.fork(second).shuffled(bank[second]) if pick[0].lower() not in named]
    unique = list(dict.fromkeys(pool)) or list(bank["drama"])
    other = next((pick for pick in unique[1:] if pick in bank[second]), unique[-1])
    return [unique[0], other]


def show_picks(values: Mapping[str, list[str]], _slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose two shows or films to watch at home, of the known genres if any, none that the viewer named."""
    genres = _genre_keys(values, _SHOWS) or draws.shuffled(["drama", "comedy", "documentary"])
    one, two = _two(_SHOWS, genres, " ".join(values.get("favorite", [])).lower(), draws)
    return {"pick1": one[0], "why1": one[1], "pick2": two[0], "why2": two[1]}


def film_picks(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose two invented films, a cinema, a time that fits the viewer's habits, and seats."""
    genres = _genre_keys(values, _FILMS) or draws.shuffled(["drama", "comedy", "thriller"])
    one, two = _two(_FILMS, genres, "", draws)
    habits = " ".join(values.get("hours", [])).lower()
    stream = draws.fork("showtime")
    early = "matinee" in habits or "afternoon" in habits or "midday" in habits
    hour = stream.pick(["2:15 PM", "3:00 PM", "3:40 PM"] if early else ["6:45 PM", "7:30 PM", "8:10 PM"])
    seats = slots.get("seat") or stream.fork("seat").pick(["two seats together", "seats with a good view"])
    return {
        "film1": one[0],
        "why1": one[1],
        "film2": two[0],
        "why2": two[1],
        "venue": stream.pick(_CINEMAS),
        "hour": hour,
        "seat_free": seats,
    }
