"""The attentive assistant: uses what it is shown and what it has been told, and gets things done."""

from __future__ import annotations

from .domains import domain_named
from .draws import Draws
from .grammar import render_first
from .knowledge import Facts, from_line
from .matching import mentions_any
from .model import Domain, Facet, Slots
from .plan import acted
from .prose import joined, sentence, sentences, tidy
from .replyphrases import (
    ACKNOWLEDGE,
    ASK_MORE,
    CLOSE,
    CONTEXT,
    DEFAULTS,
    DONE_LEAD,
    GO_AHEAD,
    GUESS,
    KEPT,
    MEMORY_LEAD,
    MOVE_ON,
    NEEDS,
    PLAIN_LEAD,
    RECAP,
    REVISED,
    SHORT,
    SUMMARY,
    WISH,
)  # fmt: skip
from .scene import Scene, slots_of, understand
from .tags import Request


def attentive_reply(request: Request, stable: Draws, wording: Draws) -> str:
    """Write the next reply. `stable` keeps the offers of one dialogue the same, `wording` varies the sentences."""
    scene = understand(request)
    for attempt in range(4):
        text = tidy(_reply(scene, stable, wording.fork(attempt)))
        if text and text not in scene.own_lines:
            break
    return text or "I'm here. What can I do for you?"


def _reply(scene: Scene, stable: Draws, draws: Draws) -> str:
    domain = scene.current
    facts = scene.facts.get(domain.name, {})
    slots = slots_of(scene, domain, facts, stable.fork("offer", domain.name))
    if scene.closing:
        return _closing(scene, stable, draws)
    if not scene.has_offered:
        return _first_reply(scene, domain, facts, slots, draws)
    return _next_reply(scene, domain, facts, slots, draws)


def _first_reply(scene: Scene, domain: Domain, facts: Facts, slots: Slots, draws: Draws) -> str:
    said = scene.said.get(domain.name, {})
    missing = [need for need in domain.needs if not scene.practical.get(need)]
    kind = scene.kind(domain)
    missing = [
        need
        for need in missing
        if not (domain.name in ("Messaging", "Calendar", "Alarm") and kind in ("share", "cancel", "block", "review"))
    ]
    asked_before = bool(scene.visits)
    if not facts and scene.personal and not asked_before:
        return _question_first(scene, domain, missing, slots, draws)
    vital = [need for need in missing if need != "date"]
    if missing and not asked_before and (vital or draws.chance(0.3)):
        lead = render_first(PLAIN_LEAD, {}, draws)
        return " ".join(
            part for part in (lead, _kept_in_mind(scene, domain, draws), draws.pick(NEEDS[missing[0]])) if part
        )
    offer = _offer(domain, kind, facts, slots, draws)
    lead = _lead(scene, domain, said, draws)
    notes = _notes(scene, domain, offer, draws, 2 if scene.personal else 1)
    parts = [lead, offer, *notes, _guess(scene, domain, draws), _context_line(scene, domain, offer, draws)]
    parts.append(_follow_up(scene, domain, kind, facts, missing, draws))
    return " ".join(part for part in parts if part)


def _next_reply(scene: Scene, domain: Domain, facts: Facts, slots: Slots, draws: Draws) -> str:
    last = scene.user_lines[-1]
    kind = scene.kind(domain)
    fresh = _fresh(scene, domain, last)
    lead = ""
    if fresh:
        lead = render_first(ACKNOWLEDGE, {"p": fresh[0][1]}, draws)
        if len(fresh) > 1:
            lead = render_first(ACKNOWLEDGE, {"p": joined([phrase for _, phrase in fresh[:2]])}, draws)
    elif scene.accepted:
        lead = draws.pick(DONE_LEAD)
    changed = any(
        facet.key
        in (
            "genre",
            "cuisine",
            "author",
            "kind",
            "category",
            "type",
            "chain",
            "sport",
            "team",
            "hours",
            "sector",
        )
        for facet, _ in fresh
    )
    if fresh and changed and not scene.accepted:
        offer = _offer(domain, kind, facts, slots, draws)
        body = f"{draws.pick(REVISED)} {offer}" if scene.visits and draws.chance(0.6) else offer
        ask = _follow_up(scene, domain, kind, facts, [], draws)
    else:
        body = render_first(domain.done.get(kind) or domain.done[""], _filled(domain, slots), draws)
        ask = draws.pick(MOVE_ON) if draws.chance(0.45) else ""
    if fresh and not scene.accepted:
        body = f"{body} {_guess(scene, domain, draws)}"
    unsaid = [phrase for _, phrase in fresh if not mentions_any(f"{lead} {body}", [phrase])]
    if unsaid and not lead:
        lead = render_first(ACKNOWLEDGE, {"p": unsaid[0]}, draws)
    return " ".join(part for part in (lead, body, ask) if part)


