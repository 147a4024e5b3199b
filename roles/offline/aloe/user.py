"""The person in an open chat.

Its rules: each line tells one fact of the profile that was not told yet, in a drawn order, as long as there is one;
what only makes sense after the sentence before it comes right after that one, and nobody begins with a hardship. When
all is told, it comes back to something. It may react to what was answered, and one trait may show in a remark, first of
all one that has not shown yet. No remark is made twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..draws import Draws
from ..request import MarkedRequest
from ..understudy import understudy
from .english import LINES, telling
from .facts import Fact, Facts, facts_of, given_away, traits_of
from .judges import stock_phrase
from .manners import MANNERS, Voice, fitting, new_line, shown_in
from .statements import SUBJECTS, Statement, stated

BRIEF = frozenset(("reserved", "blunt", "impatient"))


@understudy("aloe", "user", marks=("profile",))
def write(request: MarkedRequest, draws: Draws) -> str:
    """Write the person's next line."""
    facts, manners = facts_of(request.part("profile")), traits_of(request.part("personality"))
    own, replies = request.said_by("user"), request.said_by("assistant")
    return new_line(own, draws, lambda fork: _remarks(facts, manners, own, replies, fork)) or "Well, here I am."


def _remarks(
    facts: Facts, manners: Sequence[str], own: Sequence[str], replies: Sequence[str], draws: Draws
) -> list[str]:
    voice = Voice(own, draws)
    brief = not BRIEF.isdisjoint(manners)
    hello = "hello_formal" if "formal" in manners else "hello_brief" if brief else "hello"
    first = _reaction(own, replies, brief, voice, draws) if own else voice.of(LINES.get(f"user.{hello}"))
    new = _next_fact(facts, own, draws)
    if new:
        statement = stated(new.told)
        # What holds a full stop of its own cannot stand inside another sentence.
        whole = not own or statement.subject == "hardship" or draws.chance(0.55) or re.search(r"[.!?:]", new.told)
        told = ("" if whole else voice.of(LINES.get("user.leads"), statement.slots)) or new.told
    else:
        statement = stated(draws.pick([fact.told for fact in facts if fact.told] or [""]))
        again = SUBJECTS.get(f"{statement.subject}.again")
        told = voice.of([*LINES.get("user.again"), *(text for text in again if "{" in text)], statement.slots)
        told = told or voice.of(again, statement.slots) or voice.of(SUBJECTS.get("anything.again"))
    remark = _remark(manners, own, statement, voice, draws)
    more = ""
    if not (first and remark) and (not remark or not new or (not brief and draws.chance(0.35))):
        more = voice.of(SUBJECTS.get(f"{statement.subject}.says")) or voice.of(SUBJECTS.get("anything.says"))
    return [first, told, more, remark]


def _next_fact(facts: Facts, own: Sequence[str], draws: Draws) -> Fact | None:
    known, last = given_away(facts, own), given_away(facts, own[-1:])
    said = frozenset().union(*(telling(line) for line in own))
    open_ = [at for at, fact in enumerate(facts) if fact.told and at not in known and not fact.words <= said]
    following = [at for at in open_ if facts[at].leans and at - 1 in last]
    free = following[:1] or [at for at in open_ if not facts[at].leans or at - 1 in known]
    if not own:
        free = [at for at in free if stated(facts[at].told).subject != "hardship"] or free
    return facts[draws.pick(free)] if free else None


def _reaction(own: Sequence[str], replies: Sequence[str], brief: bool, voice: Voice, draws: Draws) -> str:
    reply = replies[-1] if replies else ""
    if not reply or draws.chance(0.55 if brief else 0.25):
        return ""
    question = next(reversed(re.findall(r"[^.!?]*\?", reply)), "").lower()
    if question and draws.chance(0.8):
        return next(voice.of(each["say"]) for each in LINES.get("user.answers") if re.search(each["to"], question))
    earlier = telling(" ".join(own[:-1])) - telling(own[-1])
    if len(earlier & telling(reply)) >= 2:
        return voice.of(LINES.get("user.remembered"))
    return voice.of(LINES.get("user.leaflet" if stock_phrase(reply) else "user.heard")) if draws.chance(0.5) else ""


def _remark(manners: Sequence[str], own: Sequence[str], told: Statement, voice: Voice, draws: Draws) -> str:
    """Let one trait show, those first that have not shown yet."""
    possible = fitting(manners, told.subject)
    shown = {name for line in own for name in shown_in(line)}
    hidden = [name for name in possible if name not in shown]
    if not draws.chance(0.9 if hidden else 0.7):
        return ""
    ordered = draws.shuffled(hidden) + draws.shuffled(possible)
    return next((remark for name in ordered if (remark := voice.of(MANNERS.get(f"{name}.says")))), "")
