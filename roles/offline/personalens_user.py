"""The simulated user of a PersonaLens dialogue.

The rules:

* The user opens with the matter alone. Of several matters the first one is named last, and they are handled in turn.
* A user has a patience (0 to 2), drawn by a hash of the person's parts, which decides how many preferences are
  important.
* Each reply is evaluated: which preferences it honours, what it asks, whether it does or proposes something.
* The user states what is asked for, one or two preferences a line; otherwise the next important preference that nobody
  has named. One that the reply ignored is stated once more.
* A reply about another matter is corrected, at most twice; one that does nothing at all is complained of once.
* Once something was done or proposed and nothing is left to say, the user accepts, and goes on or ends with TERMINATE.
  If nothing was done by then, or the turns are used up, the user says that they will handle it themselves.

All of it is recomputed from the replies of the conversation, so the user needs no memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .personalens_domains import (
    USER,
    DomainWords,
    Facet,
    Wish,
    acts,
    affinities,
    concerning,
    domain_named,
    offers,
    signal,
    strays,
    topic_of_line,
    topics,
    wishes,
)
from .request import Draws, MarkedRequest, mentions_any, sentences
from .understudy import understudy
from .words import joined, say, tidy

END_MARK = "TERMINATE"


@dataclass
class _Step:
    """The progress of one matter of the task."""

    domain: DomainWords
    wishes: list[Wish]
    important: int
    limit: int
    told: list[Facet] = field(default_factory=list)
    honoured: set[Facet] = field(default_factory=set)
    turns: int = 0
    corrected: int = 0
    pressed: bool = False
    handled: bool = False
    accepted: bool = False

    def untold(self) -> list[Facet]:
        """Return the important facets that neither side has named."""
        return [f for f, _ in self.wishes[: self.important] if f not in self.told and f not in self.honoured]

    def passed_over(self) -> list[Facet]:
        """Return the facets that the user has stated and no reply has taken up."""
        return [facet for facet in self.told if facet not in self.honoured]

    def values(self, facet: Facet) -> list[str]:
        return next((values for known, values in self.wishes if known is facet), [])


@dataclass(frozen=True)
class _Move:
    """The user's next move: a reaction, preferences to state, a step to go on to, or the end."""

    step: _Step
    reaction: str  # a bank of user.toml, or empty
    tell: tuple[Facet, ...] = ()
    lead: str = "leads"
    following: _Step | None = None
    ends: bool = False


class _Plan:
    """The user's side of a dialogue."""

    def __init__(self, request: MarkedRequest) -> None:
        draws = request.lasting_draws("patience")
        self.patience = draws.number(0, 2)
        found = affinities(request) or [(domain_named(next(iter(topics(request.part("task"))), "Services")), {})]
        single = len(found) == 1
        self.cap = 7 if single else 13
        self.steps: list[_Step] = []
        for domain, fields in found:
            listed = wishes(domain, fields, request.part("task"))
            important = 1 + self.patience + draws.chance(0.5) if single else 1 + draws.chance(0.25 + self.patience / 4)
            limit = 4 + self.patience if single else 2 if len(found) > 3 else 3
            self.steps.append(_Step(domain, listed, important, limit))
        self.at = 0

    def move_after(self, replies: list[str]) -> _Move:
        """Return the move after the last reply; there must be one."""
        moves = [self._decide(reply, turn) for turn, reply in enumerate(replies, start=1)]
        return moves[-1]

    def _decide(self, reply: str, turn: int) -> _Move:
        now = self.steps[self.at]
        now.turns += 1
        fresh = {facet for facet, values in now.wishes if mentions_any(reply, values)} - now.honoured
        now.honoured |= fresh
        astray = not fresh and strays(reply, now.domain)
        if not astray:
            reply = concerning(reply, now.domain)
            now.handled |= acts(reply) or offers(reply) or bool(signal("proposed").search(reply))
        if turn >= self.cap:
            return _Move(now, "gives_up" if not now.handled else "fits", ends=True)
        if astray and now.corrected < 2:
            now.corrected += 1
            now.turns -= 1
            return _Move(now, "strayed")
        return (self._stay(now, reply, fresh) if now.turns < now.limit else None) or self._go_on(now, reply)

    def _stay(self, now: _Step, reply: str, fresh: set[Facet]) -> _Move | None:
        """Return a move within the current matter; `None` if nothing is left to say."""
        questions = [part for part in sentences(reply) if part.endswith("?") and not offers(part)]
        questions = [part for part in questions if not signal("more").search(part)]
        asked = [facet for facet, _ in now.wishes if facet not in now.told and facet.is_asked_in(questions)]
        acted = acts(reply)
        if not asked and not now.pressed and now.passed_over() and not fresh:
            now.pressed = True
            return _Move(now, "", (now.passed_over()[0],), "again")
        tell = asked[:2] or now.untold()[:1]
        if tell:
            now.told += tell
            now.pressed = False
            idle = questions and not (asked or acted)
            surprised = fresh - set(now.told)
            reaction = "fits" if surprised else "no_preference" if idle else "partly" if now.handled else ""
            return _Move(now, reaction, tuple(tell), "late" if acted and not asked else "leads")
        if questions and not acted:
            return _Move(now, "no_preference")
        if not now.handled and not now.pressed:
            now.pressed = True
            return _Move(now, "ignored")
        if not now.accepted and not acted and offers(reply):
            now.accepted = True
            return _Move(now, "accept") if self.at + 1 == len(self.steps) else None
        return None

    def _go_on(self, now: _Step, reply: str) -> _Move:
        """Move on to the next matter, or end."""
        offered = offers(reply)
        good = now.handled and len(now.passed_over()) <= len(now.honoured)
        reaction = ("accept" if offered else "fits") if good else "partly" if now.handled else "gives_up"
        if self.at + 1 == len(self.steps):
            return _Move(now, reaction, ends=True)
        self.at += 1
        return _Move(now, reaction, following=self.steps[self.at])


