"""The assistants of a PersonaLens dialogue.

The attentive assistant:

* takes the matter and the kind of task from the user's lines;
* quotes, on a new matter, what the summaries say about it: at most two sentences that describe a habit and mention the
  matter's preferences; they are not interpreted any further;
* asks for a preference before it offers anything, if it should be personal and knows no preference;
* otherwise says what it can do, or does it; takes up what the user says, in the user's words, and does what is
  accepted;
* mentions the day or the country, if they are given;
* closes without a question once the user has taken leave, with a summary of what was done.

The generic assistant knows nothing about the person: it speaks in general terms, stays with the first matter about one
time in three, and acts on a matter one time in two.

Neither states a fact that is not in the request: no price, no name of a place, no time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from .personalens_user import (
    FOLDER,
    DomainWords,
    Facet,
    Kind,
    choose_least_repetitive,
    extract_relevant,
    find_preferences,
    find_topic,
    load_domain,
    load_signal,
    makes_offer,
    reports_action,
)
from .understudy import Draws, MarkedRequest, sentences, understudy
from .words import Words, joined, tidy

_WORDS = Words(FOLDER / "assistant.toml")


@understudy("personalens", "assistant")
def write_reply(request: MarkedRequest, draws: Draws) -> str:
    """Write the next reply."""
    scene = _Scene(request)
    turns = [_Turn(scene, draws.fork(attempt)) for attempt in range(3)]
    tries = [turn.reply() if request.model == "attentive" else turn.generic_reply() for turn in turns]
    return choose_least_repetitive([tidy(" ".join(parts)) for parts in tries], request.said_by("assistant"))


class _Scene:
    """The assistant's reading of its request."""

    def __init__(self, request: MarkedRequest) -> None:
        self.request = request
        self.user = request.said_by("user") or [""]
        self.own = request.said_by("assistant")
        self.last, self.reply = self.user[-1], (self.own or [""])[-1]
        self.personal = bool(load_signal("personal").search(request.system))
        self.notes = {
            load_domain(part.attributes["domain"]).name: part.body
            for part in request.parts("summary")
            if part.attributes.get("domain")
        }
        self.history: list[str] = []  # the matter of each user line
        for line in self.user:
            self.history.append(find_topic(line, self.history[-1] if self.history else ""))
        if not self.history[-1] and self.notes:
            self.history[-1] = next(iter(self.notes))
        self.lasting = request.lasting_draws(self.user[0])
        tail = (sentences(self.last) or [""])[-1]
        # Whether the last line takes leave.
        self.closing = len(self.user) > 1 and not tail.endswith("?") and bool(load_signal("closing").search(tail))

    def about(self, name: str, lines: Sequence[str]) -> list[str]:
        """Return the user's lines about a matter, or the replies to them."""
        return [line for line, topic in zip(lines, self.history, strict=False) if topic == name]

    def kind(self, domain: DomainWords) -> Kind:
        """Return the kind of task: from the line that raised the matter, unless there are several matters."""
        first = (self.about(domain.name, self.user) or [""])[0]
        return domain.kind(first) if len(set(self.history)) == 1 else domain.kinds[-1]


