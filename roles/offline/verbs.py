"""Forms of English verbs, by spelling: `bake`, `bakes`, `baking`."""

from __future__ import annotations

import re
from functools import cache

_THIRD = {"be": "is", "am": "is", "have": "has", "do": "does", "go": "goes", "cannot": "cannot"}
_ING = {"be": "being", "am": "being", "travel": "travelling"}
_DOUBLED = frozenset(
    "beg begin bet brag chat chop commit cut dig drop fit forget get grab hug hum jog knit let mop nap pat pet plan "
    "pop put quit rub run scan set shop sip sit skip slip spin split spot step stop swap swim tap tip trim win "
    "wrap".split()
)


@cache
def third_person(verb: str) -> str:
    """Give the form that goes with "she": `carry` -> `carries`."""
    if verb in _THIRD:
        return _THIRD[verb]
    if re.search(r"(?:s|sh|ch|x|z)$", verb):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"


@cache
def ing_form(verb: str) -> str:
    """Give the form that names an activity: `run` -> `running`."""
    if verb in _ING:
        return _ING[verb]
    if verb in _DOUBLED:
        return verb + verb[-1] + "ing"
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    return (verb[:-1] if re.search(r"[^eoy]e$", verb) else verb) + "ing"
