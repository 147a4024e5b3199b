"""Video games by genre, with a few words on each."""

from __future__ import annotations

from collections.abc import Mapping

from ..draws import Draws

_GAMES: dict[str, tuple[tuple[str, str], ...]] = {
    "rpg": (
        ("Disco Elysium", "a detective story where talking is the fight"),
        ("Chrono Trigger", "a classic that hasn't aged"),
        ("Pentiment", "a mystery in a Bavarian abbey"),
        ("Sea of Stars", "bright, with a light touch on combat"),
    ),
    "adventure": (
        ("Firewatch", "a summer in a lookout tower"),
        ("Outer Wilds", "a tiny solar system full of secrets"),
        ("A Short Hike", "an afternoon on a small island"),
        ("Return of the Obra Dinn", "pure deduction at sea"),
    ),
    "simulation": (
        ("Coral Island", "farming with a reef to look after"),
        ("Two Point Hospital", "silly and well made"),
        ("PowerWash Simulator", "oddly calming"),
        ("Cities: Skylines", "roads, trams and small disasters"),
    ),
    "strategy": (
        ("Into the Breach", "small maps and big consequences"),
        ("Old World", "history played through one family"),
        ("Northgard", "Vikings, winters and short matches"),
        ("Terra Nil", "a city builder in reverse"),
    ),
    "puzzle": (
        ("Baba Is You", "all about bending the rules"),
        ("Dorfromantik", "tiles, trees and a slow pulse"),
        ("The Witness", "an island of line puzzles"),
        ("Mini Metro", "tidy underground maps under pressure"),
    ),
    "action": (
        ("Hades", "quick rounds with sharp writing"),
        ("Sekiro", "hard, and worth it"),
        ("Tunic", "a fox and a lost manual"),
    ),
    "sports": (
        ("Rocket League", "football with cars"),
        ("Golf With Your Friends", "silly and quick"),
        ("OlliOlli World", "skateboarding in candy colours"),
    ),
    "racing": (("Art of Rally", "lovely to look at"), ("Forza Horizon 5", "an open road and good weather")),
    "card games": (("Slay the Spire", "a deck you build as you climb"), ("Balatro", "poker gone wonderfully wrong")),
    "board games": (
        ("Root", "woodland factions at war"),
        ("Wingspan", "birds, calmly"),
        ("Ticket to Ride", "easy to teach"),
    ),
    "fps": (("Titanfall 2", "short, fast and inventive"), ("Deep Rock Galactic", "dwarves, caves and teamwork")),
    "horror": (("Alien: Isolation", "tense all the way"), ("Inside", "short and wordless")),
    "sandbox": (("Terraria", "digging that never gets old"), ("Astroneer", "gentle planets to shape")),
    "party games": (("Overcooked 2", "shouting in a kitchen"), ("Jackbox Party Pack 9", "phones as controllers")),
    "platformer": (("Celeste", "tough and kind"), ("Ori and the Will of the Wisps", "beautiful in motion")),
    "mmorpg": (
        ("Guild Wars 2", "no monthly fee and a friendly crowd"),
        ("Final Fantasy XIV", "a story worth staying for"),
    ),
    "survival": (("Subnautica", "an ocean planet to explore"), ("Valheim", "Viking huts and long voyages")),
}
_NEAR = {
    "rpgs": "rpg",
    "moba": "mmorpg",
    "battle royale": "fps",
    "fighting": "action",
    "stealth": "action",
    "roguelike": "action",
    "visual novel": "adventure",
    "point-and-click": "adventure",
    "metroidvania": "platformer",
    "tower defense": "strategy",
    "deck-building": "card games",
    "puzzle games": "puzzle",
    "sports games": "sports",
    "idle": "simulation",
    "educational": "puzzle",
    "rhythm": "party games",
    "cosy": "simulation",
    "cozy": "simulation",
    "farming": "simulation",
}


def game_picks(values: Mapping[str, list[str]], _slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose two games of the known genres, or of any, leaving out those that the player named."""
    known = [_NEAR.get(genre.lower(), genre.lower().removesuffix(" games")) for genre in values.get("genre") or []]
    genres = [genre for genre in known if genre in _GAMES] or draws.shuffled(["adventure", "puzzle", "strategy"])
    named = " ".join(values.get("favorite", [])).lower()
    pool = [game for genre in genres[:2] for game in draws.fork("game", genre).shuffled(_GAMES[genre])]
    fresh = [game for game in pool if game[0].lower() not in named] or pool
    one = fresh[0]
    two = next((game for game in fresh[1:] if len(genres) < 2 or game in _GAMES[genres[1]]), fresh[-1])
    price = str(draws.fork("game price").pick([14, 17, 19, 24, 29]))
    return {"pick1": one[0], "why1": one[1], "pick2": two[0], "why2": two[1], "price": price}
