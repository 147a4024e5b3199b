"""Books by genre, with a few words on each."""

from __future__ import annotations

from collections.abc import Mapping

from ..draws import Draws

_BOOKS: dict[str, tuple[tuple[str, str], ...]] = {
    "fantasy": (
        ("Uprooted by Naomi Novik", "a fairy tale with dirt under its nails"),
        ("The Priory of the Orange Tree by Samantha Shannon", "a long one with dragons and court intrigue"),
        ("The Goblin Emperor by Katherine Addison", "a gentle story about power"),
        ("The Night Circus by Erin Morgenstern", "slow, dreamy and full of tents"),
    ),
    "science-fiction": (
        ("A Psalm for the Wild-Built by Becky Chambers", "short and hopeful"),
        ("Children of Time by Adrian Tchaikovsky", "big ideas and very clever spiders"),
        ("The Left Hand of Darkness by Ursula K. Le Guin", "a classic about trust in the cold"),
        ("Project Hail Mary by Andy Weir", "a puzzle in space that never lets up"),
    ),
    "romance": (
        ("Beach Read by Emily Henry", "funny with a sore heart under it"),
        ("The Hating Game by Sally Thorne", "an office rivalry that turns"),
        ("The Flatshare by Beth O'Leary", "told in notes between flatmates"),
    ),
    "thriller": (
        ("The Dry by Jane Harper", "a small town with a long memory"),
        ("In the Woods by Tana French", "dark and beautifully written"),
        ("I Am Pilgrim by Terry Hayes", "a chase across half the world"),
    ),
    "mystery": (
        ("The Thursday Murder Club by Richard Osman", "warm and properly funny"),
        ("Magpie Murders by Anthony Horowitz", "a mystery inside a mystery"),
        ("The Moonstone by Wilkie Collins", "where detective stories began"),
    ),
    "history": (
        ("SPQR by Mary Beard", "ancient Rome without the marble polish"),
        ("The Splendid and the Vile by Erik Larson", "London in 1940, day by day"),
        ("The Silk Roads by Peter Frankopan", "world history turned to face east"),
        ("The Warmth of Other Suns by Isabel Wilkerson", "three lives that tell a great migration"),
    ),
    "biography": (
        ("Leonardo da Vinci by Walter Isaacson", "curious and richly illustrated"),
        ("Grant by Ron Chernow", "long, but it reads like a novel"),
        ("The Invention of Nature by Andrea Wulf", "the life of Humboldt, full of mountains"),
        ("Born a Crime by Trevor Noah", "a childhood told with wit and nerve"),
    ),
    "non-fiction": (
        ("Entangled Life by Merlin Sheldrake", "all about fungi and hard to put down"),
        ("The Sixth Extinction by Elizabeth Kolbert", "sobering and clear"),
        ("Say Nothing by Patrick Radden Keefe", "gripping, and all of it true"),
        ("Braiding Sweetgrass by Robin Wall Kimmerer", "plants, patience and gratitude"),
    ),
    "fiction": (
        ("Hamnet by Maggie O'Farrell", "quiet and heartbreaking"),
        ("A Gentleman in Moscow by Amor Towles", "one hotel, thirty years, great company"),
        ("Girl, Woman, Other by Bernardine Evaristo", "twelve voices that overlap"),
    ),
    "true crime": (
        ("The Devil in the White City by Erik Larson", "a fair and a murderer"),
        ("Killers of the Flower Moon by David Grann", "an injustice, carefully told"),
    ),
    "young adult": (
        ("The Gilded Ones by Namina Forna", "fierce, with a heroine to follow"),
        ("Six of Crows by Leigh Bardugo", "a heist with a crew you'll miss"),
        ("The Raven Boys by Maggie Stiefvater", "friends, forests and a bit of magic"),
    ),
    "children": (
        ("The Wild Robot by Peter Brown", "good for reading aloud"),
        ("Skellig by David Almond", "strange, kind and short"),
    ),
    "horror": (
        ("Mexican Gothic by Silvia Moreno-Garcia", "a house you shouldn't visit"),
        ("The Haunting of Hill House by Shirley Jackson", "still the one to beat"),
    ),
    "historical fiction": (
        ("The Pillars of the Earth by Ken Follett", "a cathedral and everyone around it"),
        ("Wolf Hall by Hilary Mantel", "sharp and close to the skin"),
        ("Pachinko by Min Jin Lee", "four generations of one family"),
    ),
}

_NEAR = {
    "nonfiction": "non-fiction",
    "science fiction": "science-fiction",
    "sci-fi": "science-fiction",
    "memoirs": "biography",
    "memoir": "biography",
    "crime": "mystery",
    "classics": "fiction",
    "literary fiction": "fiction",
    "urban fantasy": "fantasy",
    "paranormal romance": "romance",
    "self-help": "non-fiction",
    "essays": "non-fiction",
    "biographies": "biography",
    "thrillers": "thriller",
    "mysteries": "mystery",
    "popular science": "non-fiction",
}

BOOK_GENRES = tuple(_BOOKS)


def book_picks(values: Mapping[str, list[str]], _slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose two books of the known genres, or of any when none is known; never one that the reader named."""
    known = [_NEAR.get(genre.lower(), genre.lower()) for genre in values.get("genre") or []]
    genres = [genre for genre in known if genre in _BOOKS] or draws.shuffled(["fiction", "mystery", "non-fiction"])
    named = " ".join([*values.get("author", []), *values.get("book", []), *values.get("series", [])]).lower()
    first, second = genres[0], genres[1 if len(genres) > 1 else 0]
    one = draws.fork("book", first).shuffled(_fresh(first, named))[0]
    two = next(book for book in draws.fork("book", second).shuffled(_fresh(second, named)) if book != one)
    return {"pick1": one[0], "why1": one[1], "pick2": two[0], "why2": two[1]}


def _fresh(genre: str, named: str) -> list[tuple[str, str]]:
    fresh = [book for book in _BOOKS[genre] if book[0].split(" by ")[0].lower() not in named]
    return fresh if len(fresh) > 1 else [*fresh, *_BOOKS["fiction"]]
