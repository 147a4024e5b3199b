"""The understudy that reviews simulated users.

Its rules, each on the user's lines:

contradicts_persona  `I don't`, `I never` or `I hate`, followed by a word of the persona's description
invents_facts        a number that is neither in the given text nor in an earlier line of the other side
gives_up             the last line abandons the matter: never mind, forget it, I'll leave it
content_too_soon     thanks, directly after the other side said that it could not be done
reveals              eight consecutive words of the given text
"""

from __future__ import annotations

import json
import re

from .request import Draws, MarkedRequest, plain, quoted
from .understudy import understudy

_DENIES = re.compile(r"\bi (?:do not|don't|never|hate|can't stand) (?:really |ever )?((?:[\w'-]+ ?){1,5})")
_DROPS = re.compile(r"\b(?:never ?mind|forget it|forget about it|i'll leave it|i give up|don't bother|drop it)\b")
_THANKS = re.compile(r"\b(?:thanks|thank you|perfect|great|cheers)\b")
_REFUSED = re.compile(r"\b(?:can't|cannot|couldn't|could not|unable|sold out|not possible|i'm sorry|i am sorry)\b")
_FIGURE = re.compile(r"\d[\d:.,]*\d|\d")
_RUN = 8


@understudy("gate", "reviewer")
def review(request: MarkedRequest, _draws: Draws) -> str:
    """Answer whether the fault in question is there: a JSON object with `verdict` and `explanation`."""
    given = " ".join(part.body for part in request.parts("about"))
    shown = _LOOKED_FOR.get(request.inputs.get("fault", ""), _revealed)(request, given)
    why = f"It shows in {quoted(shown)}." if shown else "There is nothing to find."
    return json.dumps({"verdict": bool(shown), "explanation": why}, ensure_ascii=False)


def _contradicted(request: MarkedRequest, given: str) -> str:
    known = set(plain(given).split())
    for line in request.said_by("user"):
        for found in _DENIES.finditer(line.lower().replace("’", "'")):
            if any(len(word) > 4 and word in known for word in plain(found[1]).split()):
                return line
    return ""


def _invented(request: MarkedRequest, given: str) -> str:
    known = set(_FIGURE.findall(given))
    for line in request.lines:
        figures = _FIGURE.findall(line.text)
        if line.speaker == "user" and not known.issuperset(figures):
            return line.text
        known.update(figures)
    return ""


def _dropped(request: MarkedRequest, _given: str) -> str:
    last = (request.said_by("user") or [""])[-1]
    return last if _DROPS.search(last.lower()) else ""


def _contented(request: MarkedRequest, _given: str) -> str:
    for before, line in zip(request.lines, request.lines[1:], strict=False):
        refused = before.speaker != "user" and _REFUSED.search(before.text.lower().replace("’", "'"))
        if line.speaker == "user" and refused and _THANKS.search(line.text.lower()):
            return line.text
    return ""


def _revealed(request: MarkedRequest, given: str) -> str:
    words = plain(given).split()
    runs = {tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}
    for line in request.said_by("user"):
        said = plain(line).split()
        if any(tuple(said[at : at + _RUN]) in runs for at in range(len(said) - _RUN + 1)):
            return line
    return ""


_LOOKED_FOR = {
    "contradicts_persona": _contradicted,
    "invents_facts": _invented,
    "gives_up": _dropped,
    "content_too_soon": _contented,
}
