"""Albums and songs by genre, with a few words on each."""

from __future__ import annotations

from collections.abc import Mapping

from ..draws import Draws

_MUSIC: dict[str, tuple[tuple[str, str], ...]] = {
    "folk": (
        ('Laura Marling\'s "Song for Our Daughter"', "close and unhurried"),
        ('Nick Drake\'s "Pink Moon"', "bare and lovely"),
        ('The Staves\' "Good Woman"', "three voices that melt together"),
    ),
    "acoustic": (
        ('José González\'s "Veneer"', "one guitar and a hush"),
        ("Tracy Chapman's first album", "still strong"),
    ),
    "world": (
        ('Ali Farka Touré\'s "Savane"', "desert blues from Mali"),
        ("Buena Vista Social Club", "Havana in the late afternoon"),
        ('Cesária Évora\'s "Miss Perfumado"', "soft, salty and sad"),
    ),
    "pop": (
        ('Robyn\'s "Body Talk"', "bright with a broken heart"),
        ('Caroline Polachek\'s "Pang"', "strange and catchy"),
        ('Christine and the Queens\' "Chris"', "tight and danceable"),
    ),
    "rock": (
        ('The War on Drugs\' "Lost in the Dream"', "made for long roads"),
        ('PJ Harvey\'s "Stories from the City"', "big and direct"),
        ('Fontaines D.C.\'s "Dogrel"', "raw, with great words"),
    ),
    "hip-hop": (('Little Simz\'s "Grey Area"', "sharp and short"), ('Noname\'s "Room 25"', "jazzy and quick")),
    "jazz": (
        ('Bill Evans\' "Waltz for Debby"', "a small club, late"),
        ('Kamasi Washington\'s "The Epic"', "huge and generous"),
        ('Esbjörn Svensson Trio\'s "Leucocyte"', "restless and modern"),
    ),
    "blues": (
        ('Gary Clark Jr.\'s "Blak and Blu"', "old roots and new amps"),
        ("Rory Gallagher's \"Irish Tour '74\"", "live and loud"),
        ('Bonnie Raitt\'s "Nick of Time"', "easy and wise"),
    ),
    "country": (
        ('Kacey Musgraves\' "Golden Hour"', "warm as the title says"),
        ("Sturgill Simpson's \"A Sailor's Guide\"", "country with brass"),
    ),
    "classical": (
        ("Víkingur Ólafsson's Bach recordings", "clear as glass"),
        ("Elgar's Cello Concerto with du Pré", "all autumn"),
        ("Ravel's string quartet", "full of colour"),
    ),
    "electronic": (
        ('Jon Hopkins\' "Immunity"', "pulse and texture"),
        ('Caribou\'s "Our Love"', "gentle on the dance floor"),
    ),
    "ambient": (
        ('Brian Eno\'s "Music for Airports"', "air and space"),
        ('Nils Frahm\'s "Spaces"', "piano in the dark"),
    ),
    "metal": (('Mastodon\'s "Crack the Skye"', "heavy and strange"), ('Opeth\'s "Blackwater Park"', "long arcs")),
    "punk": (
        ('IDLES\' "Joy as an Act of Resistance"', "angry and kind"),
        ('Wire\'s "Pink Flag"', "twenty-one short shocks"),
    ),
    "soul": (
        ('Michael Kiwanuka\'s "Kiwanuka"', "grand and warm"),
        ('Sharon Jones\' "100 Days, 100 Nights"', "horns and heart"),
    ),
    "reggae": (
        ('The Congos\' "Heart of the Congos"', "deep and sweet"),
        ('Chronixx\'s "Chronology"', "sunny and modern"),
    ),
    "latin": (
        ('Natalia Lafourcade\'s "Hasta la Raíz"', "tender and tuneful"),
        ('Café Tacvba\'s "Re"', "everything at once"),
    ),
    "k-pop": (('IU\'s "Palette"', "light and clever"), ('Red Velvet\'s "Perfect Velvet"', "glossy")),
    "dance": (
        ("Jessie Ware's \"What's Your Pleasure?\"", "disco at midnight"),
        ('Róisín Murphy\'s "Róisín Machine"', "eight-minute grooves"),
    ),
    "instrumental": (
        ('Khruangbin\'s "Con Todo el Mundo"', "laid-back guitar and bass"),
        ("Penguin Cafe Orchestra", "odd and charming"),
    ),
}
_NEAR = {
    "r&b": "soul",
    "funk": "dance",
    "disco": "dance",
    "house": "electronic",
    "techno": "electronic",
    "hard rock": "rock",
    "classic rock": "rock",
    "world music": "world",
    "indie": "rock",
    "gospel": "soul",
    "j-pop": "k-pop",
    "african": "world",
}

MUSIC_GENRES = tuple(_MUSIC)


def music_picks(values: Mapping[str, list[str]], _slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose two records of the known genres, or of any when none is known."""
    known = [_NEAR.get(genre.lower(), genre.lower()) for genre in values.get("genre") or []]
    genres = [genre for genre in known if genre in _MUSIC] or draws.shuffled(["pop", "rock", "jazz"])
    named = " ".join([*values.get("artist", []), *values.get("band", []), *values.get("album", [])]).lower()
    first, second = genres[0], genres[1 if len(genres) > 1 else 0]
    one = draws.fork("music", first).shuffled(_fresh(first, named))[0]
    rest = [pick for pick in draws.fork("music", second).shuffled(_fresh(second, named)) if pick != one]
    two = rest[0] if rest else next(pick for pick in _MUSIC["jazz"] if pick != one)
    return {"pick1": one[0], "why1": one[1], "pick2": two[0], "why2": two[1]}


def _fresh(genre: str, named: str) -> list[tuple[str, str]]:
    return [pick for pick in _MUSIC[genre] if pick[0].split("'")[0].lower() not in named] or list(_MUSIC[genre])
