"""The simulated user: reveals a little at a time, reacts to what it gets, and ends when the goal is met."""

from __future__ import annotations

import re

from .circumstances import answer_line, detail_line, invented
from .draws import Draws
from .grammar import render_first
from .lazy import Lazy
from .model import Facet, Slots
from .openings import named_plainly, opening, register
from .plan import Move, Plan, Progress
from .prose import joined, sentence, tidy
from .tags import Request
from .topics import topic_of_line
from .userphrases import (
    ACCEPT,
    AGAIN,
    END,
    FITS,
    FREELY,
    GRUDGE,
    IGNORED,
    LATE,
    LEAD,
    NEXT,
    NO_PREFERENCE,
    PARTLY,
    SETTLES,
    STRAYED,
    WRONG,
)

END_MARK = "TERMINATE"
_ONE_VALUE = frozenset(["book", "series", "favorite", "album", "company", "time", "repeat", "notice"])


def user_line(request: Request, draws: Draws, wording: Draws) -> str:
    """Write the user's next line. `draws` comes from the stable part of the request, `wording` from all of it."""
    replies = request.said_by("assistant")
    facts = invented(request, draws)
    plan = Plan(request, draws)
    if not replies:
        return opening(request, facts, plan.talkative, wording)
    own = request.said_by("user")
    move = plan.next_move(replies)
    for attempt in range(4):
        text = _spoken(move, request, plan, facts, wording.fork(attempt))
        if text not in own:
            break
    return f"{text} {END_MARK}" if move.ends else text


def _spoken(move: Move, request: Request, plan: Plan, facts: Slots, draws: Draws) -> str:
    style = register(request)
    parts = [_reaction(move, request, plan, style, draws)]
    parts += [sentence(answer_line(need, facts, draws)) for need in move.needs]
    if move.following is None:
        parts += [_revealed(move.progress, facet, plan, draws, at, move) for at, facet in enumerate(move.reveal)]
    else:
        parts.append(_next_request(move, request, facts, plan, draws))
    if move.no_preference and not move.needs:
        parts.append(render_first(NO_PREFERENCE, {}, draws))
    if move.ends:
        parts.append(render_first(END[style], {}, draws))
    if not any(parts):
        parts.append(render_first(PARTLY[style], {}, draws))
    return tidy(" ".join(part for part in parts if part.strip(" .")))


def _reaction(move: Move, request: Request, plan: Plan, style: str, draws: Draws) -> str:
    if move.grudging:
        return render_first(GRUDGE, {}, draws)
    if move.reaction == "wrong":
        return render_first(WRONG, {}, draws)
    if move.reaction == "strayed":
        return named_plainly(STRAYED, move.progress.domain.name, _tastes(request), draws)
    if move.reaction == "again" or (move.needs and move.reaction == "fits"):
        return ""
    if move.reaction == "settles":
        return render_first(SETTLES, {}, draws)
    if move.reaction == "ignored" and not move.ends:
        return render_first(IGNORED, {}, draws) if move.following is None else render_first(GRUDGE, {}, draws)
    if move.accept and not (move.needs or (move.reveal and not move.following)):
        return render_first(ACCEPT[style], {}, draws)
    if move.reaction == "fits":
        return render_first(FITS[style], {}, draws)
    if move.reaction == "partly" and draws.chance(0.5 + plan.patience * 0.15):
        return render_first(PARTLY[style], {}, draws)
    return ""


def _revealed(progress: Progress, facet: Facet, plan: Plan, draws: Draws, at: int, move: Move) -> str:
    values = progress.values(facet)
    if not values:
        return ""
    most = 1 if facet.key in _ONE_VALUE else 1 + plan.patience
    chosen = values[: max(1, min(most, 2 if len(values) < 4 else 3))]
    last = "or" if facet.frame.startswith("a ") else "and" if facet.proper else draws.pick(["and", "or"])
    slots = {
        "v": joined(_said(facet, chosen), last),
        "v1": _said(facet, chosen)[0],
        "p": facet.phrase(_said(facet, chosen), last),
        "noun": facet.noun or f"the {facet.key}",
    }
    templates = facet.reveal if all(facet.fits(value) for value in chosen) else FREELY
    clause = render_first(templates, slots, draws)
    bank = LEAD if at else AGAIN if move.reaction == "again" else LATE if move.late else ("",)
    lead = draws.pick(bank)
    return sentence(f"{lead}{clause}")


def _tastes(request: Request) -> list[str]:
    return [value for domain in request.affinities.values() for values in domain.values() for value in values]


def _said(facet: Facet, values: list[str]) -> list[str]:
    """Lower the capitals that a data file gave to ordinary words, and call one's own people one's own."""
    values = [f"my {value}" if _KIN.match(value) else value for value in values]
    if facet.proper:
        return [_lowered(value) if facet.key in ("company", "brand", "chain") else value for value in values]
    known = {entry.lower(): entry for entry in facet.lexicon}
    return [known.get(value.lower(), _lowered(value)) for value in values]


_KIN = Lazy(
    r"(?:husband|wife|partner|daughter|son|sister|brother|aunt|uncle|niece|nephew|cousin|mum|dad|mother|father|"
    r"granddaughter|grandson|ex-wife|ex-husband|dog|boss|mechanic|supervisor|climbing partner)s?\b(?! (?:or|and)\b)"
)
_COMMON = Lazy(
    r"(?:local|regional|national|established|well-established|sustainable|ethical|innovative|renewable|blue-chip|"
    r"emerging|major|"
    r"large|small|independent|new|old|classic|traditional|modern|acoustic|gentle|soft|loud|early|late|quiet|family|"
    r"public|"
    r"pharmaceutical|international|leading|popular|affordable|luxury|eco-friendly|organic|handmade) ",
    re.IGNORECASE,
)


def _lowered(value: str) -> str:
    return value[0].lower() + value[1:] if _COMMON.match(value) and value[1:] == value[1:].lower() else value


def _next_request(move: Move, request: Request, facts: Slots, plan: Plan, draws: Draws) -> str:
    following = move.following
    if following is None:
        return ""
    name = following.domain.name
    text = render_first(NEXT, {"thing": draws.pick(following.domain.thing)}, draws)
    if topic_of_line(text, first=False) != name:
        text = named_plainly(NEXT, name, _tastes(request), draws)
    detail = detail_line(name, facts, request.task, draws)
    keys = {facet.key for facet, _ in following.wanted}
    if detail and not keys & {"list", "service"} and draws.chance(0.6):
        text += f" {sentence(detail)}"
    for facet in move.reveal:
        text += f" {_revealed(following, facet, plan, draws, 0, Move(following, 'none'))}"
    return text
