"""Forms of English verbs, by spelling: `bake`, `bakes`, `baking`."""

from __future__ import annotations

import re
from functools import cache

_THIRD = {"be": "is", "was": "was", "am": "is", "have": "has", "do": "does", "go": "goes", "cannot": "cannot"}


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
    if re.fullmatch(r"(?:qu|[^aeiou])*[aeiou][^aeiouwxy]|(?:be|com|for)[gm][ei]t|begin|travel", verb):
        return verb + verb[-1] + "ing"
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    return (verb[:-1] if re.search(r"[^eoy]e$", verb) else verb) + "ing"
