"""The attentive assistant: uses what it is shown and what it has been told, and gets things done."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .domains import UNCLEAR, domain_named
from .draws import Draws
from .grammar import render_first
from .knowledge import Facts, from_line
from .model import Domain, Facet, Slots
from .plan import acted, done_with
from .prose import joined, sentences, tidy
from .recall import context_line, guess_line, kept_in_mind, notes
from .replyphrases import (
    ACKNOWLEDGE,
    ADAPTED,
    ASK_MORE,
    CLOSE,
    DEFAULTS,
    DONE_LEAD,
    GO_AHEAD,
    MEMORY_LEAD,
    MOVE_ON,
    NEEDS,
    PLAIN_LEAD,
    RECAP,
    REVISED,
    SHORT,
    SUMMARY,
    WHAT_ABOUT,
    WISH,
)
from .scene import LOCAL, Scene, slots_of, understand
from .tags import Request
from .wordbank.cities import town_of

# News of these kinds calls for another offer; the rest only refines the one on the table.
_DECISIVE = frozenset(
    ["genre", "cuisine", "author", "kind", "category", "type", "chain", "sport", "team", "hours", "sector"]
)
# Kinds of task that are done at once, without asking first.
_AT_ONCE = frozenset(["setup", "send", "share", "cancel", "change", "review", "block", "track"])
_NEEDS_NOTHING = frozenset(["share", "cancel", "block", "review"])
_GO_AHEADS = frozenset(line for lines in GO_AHEAD.values() for line in lines)


def attentive_reply(request: Request, stable: Draws, wording: Draws) -> str:
    """Write the next reply. `stable` keeps the offers of one dialogue the same, `wording` varies the sentences."""
    scene = understand(request)
    text = ""
    for attempt in range(4):
        text = tidy(_Turn(scene, stable, wording.fork(attempt)).reply())
        if text and text not in scene.own_lines:
            break
    return text or "I'm here. What can I do for you?"


@dataclass(frozen=True)
class _Turn:
    """One reply in the making."""

    scene: Scene
    stable: Draws
    draws: Draws

    @cached_property
    def domain(self) -> Domain:
        return self.scene.current

    @cached_property
    def kind(self) -> str:
        return self.scene.kind(self.domain)

    @cached_property
    def facts(self) -> Facts:
        return self.scene.facts.get(self.domain.name, {})

    @cached_property
    def slots(self) -> Slots:
        return self.slots_for(self.domain)

    @cached_property
    def fresh(self) -> list[tuple[Facet, str]]:
        """The preferences that the last line states, as phrases; an opening states none worth repeating."""
        if len(self.scene.user_lines) < 2:
            return []
        told = from_line(self.domain, self.scene.user_lines[-1])
        return [(facet, facet.phrase(told[facet.key][:2])) for facet in self.domain.facets if told.get(facet.key)]

    @cached_property
    def missing(self) -> list[str]:
        """The circumstances without which nothing can be done and that nobody has mentioned."""
        if self.kind in _NEEDS_NOTHING:
            return []
        said = self.scene.said.get(self.domain.name, {})
        known = {"dest"} if said.get("list") else {"service"} if said.get("service") else set()
        return [need for need in self.domain.needs if not self.scene.practical.get(need) and need not in known]

    def slots_for(self, domain: Domain) -> Slots:
        """Give what the templates of a domain may need."""
        facts = self.scene.facts.get(domain.name, {})
        return slots_of(self.scene, domain, facts, self.stable.fork("offer", domain.name))

    def assumed(self, domain: Domain, slots: Slots) -> Slots:
        """Add what an assistant assumes when nobody said anything."""
        return {**DEFAULTS.get(domain.name, {}), **{key: value for key, value in slots.items() if value}}

    def reply(self) -> str:
        if self.scene.current is UNCLEAR:
            return self.draws.pick(WHAT_ABOUT)
        if self.scene.closing:
            parts = self._closing()
        elif self.scene.has_offered:
            parts = self._next_reply()
        else:
            parts = self._first_reply()
        return " ".join(part for part in parts if part)

    def _first_reply(self) -> list[str]:
        first_visit = not self.scene.visits
        if first_visit and not self.facts and self.scene.personal:
            return self._question_first()
        vital = any(need != "date" for need in self.missing)
        if first_visit and self.missing and (vital or self.draws.chance(0.3)):
            lead = render_first(PLAIN_LEAD, {}, self.draws)
            return [lead, kept_in_mind(self.scene, self.domain, self.draws), self._need()]
        offer = self._offer()
        most = 2 if self.scene.personal else 1
        return [
            self._lead(),
            offer,
            *notes(self.scene, self.domain, offer, self.draws, most),
            guess_line(self.scene, self.domain, self.draws),
            context_line(self.scene, self.domain, offer, self.draws),
            self._need() if self.missing else self._follow_up(),
        ]

    def _next_reply(self) -> list[str]:
        lead = self._acknowledgement()
        if not lead and self.scene.accepted:
            lead = self.draws.pick(DONE_LEAD)
        if not self.scene.accepted and any(facet.key in _DECISIVE for facet, _ in self.fresh):
            revised = self.draws.pick(REVISED) if self.scene.visits and self.draws.chance(0.6) else ""
            parts = [lead, revised, self._offer(), self._follow_up()]
        else:
            templates = self.domain.done.get(self.kind) or self.domain.done[""]
            done = render_first(templates, self.assumed(self.domain, self.slots), self.draws)
            if self.fresh and not self.scene.accepted and done_with(self.scene.own_lines[-1]):
                told = joined([phrase for _, phrase in self.fresh[:2]])
                lead = render_first(ADAPTED, {"p": told}, self.draws)
            parts = [lead, done, self.draws.pick(MOVE_ON) if self.draws.chance(0.45) else ""]
        if self.fresh and not self.scene.accepted:
            parts.insert(-1, guess_line(self.scene, self.domain, self.draws))
        return parts

    def _question_first(self) -> list[str]:
        """Ask before offering, because nothing is known yet."""
        parts = [render_first(PLAIN_LEAD, {}, self.draws)]
        place = town_of(self.scene.situation.get("location", ""))
        if place and self.domain.name in LOCAL and self.draws.chance(0.5):
            parts.append(
                render_first(("I'll <look around in|keep it close to> {place}.",), {"place": place}, self.draws)
            )
        questions = [facet.ask for facet in self.domain.facets[:3]]
        ask_need = bool(self.missing) and self.draws.chance(0.6)
        if ask_need:
            parts.append(self._need())
        if questions and (not ask_need or self.draws.chance(0.5)):
            first = ask_need or self.draws.chance(0.65)
            parts.append(render_first(questions[0] if first else self.draws.pick(questions), {}, self.draws))
        elif not ask_need:
            parts.append(self.draws.pick(NEEDS["more"]))
        return parts

    def _lead(self) -> str:
        if self.fresh:
            return self._acknowledgement()
        remembers = self.scene.remembered.get(self.domain.name) and not self.scene.visits
        return render_first(MEMORY_LEAD if remembers else PLAIN_LEAD, {}, self.draws)

    def _acknowledgement(self) -> str:
        told = joined([phrase for _, phrase in self.fresh[:2]])
        return render_first(ACKNOWLEDGE, {"p": told}, self.draws) if told else ""

    def _need(self) -> str:
        return self.draws.pick(NEEDS[self.missing[0]])

    def _offer(self) -> str:
        templates = self.domain.offers.get(self.kind) or self.domain.offers[""]
        full = self.assumed(self.domain, self.slots)
        return (
            render_first(templates, self.slots, self.draws)
            or render_first(templates, full, self.draws)
            or render_first(self.domain.offers[""], full, self.draws)
        )

    def _follow_up(self) -> str:
        """End on one sensible question, or on none."""
        unknown = [facet for facet in self.domain.facets[:4] if not self.facts.get(facet.key)]
        if unknown and self.scene.personal and len(self.scene.visits) < 2 and self.draws.chance(0.3):
            return render_first(unknown[0].ask, {}, self.draws)
        if self.kind in _AT_ONCE or self.draws.chance(0.2):
            return self.draws.pick(ASK_MORE) if self.draws.chance(0.4) else ""
        return self.draws.pick(GO_AHEAD.get(self.kind) or GO_AHEAD.get(self.domain.name) or GO_AHEAD[""])

    def _closing(self) -> list[str]:
        """Take leave with the concrete result: what is still to be confirmed, else a wish that names it."""
        parts = [self.draws.pick(RECAP)]
        names = list(dict.fromkeys(domain.name for domain in self.scene.history))
        slots = self.assumed(self.domain, self.slots)
        if len(names) > 1:
            results = [result for result in map(self._result, names) if result]
            parts.append(render_first(SUMMARY, {"all": joined(results)}, self.draws))
        elif not (self.scene.own_lines and _settles(self.scene.own_lines[-1])):
            parts.append(render_first(self.domain.done.get(self.kind) or self.domain.done[""], slots, self.draws))
        wish = render_first(WISH.get(self.domain.name, ()), slots, self.draws)
        parts.append(wish if wish and self.draws.chance(0.85) else self.draws.pick(CLOSE))
        return parts

    def _result(self, name: str) -> str:
        domain = domain_named(name)
        templates = SHORT.get(name, (f"the {name.lower()} part",))
        return render_first(templates, self.assumed(domain, self.slots_for(domain)), self.draws)


def _settles(reply: str) -> bool:
    """Tell whether a reply says that the thing is done, rather than proposing it."""
    return acted(reply) and (sentences(reply) or [""])[-1] not in _GO_AHEADS