@dataclass(frozen=True)
class _Turn:
    """One reply of the assistant, under construction."""

    scene: _Scene
    draws: Draws

    @cached_property
    def domain(self) -> DomainWords:
        return load_domain(self.scene.history[-1] or "your request")

    @cached_property
    def stated(self) -> list[tuple[Facet, str]]:
        """All preferences that the user has stated about the matter."""
        return find_preferences(self.scene.about(self.domain.name, self.scene.user), self.domain)

    @cached_property
    def fresh(self) -> str:
        """The values stated in the last line, to be repeated; empty if none is recognized."""
        return "; ".join(_to_second_person(value) for _, value in find_preferences([self.scene.last], self.domain))

    @cached_property
    def free(self) -> str:
        """A wish in the last line that matches no template and is quoted as it is."""
        if self.fresh or len(self.scene.user) < 2:
            return ""
        wishes = (part for part in sentences(self.scene.last) if load_signal("wish").search(part))
        return next((part for part in wishes if not (part.endswith("?") or load_signal("reaction").search(part))), "")

    def say(self, bank: str, **slots: str) -> str:
        kind = self.scene.kind(self.domain)
        return _WORDS.say(bank, self.draws, {"plan": kind.plan, "done": kind.done, "thing": self.domain.thing, **slots})

    def reply(self) -> list[str]:
        if self.scene.closing:
            return self._closing()
        if not self.scene.history[-1]:  # no matter has been named yet
            return [self.say("attentive.clueless")]
        visits = [extract_relevant(reply, self.domain) for reply in self.scene.about(self.domain.name, self.scene.own)]
        if any(reports_action(reply) or makes_offer(reply) for reply in visits):
            return self._next_reply(visits)
        return self._first_reply(bool(visits))

    def _left_behind(self) -> str:
        """Confirm the previous matter if the last line accepts an offer about it and moves on to the current one."""
        scene, before = self.scene, (self.scene.history[-2:-1] or [""])[0]
        if before in ("", self.domain.name) or not (
            makes_offer(scene.reply) and load_signal("accepts").search(scene.last)
        ):
            return ""
        return self.say("attentive.confirm", done=scene.kind(load_domain(before)).done)

    def _first_reply(self, again: bool) -> list[str]:
        noted = self._noted() or self._left_behind() or self.say("attentive.leads")
        remembered = [] if again else self._remembered()
        if not (again or remembered or self.stated) and self.scene.personal:
            return [noted, self._context(), self._question()]
        if remembered and self.draws.chance(0.4):
            return [noted, *remembered, self._context(), self.say("attentive.goes_by"), self.say("attentive.confirm")]
        bank = "offer_that_way" if self.fresh or self.free or remembered else "offer"
        return [noted, *remembered, self._context(), self.say(f"attentive.{bank}")]

    def _next_reply(self, visits: list[str]) -> list[str]:
        accepted = bool(load_signal("accepts").search(self.scene.last)) and not self.fresh
        if (self.fresh or self.free) and reports_action(visits[-1]):
            changed = self.say("attentive.changed", told=self.fresh) if self.fresh else self._noted()
            return [changed, self.say("attentive.more")]
        if any(map(reports_action, visits)) and not makes_offer(visits[-1]):  # do not announce a completed action again
            return [self._noted() or self.say("attentive.changed_too"), self.say("attentive.more")]
        parts = [self._noted(), self.say("attentive.confirm")]
        if accepted and self.stated and self.draws.chance(0.5):
            parts.append(
                self.say("attentive.confirm_with", told="; ".join(_to_second_person(value) for _, value in self.stated))
            )
        return [*parts, self.say("attentive.more")]

    def _noted(self) -> str:
        """Acknowledge the last line's preference; do so only sometimes if the assistant is impersonal."""
        if not (self.scene.personal or self.scene.lasting.fork("notes", len(self.scene.user)).chance(0.3)):
            return ""
        if self.fresh:
            return self.say("attentive.noted", told=self.fresh)
        return self.say("attentive.noted_quote", told=self.free) if self.free else ""

    def _question(self) -> str:
        """Ask for one of the domain's most important preferences that is not known."""
        known = {facet for facet, _ in self.stated}
        facets = [facet for facet in self.domain.facets[:3] if facet not in known and facet.ask]
        if not facets:
            return self.say("attentive.clueless")
        return self.say("attentive.ask", ask=self.draws.pick(facets[0 if self.draws.chance(0.6) else -1].ask))

    def _remembered(self) -> list[str]:
        found = select_quotes(self.scene.notes.get(self.domain.name, ""), self.domain)
        banks = ("attentive.remembers", "attentive.remembers_more")
        return [self.say(bank, quote=quote) for bank, quote in zip(banks, found, strict=False)]

    def _context(self) -> str:
        """Mention the situation or the person in a conversation's first reply, if they are given."""
        day = self.scene.request.fields("situation").get("day of the week", "")
        country = self.scene.request.fields("demographics").get("reside_country", "")
        slots = {
            "day": day if day.isalpha() else "",
            "country": country if load_signal("local").fullmatch(self.domain.name) else "",
        }
        return "" if self.scene.own else self.say("attentive.context", **slots)

    def _closing(self) -> list[str]:
        names = [name for name in dict.fromkeys(self.scene.history) if name]
        parts = [self.say("attentive.close")]
        if len(names) > 1:
            parts.append(self.say("attentive.recap_all", all=joined([load_domain(name).thing for name in names])))
        elif names and not reports_action(self.scene.reply):
            parts.append(self.say("attentive.confirm"))
        elif names and self.draws.chance(0.5):
            parts.append(self.say("attentive.recap"))
        part = self.scene.request.fields("situation").get("time of day", "").lower()
        known = part if part in ("morning", "afternoon", "evening") else ""
        return [*parts, self.say("attentive.close_more", part=known)]

    def generic_reply(self) -> list[str]:
        scene, turn = self.scene, len(self.scene.own)
        if scene.closing:
            return [self.say("generic.close")]
        name = scene.history[0] if scene.lasting.fork("stays").chance(0.35) else scene.history[-1]
        domain = load_domain(name or "your request")
        slots = {"thing": domain.thing, "done": scene.kind(domain).done}
        helps = scene.lasting.fork("helps", domain.name).chance(0.5)
        if turn and helps and (scene.about(domain.name, scene.own) or self.draws.chance(0.4)):
            return [self.say("generic.again"), self.say("generic.acts", **slots)]
        lead = self.say("generic.again" if turn else "generic.open")
        return [lead, self.say("generic.bland", **slots), self.say("generic.tail")]


def _to_second_person(value: str) -> str:
    return re.sub(r"\bmy\b", "your", re.sub(r"\bI\b", "you", value))


@lru_cache(maxsize=1024)
def select_quotes(summary: str, domain: DomainWords) -> tuple[str, ...]:
    """Return the sentences of a summary that say most about a person's habits in a domain, at most two, in order."""
    found = [part for part in sentences(summary) if len(part.split()) <= 32]

    def weight(part: str) -> float:
        cues = (f"(?:{facet.names})|(?:{facet.asked})" for facet in domain.facets)
        touched = sum(bool(re.search(cue, part, re.IGNORECASE)) for cue in cues)
        named = min(3, len(re.findall(r"(?<=[\w,;:] )[A-ZÀ-Þ\d]", part)))
        words = len(part.split())
        return touched + named + bool(load_signal("habit").search(part)) - words / 15 - 2 * (words < 8)

    best = sorted(found, key=weight, reverse=True)[:2]
    if sum(len(part.split()) for part in best) > 44:
        best = best[:1]
    return tuple(part if part[-1] in ".!?" else f"{part}." for part in found if part in best)
