"""The person in an open chat.

Its rules: each line tells one fact of the profile that was not told yet, in a drawn order, as long as there is one; what
only makes sense after the sentence before it comes right after that one, and nobody begins with a hardship. When all is
told, it comes back to something. It may react to what was answered, and one trait may show in a remark, first of all
one that has not shown yet. No line is said twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..draws import Draws
from ..request import Request
from ..understudy import understudy
from .english import LINES, telling
from .facts import Fact, facts_of, given_away, traits_of
from .judges import STOCK
from .manners import Manner, shown_in
from .statements import Statement, remarks, stated
from .voice import Voice, new_line, put_together

BRIEF = frozenset(("reserved", "blunt", "impatient"))


@understudy("user", marks=("profile",))
def write(request: Request, draws: Draws) -> str:
    """Write the person's next line."""
    facts = facts_of(request.part("profile"))
    manners = [manner for _, named in traits_of(request.part("personality")) for manner in named]
    own, replies = request.said_by("user"), request.said_by("assistant")
    unlike = list(dict.fromkeys(manners))
    return new_line(own, draws, lambda fork: _line(facts, unlike, own, replies, fork))


def _line(
    facts: Sequence[Fact], manners: Sequence[Manner], own: Sequence[str], replies: Sequence[str], draws: Draws
) -> str:
    voice = Voice(own, draws)
    formal = any(manner.name == "formal" for manner in manners)
    brief = any(manner.name in BRIEF for manner in manners)
    hello = "hello_formal" if formal else "hello_brief" if brief else "hello"
    first = _reaction(own, replies, brief, voice, draws) if own else voice.of(LINES.get(f"user.{hello}"))
    new = _next_fact(facts, given_away(facts, own), own, draws)
    if new is not None:
        statement = stated(new.told)
        told = _said(statement, voice, plain=not own, draws=draws)
    else:
        tellable = [fact for fact in facts if fact.told]
        statement = stated(draws.pick(tellable).told if tellable else "")
        again = remarks(statement.subject, "again")
        named = [*LINES.get("user.again"), *(text for text in again if "{" in text)]
        told = voice.of(named, statement.own_slots()) or voice.of(again, statement.own_slots())
        told = told or voice.of(remarks("anything", "again"))
    remark = _remark(manners, own, statement, voice, draws)
    parts = [first, told, remark]
    if sum(map(bool, parts)) < 3 and (not remark or new is None or (not brief and draws.chance(0.35))):
        more = voice.of(remarks(statement.subject, "says"), statement.own_slots())
        parts[2:2] = [more or voice.of(remarks("anything", "says"))]
    if not any(parts):
        parts = [draws.pick(remarks("anything", "says"))]
    return put_together(parts, formal=formal, casual=True)


def _next_fact(facts: Sequence[Fact], known: set[int], own: Sequence[str], draws: Draws) -> Fact | None:
    last = given_away(facts, own[-1:])
    open_ = [at for at, fact in enumerate(facts) if fact.told and at not in known and not _is_said(fact, own)]
    following = [at for at in open_ if facts[at].leans and at - 1 in last]
    if following:
        return facts[following[0]]
    free = [at for at in open_ if not facts[at].leans or at - 1 in known]
    if not own:
        free = [at for at in free if stated(facts[at].told).subject != "hardship"] or free
    return facts[draws.pick(free)] if free else None


def _is_said(fact: Fact, own: Sequence[str]) -> bool:
    return any(fact.told in line or (fact.words and fact.words <= telling(line)) for line in own)


def _said(statement: Statement, voice: Voice, *, plain: bool, draws: Draws) -> str:
    # A statement that holds a full stop of its own cannot stand inside another sentence.
    whole = plain or statement.subject == "hardship" or draws.chance(0.55) or re.search(r"[.!?:]", statement.text)
    return ("" if whole else voice.of(LINES.get("user.leads"), statement.own_slots())) or statement.text


def _reaction(own: Sequence[str], replies: Sequence[str], brief: bool, voice: Voice, draws: Draws) -> str:
    reply = replies[-1] if replies else ""
    if not reply or draws.chance(0.55 if brief else 0.25):
        return ""
    questions = re.findall(r"[^.!?]*\?", reply)
    if questions and draws.chance(0.8):
        for answer in LINES.get("user.answers"):
            if re.search(answer["to"], questions[-1].strip(), re.IGNORECASE):
                return voice.of(answer["say"])
    if STOCK.search(reply):
        return voice.of(LINES.get("user.leaflet")) if draws.chance(0.5) else ""
    earlier = telling(" ".join(own[:-1])) - telling(own[-1])
    if len(earlier & telling(reply)) >= 2:
        return voice.of(LINES.get("user.remembered"))
    return voice.of(LINES.get("user.heard")) if draws.chance(0.5) else ""


def _remark(manners: Sequence[Manner], own: Sequence[str], told: Statement, voice: Voice, draws: Draws) -> str:
    """Let one trait show, those first that have not shown yet."""
    fitting = [manner for manner in manners if manner.grave or not told.is_grave]
    shown = {manner for line in own for manner in shown_in(line)}
    hidden = [manner for manner in fitting if manner not in shown]
    if not fitting or not draws.chance(0.9 if hidden else 0.7):
        return ""
    ordered = draws.shuffled(hidden) + draws.shuffled(fitting)
    return next((remark for manner in ordered if (remark := voice.of(manner.says))), "")
