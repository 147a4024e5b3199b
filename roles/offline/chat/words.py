"""The words that carry what a sentence is about, made comparable: endings off, doubles of a word as one."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_STOP = frozenset(
    """
    a an the and or but nor so yet if of in on at to for from with without by about as into over under after before
    since until till while during through across off up down out away back around along than then there here this
    that these those it its i me my mine myself we us our ours you your yours yourself he him his himself she her hers
    herself they them their theirs themselves one ones who whom whose which what when where why how am is are was were
    be been being do does did done doing don doesn didn have has had having will would shall should can could may
    might must ought cannot not no never nothing none nobody always often usually rarely seldom sometimes mostly
    mainly hardly almost even ever still already also too very quite rather really just only much many more most some
    any every each all both few several other another same own such like likes liked love loves loved enjoy enjoys
    enjoyed prefer prefers hate hates dislike dislikes get gets got getting go goes going gone went come comes came
    make makes made making take takes took taking give gives gave keep keeps kept let lets put puts say says said tell
    tells told know knows knew think thinks thought see sees saw seem seems want wants use uses used thing things
    something anything everything somebody someone anybody anyone everybody everyone person people way ways kind sort
    bit lot lots little well good better best nice fine great new old big small long far near day days time times
    year years week weeks today now once twice again ago later early late soon yes oh ah ha haha hm mm ok okay sure
    because although though whether both else instead yourself re ve ll im ive id youre isn aren wasn weren hasn
    haven won wouldn couldn shouldn particular favourite favorite certain whole half sound sounds hope mean guess
    start begin began life live lives lived living
    """.split()
)
_SAME = {
    "mum": "mother",
    "mom": "mother",
    "mummy": "mother",
    "dad": "father",
    "daddy": "father",
    "kid": "child",
    "kids": "child",
    "children": "child",
    "gran": "grandmother",
    "granny": "grandmother",
    "grandma": "grandmother",
    "nan": "grandmother",
    "grandad": "grandfather",
    "grandpa": "grandfather",
    "granddad": "grandfather",
    "flat": "apartment",
    "bike": "bicycle",
    "bikes": "bicycle",
    "biking": "bicycle",
    "cycle": "bicycle",
    "cycles": "bicycle",
    "cycling": "bicycle",
    "job": "work",
    "jobs": "work",
    "shift": "shift",
    "movie": "film",
    "movies": "film",
    "wives": "wife",
    "ran": "run",
    "swam": "swim",
    "sang": "sing",
    "taught": "teach",
    "bought": "buy",
    "grew": "grow",
    "grown": "grow",
    "wrote": "write",
    "written": "write",
    "drove": "drive",
    "rode": "ride",
    "drank": "drink",
    "ate": "eat",
    "eaten": "eat",
    "slept": "sleep",
    "knitted": "knit",
    "mice": "mouse",
    "women": "woman",
    "men": "man",
    "neighbor": "neighbour",
    "neighbors": "neighbour",
    "photo": "photograph",
    "photos": "photograph",
    "pictures": "photograph",
    "puppy": "dog",
    "kitten": "cat",
    "allotment": "garden",
    "veggie": "vegetable",
    "veggies": "vegetable",
    "veg": "vegetable",
    "sunrise": "dawn",
    "telly": "television",
    "tv": "television",
    "met": "meet",
    "lost": "lose",
    "left": "leave",
    "won": "win",
    "sold": "sell",
    "built": "build",
}


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Give what a word's forms have in common: `bake`, `bakes` and `baking` are one."""
    word = _SAME.get(word, word)
    for ending, left in (("ings", 3), ("ing", 3), ("ied", 2), ("ies", 2), ("ers", 4), ("ed", 3), ("ly", 4), ("s", 3)):
        if word.endswith(ending) and len(word) - len(ending) >= left and not word.endswith(("ss", "us")):
            word = word[: -len(ending)] + ("y" if ending in ("ied", "ies") else "")
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    word = word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word
    return _SAME.get(word, word)


def spelled_plainly(text: str) -> str:
    """Give a text in small letters without accents and typographic apostrophes."""
    plain = unicodedata.normalize("NFKD", text.lower().replace("’", "'"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


@lru_cache(maxsize=16384)
def telling(text: str) -> frozenset[str]:
    """Give the stems of a text's words that say what it is about."""
    words = re.findall(r"[^\W_]+", re.sub(r"'\w+", "", spelled_plainly(text)))
    return frozenset(stem(word) for word in words if word not in _STOP and (len(word) > 1 or word.isdigit()))