def _fresh(scene: Scene, domain: Domain, line: str) -> list[tuple[Facet, str]]:
    """Give the preferences that the last line states, as phrases."""
    told = from_line(domain, line)
    return [(facet, facet.phrase(told[facet.key][:2])) for facet in domain.facets if told.get(facet.key)]


def _lead(scene: Scene, domain: Domain, said: Facts, draws: Draws) -> str:
    fresh = _fresh(scene, domain, scene.user_lines[-1]) if len(scene.user_lines) > 1 else []
    if fresh:
        return render_first(ACKNOWLEDGE, {"p": fresh[0][1]}, draws)
    if scene.remembered.get(domain.name) and not scene.visits:
        return render_first(MEMORY_LEAD, {}, draws)
    return render_first(PLAIN_LEAD, {}, draws)


def _notes(scene: Scene, domain: Domain, offer: str, draws: Draws, most: int) -> list[str]:
    """Say what is remembered and not yet in the offer."""
    known = scene.remembered.get(domain.name, {})
    said = scene.said.get(domain.name, {})
    notes: list[str] = []
    seen = f"{offer} {' '.join(scene.own_lines)}"
    open_facets = [facet for facet in domain.facets if known.get(facet.key) and facet.key not in said]
    for facet in open_facets:
        values = known[facet.key][:2]
        if len(notes) >= most or mentions_any(seen, values[:1]):
            continue
        slots = {
            "v": joined(values),
            "v1": values[0],
            "p": facet.phrase(values, "or" if facet.frame.startswith("a ") else "and"),
        }
        notes.append(sentence(render_first(facet.note, slots, draws)))
    return notes


def _kept_in_mind(scene: Scene, domain: Domain, draws: Draws) -> str:
    """Show what is remembered before anything can be offered."""
    known = scene.remembered.get(domain.name, {})
    phrases = [facet.phrase(known[facet.key][:1]) for facet in domain.facets if known.get(facet.key)]
    return render_first(KEPT, {"all": joined(phrases[:2])}, draws)


def _filled(domain: Domain, slots: Slots) -> Slots:
    """Add what an assistant assumes when nobody said anything."""
    return {**DEFAULTS.get(domain.name, {}), **{key: value for key, value in slots.items() if value}}


def _offer(domain: Domain, kind: str, facts: Facts, slots: Slots, draws: Draws) -> str:
    templates = domain.offers.get(kind) or domain.offers[""]
    full = _filled(domain, slots)
    return (
        render_first(templates, slots, draws)
        or render_first(templates, full, draws)
        or render_first(domain.offers[""], full, draws)
    )


def _question_first(scene: Scene, domain: Domain, missing: list[str], slots: Slots, draws: Draws) -> str:
    """Ask before offering, because nothing is known yet."""
    parts = [render_first(PLAIN_LEAD, {}, draws)]
    place, part = (
        scene.situation.get("location", "").split(",")[0],
        scene.situation.get("time of day", "").lower(),
    )
    if place and draws.chance(0.5):
        parts.append(
            draws.pick(
                [
                    f"I can see you're in {place}, so I'll look around there.",
                    f"I'll keep it close to {place}.",
                ]
            )
            if domain.name in _LOCAL
            else ""
        )
    elif part in ("evening", "morning", "afternoon") and draws.chance(0.5):
        parts.append(draws.pick([f"Nice to do it in a calm {part}.", f"A good {part} to you, too."]))
    if missing and draws.chance(0.6):
        parts.append(draws.pick(NEEDS[missing[0]]))
        if draws.chance(0.5):
            parts.append(render_first(domain.facets[0].ask, {}, draws) if domain.facets else "")
    else:
        facets = domain.facets[:3]
        facet = facets[0] if draws.chance(0.65) or not facets else draws.pick(facets)
        parts.append(render_first(facet.ask, {}, draws) if facets else draws.pick(NEEDS["more"]))
    return " ".join(part for part in parts if part)


