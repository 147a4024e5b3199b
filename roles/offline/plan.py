"""What the simulated user decides to do next; replayed over the assistant's replies, so it needs no memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .circumstances import ASKED
from .domains import domain_named, facets_of, relevant
from .draws import Draws
from .echoes import strays
from .knowledge import from_line
from .lazy import Lazy
from .matching import content_words, mentions, mentions_any
from .model import Domain, Facet
from .prose import sentences
from .tags import Request

_ACTED = Lazy(
    r"\bI(?:['’]ve| have)? (?:\w+ )?(?:set|booked|reserved|scheduled|put|saved|sent|written|bought|ordered|"
    r"moved|changed|updated|switched|"
    r"blocked|muted|shared|queued|made|added|gone through|checked|pulled|compared|entered|found|picked|"
    r"rescheduled)\b"
    r"|\b(?:is|are|it's) (?:now )?(?:set|booked|reserved|confirmed|saved|paused|muted|on your list|in your|"
    r"yours|out|on its way|ready)\b"
    r"|\bDone\b|\bAll (?:done|set|sent)\b|\bMessage sent\b",
    re.IGNORECASE,
)
_PROPOSED = Lazy(
    r"\bHow about\b|\bI['’]d (?:suggest|try|start|go|take|pick|watch|look|order|plan)|\bMy (?:pick|choice|"
    r"suggestion)|\bThere(?:'s| is| are)"
    r"|\bHere(?:'s| are| is)|\bTwo (?:ideas|that|to)|\blooks? (?:right|best)|\bpicks? (?:is|are)|\bwould be "
    r"my|\bFor \w+ I|\bTo \w+ I"
    r"|\bcan move you|\bcomes to mind|\bThe (?:line|\d)|\bIn \w+ I'd|\bSide by side|\bTracking is on|\bThis "
    r"week|\bIn short|\bAlerts for|\bworth\b",
    re.IGNORECASE,
)

_CONCRETE = Lazy(r"\b\d{1,2}:\d\d\b|\$\d|[\"“][A-Z]| by [A-Z]\w+ [A-Z]")
_FINAL = Lazy(r"\bI['’]ve (?:booked|reserved|ordered|bought|sent)\b|\b(?:is|are) (?:booked|reserved|confirmed|sent)\b")


def acted(text: str) -> bool:
    """Tell whether the assistant says that it did something."""
    return bool(_ACTED.search(text))


def proposed(text: str) -> bool:
    """Tell whether the assistant puts something concrete forward."""
    return bool(_PROPOSED.search(text) or _CONCRETE.search(text)) or acted(text)


def done_with(text: str) -> bool:
    """Tell whether the assistant says that it is done, with no question left."""
    return bool(_FINAL.search(text)) and not text.rstrip().endswith("?")


@dataclass
class Progress:
    """How far one domain of the task has come."""

    domain: Domain
    wanted: list[tuple[Facet, list[str]]]
    important: int
    limit: int
    said: list[str] = field(default_factory=list)
    honoured: set[str] = field(default_factory=set)
    turns: int = 0
    nagged: int = 0
    corrected: int = 0
    handled: bool = False

    def open_facets(self) -> list[Facet]:
        """Give the facets that matter and that neither side has brought up."""
        return [
            facet
            for facet, _ in self.wanted[: self.important]
            if facet.key not in self.said and facet.key not in self.honoured
        ]

    def unheard(self) -> list[Facet]:
        """Give the facets that the user has stated and the assistant has not taken up."""
        return [facet for facet, _ in self.wanted if facet.key in self.said and facet.key not in self.honoured]

    def values(self, facet: Facet) -> list[str]:
        """Give the person's values of a facet."""
        return next((values for known, values in self.wanted if known is facet), [])


@dataclass(frozen=True)
class Move:
    """One decision: how to react, what to reveal or answer, and where to go next."""

    progress: Progress
    reaction: str  # fits | partly | wrong | strayed | ignored | again | settles | none
    reveal: tuple[Facet, ...] = ()
    no_preference: bool = False
    needs: tuple[str, ...] = ()
    accept: bool = False
    late: bool = False  # the thing is done already, so what is revealed now changes it
    grudging: bool = False
    following: Progress | None = None
    ends: bool = False


