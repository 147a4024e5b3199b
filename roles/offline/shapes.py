"""Fit a value of anyone's making into a sentence, by its shape: a thing, a time, a manner."""

from __future__ import annotations

import re
from collections.abc import Callable

from .lazy import Lazy

_LEADS_IN = Lazy(
    r"(?:after|before|while|during|at|in|on|around|between|from|by|over|under|when(?:ever)?|whatever|wherever|any|"
    r"within|near|outside|beside|above|below|behind|with|without|as|for|to|only|until|since|through)\b",
)
_DETERMINED = Lazy(
    r"(?:a|an|the|my|our|his|her|their|no|not|none|never|any|some|every|each|all|own|one|two|three|four|five|six|"
    r"seven|eight|nine|ten|whatever|anything|something|nothing|D or E|\d)\b|[\"“]",
    re.IGNORECASE,
)
_UNCOUNTED = frozenset(
    "music wifi wi-fi parking food seating breakfast daylight coffee water space light company service gps checkout "
    "heating alcohol admission cooking fish wool tea luggage salt broadcasting access cash delivery collect home work "
    "person quiet silence fun economy class standard manual automatic upstairs first high-res halal kosher history "
    "poetry jazz soul rock pop folk chess go tennis football rugby cycling running".split()
)
_ADJECTIVAL = frozenset(
    "quiet loud friendly cosy cozy dim lit unhurried casual romantic lively intimate relaxed rustic elegant modern "
    "simple bright warm calm open small big plain formal informal festive traditional traditional-style airy noisy "
    "family-friendly laid-back clipped playful precise chatty direct dry brief grammatical courteous gentle "
    "respectful jokey humorous polite manual automatic well punctual patient local independent".split()
)
_HEAD_ENDS = Lazy(
    r"\s(?:with|of|at|on|in|by|for|from|to|over|near|beside|behind|ahead|that|who|than|under|facing|past)\b|,"
)


def head_of(value: str) -> str:
    """Give a phrase without what follows its head noun: "window" of "window over the wing"."""
    found = _HEAD_ENDS.search(value)
    return value[: found.start()] if found else value


def is_plural(value: str) -> bool:
    """Tell whether a noun phrase is plural, as well as its ending tells."""
    last = head_of(value).split()[-1:] or [""]
    return last[0].endswith("s") and not last[0].endswith(("ss", "us", "is", "'s"))


def adjectival(value: str) -> bool:
    """Tell whether a value describes ("loud and friendly") rather than names something."""
    head = head_of(value).split() or [""]
    return (head[0].lower() in _ADJECTIVAL and head[-1].lower() in _ADJECTIVAL) or value.lower().startswith("open past")


def led_in(value: str) -> bool:
    """Tell whether a value is a phrase with its own preposition ("after dawn", "near the tram")."""
    return bool(_LEADS_IN.match(value))


def with_article(value: str) -> str:
    """Put an article before a single countable thing, and leave everything else as it is."""
    if not value or _DETERMINED.match(value) or led_in(value) or adjectival(value) or is_plural(value):
        return value
    words = head_of(value).split()
    last = words[-1].lower() if words else ""
    verb = words[0].endswith("s") and len(words) > 1 and words[0].islower() and not words[0].endswith("ss")
    if last in _UNCOUNTED or words[0].lower() in _UNCOUNTED or last.endswith(("ing", "ly")) or verb:
        return value
    if (value[0].isupper() and value[1:2].islower()) or value[:2].isupper():
        return value
    if words[0].endswith("ing") and len(words) > 1 and words[1] in ("the", "a", "my", "our"):
        return value
    return f"the {value}" if words[0].endswith("est") and words[0] != "forest" else f"a {value}"


def timed(value: str) -> str:
    """Say a time with its preposition: "noon" as "at noon", "nap time" as "at nap time", "Fridays" as "on Fridays"."""
    words = value.split() or [""]
    first, head = words[0], head_of(value).split() or [""]
    for pattern, lead in _TIMES:
        if pattern.match(value):
            return lead.replace("{v}", value)
    if led_in(value) or first in ("daily", "weekly", "overnight", "either", "mostly", "early", "late"):
        return value
    if head[-1] in ("mornings", "afternoons", "evenings", "nights", "days"):
        return f"on {value}"
    if is_plural(value) or head[-1].endswith("ing"):
        return f"during {value}"
    return value if _DETERMINED.match(value) or not first.islower() else f"during the {value}"


_TIMES = (
    (Lazy(r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b"), "on {v}"),
    (Lazy(r"(?!morning|evening)\w+ing \w+"), "while {v}"),
    (Lazy(r"(?:(?:early|late|mid)[ -])?(?:morning|afternoon|evening)(?:,.*| (?:on|at|in|by)\b.*)?$"), "in the {v}"),
    (Lazy(r"(?:mornings|afternoons|evenings|middle of)\b"), "in the {v}"),
    (Lazy(r"daylight"), "in {v}"),
    (Lazy(r"red-eye"), "on a {v}"),
    (Lazy(r"weekends"), "at {v}"),
    (Lazy(r"weekdays"), "on {v}"),
    (Lazy(r"first hour"), "in the {v}"),
    (Lazy(r"first (?:departure|bus|train|flight)"), "with the {v}"),
    (Lazy(r"last tram"), "on the {v}"),
    (Lazy(r"(?:drive|way|ride) to"), "on the {v}"),
    (Lazy(r"(?:late )?(?:noon|mid(?:night|day)|dawn|dusk|sunrise|sunset|night|bedtime)(?:,.*)?$|\w+ time$"), "at {v}"),
    (Lazy(r"(?:half past |quarter (?:to|past) )?(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d)"
          r"(?:$| in the| to\b| past\b| o'clock)"), "at {v}"),
)  # fmt: skip


def roomy(value: str) -> str:
    """Say an atmosphere as something that a place has: "loud and friendly" as "a loud and friendly feel"."""
    if value.lower().startswith("open past"):
        return f"opening hours {value[5:]}"
    if not adjectival(value):
        return with_article(value)
    adjectives, _, rest = value.partition(" with ")
    return f"a {adjectives} feel" + (f" with {rest}" if rest else "")


def seated(value: str) -> str:
    """Say a seat: "behind the driver" as "a seat behind the driver"."""
    first, *rest = head_of(value).split() or [""]
    if led_in(value) or first.endswith(("wards", "facing")):
        return f"a seat {value}"
    if len(value.split()) < 3 and value.split()[-1] in (
        "left",
        "right",
        "lower",
        "upper",
        "single",
        "front",
    ):
        return f"a {value} seat"
    return with_article(value) if rest or first not in ("facing", "ordinary") else f"a {value} seat"


def placed(value: str) -> str:
    """Say where something lies: "marsh edge" as "at the marsh edge"."""
    if led_in(value):
        return value
    lead = "on" if value.endswith("side") else "at" if "edge" in value else "near"
    return f"{lead} the {value}" if value[:1].islower() else f"{lead} {value}"


def accompanied(value: str) -> str:
    """Say with whom: "course mates" as "with course mates"."""
    return value if led_in(value) else f"with {value}"


def culinary(value: str) -> str:
    """Say a cuisine: "Goan" as "Goan food", and "fish and chips" as it is."""
    words = value.split()
    return f"{value} food" if words and all(word[0].isupper() for word in words) else value


SHAPES: dict[str, Callable[[str], str]] = {
    "any": str,
    "thing": with_article,
    "time": timed,
    "room": roomy,
    "seat": seated,
    "place": placed,
    "with": accompanied,
    "food": culinary,
}