@understudy("personalens", "user")
def user_line(request: MarkedRequest, draws: Draws) -> str:
    """Write the user's next line."""
    plan = _Plan(request)
    replies = request.said_by("assistant")
    if not replies:
        return _opening(request, plan, draws)
    move = plan.move_after(replies)
    own = request.said_by("user")
    tries = [_spoken(move, _register(request), draws.fork(attempt)) for attempt in range(4)]
    text = least_repeating(tries, own)
    return f"{text} {END_MARK}" if move.ends else text


def _opening(request: MarkedRequest, plan: _Plan, draws: Draws) -> str:
    first = plan.steps[0].domain
    values = [value for step in plan.steps for _, wish in step.wishes for value in wish]
    if len(plan.steps) == 1:
        banks = [first.kind(request.part("task")).open, first.kinds[-1].open, USER.get("help")]
    else:
        banks = [USER.get("begin"), USER.get("help")]
    slots = {"matter": first.matter, "all": joined([step.domain.matter for step in plan.steps])}
    greeting = draws.pick(USER.get("greeting"))
    for bank in banks:
        text = tidy(greeting + say(bank, draws, slots))
        if not mentions_any(text, values) and topic_of_line(text, "") == first.name:
            return text
    return tidy(greeting + say(USER.get("help"), draws, slots))


def _spoken(move: _Move, register: str, draws: Draws) -> str:
    parts = [USER.say(move.reaction, draws) or USER.say(f"{move.reaction}.{register}", draws)] if move.reaction else []
    if move.reaction == "strayed":
        parts = [USER.say("strayed", draws, {"matter": move.step.domain.matter})]
    for at, facet in enumerate(move.tell):
        lead = "leads" if at else move.lead
        parts.append(_told(move.step, facet, lead if parts or lead != "leads" else "", draws))
    if move.following:
        parts.append(USER.say("next", draws, {"matter": move.following.domain.matter}))
    if move.ends:
        parts.append(USER.say(f"ends.{register}", draws))
    return tidy(" ".join(parts) or USER.say(f"partly.{register}", draws))


def _told(step: _Step, facet: Facet, lead: str, draws: Draws) -> str:
    values = [_own(value) for value in step.values(facet)]
    most = 1 if facet.one or any("," in value or " and " in value for value in values) else 2
    slots = {"v": joined(values[:most]), "noun": facet.noun}
    clause = say(facet.reveal, draws, slots) or say(USER.get("frames"), draws, slots)
    before = draws.pick(USER.get(lead, ("",)))
    if before and not before.endswith(". ") and not clause.startswith(("I ", "I'")):
        clause = clause[0].lower() + clause[1:]
    return f"{before}{clause}."


def _own(value: str) -> str:
    """Return a value in the first person."""
    return re.sub(r"\b(?:her|his|their)\b", "my", value)


def _register(request: MarkedRequest) -> str:
    """Return the person's register, by proficiency in English and age."""
    about = request.fields("demographics")
    if re.search(r"beginner|basic|intermediate|limited", about.get("english_proficiency", ""), re.IGNORECASE):
        return "simple"
    age = int((re.findall(r"\d+", about.get("age", "")) or ["40"])[0])
    return "casual" if age < 35 else "polite" if age >= 55 else "plain"


def least_repeating(tries: list[str], own: list[str]) -> str:
    """Return the line that repeats the fewest sentences."""
    before = {part for line in own for part in sentences(line)}
    return min(tries, key=lambda text: (text in own, sum(part in before for part in sentences(text))))


def told_by(lines: Iterable[str], domain: DomainWords) -> list[tuple[Facet, str]]:
    """Return the preferences stated in lines of the user's understudy, in order."""
    found = (domain.told(part) for line in lines for part in sentences(line))
    return [pair for pair in found if pair]