def _guess(scene: Scene, domain: Domain, draws: Draws) -> str:
    """Venture a guess about somebody nobody has described; only if the instructions ask for personal help."""
    if not scene.personal or scene.remembered.get(domain.name) or not draws.chance(0.3):
        return ""
    before = " ".join(scene.own_lines)
    fresh = [line for line in GUESS.get(domain.name, ()) if line not in before]
    return draws.pick(fresh) if fresh else ""


def _context_line(scene: Scene, domain: Domain, offer: str, draws: Draws) -> str:
    """Mention where and when the person is, now and then, if that is known at all."""
    if not scene.situation or not draws.chance(0.5):
        return ""
    around = " ".join(scene.situation.values()).lower()
    leisure = domain.name in _LEISURE
    slots = {
        "day": scene.situation.get("day of the week",
                                   "") if leisure and scene.situation.get("day of the week",
                                                                          "").isalpha() else "",
        "part": next((part for part in ("morning", "afternoon",
                                        "evening") if part in scene.situation.get("time of day", "").lower()),
                     ""),
        "device": next((name for name in ("phone", "laptop", "tablet") if name in around), ""),
        "city": scene.situation.get("location",
                                    "").split(",")[0] if domain.name in _LOCAL and scene.practical.get("city", "-") not in offer else "",
    }  # fmt: skip
    return render_first(CONTEXT, slots, draws)


_LEISURE = frozenset(["Restaurants", "Events", "Movies", "Media", "Music", "Books", "Games"])
_LOCAL = frozenset(["Restaurants", "Events", "Movies", "Services", "Shopping", "Sports"])


def _follow_up(scene: Scene, domain: Domain, kind: str, facts: Facts, missing: list[str], draws: Draws) -> str:
    """End on one sensible question, or on none."""
    if missing:
        return draws.pick(NEEDS[missing[0]])
    open_facets = [facet for facet in domain.facets[:4] if not facts.get(facet.key)]
    if open_facets and scene.personal and len(scene.visits) < 2 and draws.chance(0.3):
        return render_first(open_facets[0].ask, {}, draws)
    if kind in ("setup", "send", "share", "cancel", "change", "review", "block", "track") or draws.chance(0.2):
        return draws.pick(ASK_MORE) if draws.chance(0.4) else ""
    return draws.pick(GO_AHEAD.get(kind) or GO_AHEAD.get(domain.name) or GO_AHEAD[""])


def _closing(scene: Scene, stable: Draws, draws: Draws) -> str:
    """Take leave with the concrete result: what is still to be confirmed, else a wish that names it."""
    names = list(dict.fromkeys(domain.name for domain in scene.history))
    last = scene.current
    slots = _filled(last, slots_of(scene, last, scene.facts.get(last.name, {}), stable.fork("offer", last.name)))
    parts = [draws.pick(RECAP)]
    settled = bool(scene.own_lines) and confirmed(scene.own_lines[-1], last)
    if len(names) > 1:
        results = [_short(scene, name, stable, draws) for name in names]
        parts.append(render_first(SUMMARY, {"all": joined([result for result in results if result])}, draws))
    elif not settled:
        parts.append(render_first(last.done.get(scene.kind(last)) or last.done[""], slots, draws))
    parts.append(render_first(WISH.get(last.name, ()), slots, draws) if draws.chance(0.85) else draws.pick(CLOSE))
    return " ".join(part for part in parts if part)


def _short(scene: Scene, name: str, stable: Draws, draws: Draws) -> str:
    domain = domain_named(name)
    slots = _filled(domain, slots_of(scene, domain, scene.facts.get(name, {}), stable.fork("offer", name)))
    return render_first(SHORT.get(name, (f"the {name.lower()} part",)), slots, draws)


def confirmed(reply: str, domain: Domain) -> bool:
    """Tell whether a reply already says that the thing is done, rather than proposing it."""
    return acted(reply) and not any(part.endswith("?") for part in sentences(reply)[-1:] if part in _GO_AHEADS)


_GO_AHEADS = frozenset(line for lines in GO_AHEAD.values() for line in lines)