class Plan:
    """The user's side of a dialogue as a state machine over the assistant's replies."""

    def __init__(self, request: Request, draws: Draws) -> None:
        """Set the person's patience and what matters to them, from the stable part of the request only."""
        temper = draws.fork("temper")
        self.patience = temper.number(0, 2)
        self.talkative = temper.number(2, 10) / 10
        self._draws = draws
        names = list(request.affinities) or ["Services"]
        self.single = len(names) == 1
        self._cap = 7 if self.single else 13
        self.steps = [self._progress(request, name, temper) for name in names]
        self._at = 0

    def _progress(self, request: Request, name: str, temper: Draws) -> Progress:
        pairs = facets_of(name, request.affinities.get(name, {}))
        wanted = relevant(pairs, request.task)
        if self.single:
            important = 1 + self.patience + temper.chance(0.5)
        else:
            important = 1 + temper.chance(0.25 + self.patience * 0.25)
        limit = 3 + self.patience if self.single else (2 if len(request.affinities) > 3 else 3)
        return Progress(domain_named(name), wanted, min(important, max(1, len(wanted))), limit)

    def next_move(self, replies: list[str]) -> Move:
        """Give the decision that follows the last of the assistant's replies, of which there must be one."""
        move = self._decide(replies[0], 0)
        for turn, reply in enumerate(replies[1:], start=1):
            move = self._decide(reply, turn)
        return move

    def _decide(self, reply: str, turn: int) -> Move:
        now = self.steps[self._at]
        now.turns += 1
        draws = self._draws.fork("decide", turn)
        fresh = {facet.key for facet, values in now.wanted if mentions_any(reply, values)} - now.honoured
        now.honoured |= fresh
        astray = not fresh and bool(strays(reply, now.domain.name))
        now.handled = now.handled or (proposed(reply) and not astray)
        if astray and now.corrected < 2 and turn + 1 < self._cap:
            now.corrected += 1
            now.turns -= 1
            return Move(now, "strayed")
        if turn + 1 >= self._cap:
            return Move(now, "fits" if now.handled else "ignored", grudging=not now.handled, ends=True)
        wrong = self._contradicted(now, reply)
        move = self._stay(now, reply, bool(fresh), wrong, draws) if now.turns < now.limit else None
        if move:
            return move
        if now.handled and not wrong and len(now.unheard()) <= len(now.honoured):
            return self._go_on(now, reply, draws, "fits")
        return self._go_on(now, reply, draws, "settles" if now.handled and draws.chance(0.6) else "ignored")

    def _stay(self, now: Progress, reply: str, fresh: bool, wrong: Facet | None, draws: Draws) -> Move | None:
        """Say more about the current domain; None when there is nothing left to say about it."""
        asked, needs, idle = self._asked(now, reply)
        unheard = now.unheard()
        if unheard and not (asked or needs or fresh or now.nagged) and proposed(reply):
            now.nagged += 1
            return Move(now, "again", tuple(unheard[:1]))
        reveal = asked or ([wrong] if wrong else [])
        if not reveal and not (needs and self.patience == 0):
            reveal = now.open_facets()[: 1 + (self.patience > 0 and draws.chance(0.45))]
        if reveal or needs or idle:
            reaction = self._reaction(now, reply, fresh, wrong)
            now.said += [facet.key for facet in reveal]
            accept = self._offers(reply) and not wrong
            late = bool(reveal) and not asked and done_with(reply)
            return Move(now, reaction, tuple(reveal), idle and not reveal, tuple(needs), accept, late)
        if not now.handled and now.nagged == 0:
            now.nagged += 1
            return Move(now, "ignored", tuple(unheard[:1]))
        return None

    @staticmethod
    def _reaction(now: Progress, reply: str, fresh: bool, wrong: Facet | None) -> str:
        if wrong:
            return "wrong"
        if fresh:
            return "partly" if now.open_facets() else "fits"
        return "partly" if proposed(reply) and not now.unheard() else "none"

    def _go_on(self, now: Progress, reply: str, draws: Draws, reaction: str) -> Move:
        pending = self._offers(reply)
        if self._at + 1 < len(self.steps):
            self._at += 1
            following = self.steps[self._at]
            reveal: tuple[Facet, ...] = ()
            if following.wanted and draws.chance(0.3):
                reveal = (following.wanted[0][0],)
                following.said.append(reveal[0].key)
            return Move(
                now,
                reaction,
                reveal,
                accept=pending and reaction == "fits",
                grudging=reaction == "ignored",
                following=following,
            )
        if pending and reaction == "fits" and now.turns < now.limit + 1 and not draws.chance(0.3):
            now.limit = 0
            return Move(now, reaction, accept=True)
        return Move(now, reaction, accept=pending and reaction == "fits", grudging=reaction == "ignored", ends=True)

    @staticmethod
    def _offers(reply: str) -> bool:
        last = sentences(reply)[-1:] or [""]
        return bool(
            re.search(
                r"^(?:\w+, )?(?:shall I|should I|may I|can I|do you want me|would you like me|want me)\b",
                last[0],
                re.IGNORECASE,
            )
        ) and last[0].endswith("?")

    @staticmethod
    def _asked(now: Progress, reply: str) -> tuple[list[Facet], list[str], bool]:
        questions = [part for part in sentences(reply) if part.endswith("?")]
        asked = [
            facet
            for facet, _ in now.wanted
            if any(re.search(facet.asked, question, re.IGNORECASE) for question in questions)
        ]
        asked = [facet for facet in asked if facet.key not in now.said][:2]
        needs = [
            need
            for need, cue in ASKED.items()
            if any(re.search(cue, question, re.IGNORECASE) for question in questions)
        ]
        instead = {need: key for need, key in (("service", "service"), ("dest", "list")) if need in needs}
        wanted = [facet for facet, _ in now.wanted if facet.key in instead.values()]
        if wanted:
            asked = wanted + [facet for facet in asked if facet not in wanted]
            needs = [need for need in needs if instead.get(need) not in {facet.key for facet in wanted}]
        unknown = [
            facet for facet in now.domain.facets if any(re.search(facet.asked, q, re.IGNORECASE) for q in questions)
        ]
        return asked, needs[:2], bool(unknown) and not asked and not needs

    @staticmethod
    def _contradicted(now: Progress, reply: str) -> Facet | None:
        """Find a single choice that the assistant states otherwise than the person would have it."""
        told = from_line(now.domain, " ".join(part for part in sentences(reply) if not part.endswith("?")))
        for facet, values in now.wanted:
            if (
                facet.key not in ("time", "seat", "repeat", "cabin", "room", "sound")
                or facet.key in now.honoured
                or facet.key in now.said[-1:]
            ):
                continue
            stated = told.get(facet.key, [])
            if stated and not any(
                mentions(value, stated[0]) or content_words(value) & content_words(stated[0]) for value in values
            ):
                return facet
        return None
