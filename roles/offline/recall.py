"""How the attentive assistant shows what it remembers, sees around it, or guesses."""

from __future__ import annotations

from .draws import Draws
from .grammar import render_first
from .matching import mentions_any
from .model import Domain
from .prose import joined, sentence
from .replyphrases import CONTEXT, GUESS, KEPT, OWN_WORDS
from .scene import LOCAL, Scene
from .wordbank.cities import town_of

_LEISURE = frozenset(["Restaurants", "Events", "Movies", "Media", "Music", "Books", "Games"])


def notes(scene: Scene, domain: Domain, offer: str, draws: Draws, most: int) -> list[str]:
    """Say, in at most `most` sentences, what is remembered of the person and not yet in the offer."""
    known = scene.remembered.get(domain.name, {})
    said = scene.said.get(domain.name, {})
    seen = f"{offer} {' '.join(scene.own_lines)}"
    found: list[str] = []
    for facet in domain.facets:
        values = known.get(facet.key, [])[:2]
        if not values or facet.key in said or len(found) >= most or mentions_any(seen, values[:1]):
            continue
        last = "or" if facet.frame.startswith("a ") else "and"
        slots = {"v": joined(values), "v1": values[0], "p": facet.phrase(values, last)}
        templates = facet.note if all(facet.fits(value) for value in values) else OWN_WORDS
        found.append(sentence(render_first(templates, slots, draws)))
    return found


def kept_in_mind(scene: Scene, domain: Domain, draws: Draws) -> str:
    """Show what is remembered before anything can be offered."""
    known = scene.remembered.get(domain.name, {})
    phrases = [facet.phrase(known[facet.key][:1]) for facet in domain.facets if known.get(facet.key)]
    return render_first(KEPT, {"all": joined(phrases[:2])}, draws)


def guess_line(scene: Scene, domain: Domain, draws: Draws) -> str:
    """Venture a guess about somebody nobody has described; only if the instructions ask for personal help."""
    if not scene.personal or scene.remembered.get(domain.name) or not draws.chance(0.3):
        return ""
    before = " ".join(scene.own_lines)
    fresh = [line for line in GUESS.get(domain.name, ()) if line not in before]
    return draws.pick(fresh) if fresh else ""


def context_line(scene: Scene, domain: Domain, offer: str, draws: Draws) -> str:
    """Mention where and when the person is, now and then, if that is known at all."""
    if not scene.situation or not draws.chance(0.5):
        return ""
    around = " ".join(scene.situation.values()).lower()
    city = town_of(scene.situation.get("location", ""))
    slots = {"device": next((name for name in ("phone", "laptop", "tablet") if name in around), "")}
    if domain.name in LOCAL and city not in offer:
        slots["city"] = city
    day = scene.situation.get("day of the week", "")
    if domain.name in _LEISURE and day.isalpha():
        slots["day"] = day
        slots["part"] = next((part for part in ("morning", "afternoon", "evening") if part in around), "")
    return render_first(CONTEXT, slots, draws)
