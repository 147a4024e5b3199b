"""What an assistant can make out from its request: which domain is current, what it knows, what it has done."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from . import circumstances
from .domains import UNCLEAR, domain_named
from .draws import Draws
from .knowledge import Facts, from_line, from_summary, merged
from .lazy import Lazy
from .model import Domain, Slots
from .plan import proposed
from .prose import capitalised, sentences
from .tags import Request
from .topics import topic_of_line
from .wordbank.cities import town_of

_CLOSING = Lazy(
    r"\b(?:thanks?|thank you|cheers|obliged|grateful|that(?:'s| is) (?:all|everything|it)|all set|bye|you've been|"
    r"happy now|that will have to do|"
    r"sort (?:it|that part) out myself|take it from there)\b",
    re.IGNORECASE,
)
_ACCEPT = Lazy(
    r"\b(?:go (?:ahead|for it)|please do|yes,? please|do (?:it|that)|let's do|that one|book it|sounds? "
    r"(?:great|right|good|lovely)|"
    r"that works|spot on|perfect|that fits|suits me|just right|yep|yeah|yes)\b",
    re.IGNORECASE,
)
_KINDS = (
    ("earlier", r"\bminutes earlier\b"),
    ("save", r"\b(?:saving for|put aside|afford)\b"),
    ("alert", r"\bstrange charge|\balerts set up\b"),
    ("exercise", r"\bmoving again|fortnight\b"),
    ("exchange", r"\bwrong size|exchange\w*\b"),
    ("replace", r"\breplacement|worn out|run out\b"),
    ("share", r"\bshare\b.*\blocation|\blocation\b.*\bwith\b"),
    ("cancel", r"\b(?:cancel|disable|turn off|switch off|mute|leave (?:a|the) group)\b"),
    ("change", r"\b(?:change|modify|reschedule|move|update|adjust|existing)\b"),
    ("block", r"\bblock\b.*\btrip\b"),
    ("shop", r"\b(?:merchandise|memorabilia)\b"),
    ("review", r"\b(?:review|go through|check my|my (?:next|upcoming) schedule)\b"),
    (
        "deliver",
        r"\b(?:deliver\w*|movie night|film night|gaming night|game night|viewing party|takeaway|"
        r"order (?:food|dinner))\b",
    ),
    (
        "track",
        r"\b(?:track|stay informed|keep (?:up|track)|updates|latest|notifications?|watchlist|new "
        r"releases and trends)\b",
    ),
    ("compare", r"\b(?:compare|performance|statistics|records|numbers)\b"),
    (
        "book",
        r"\b(?:find and book|reserve|buy|purchase|tickets?|order|book (?!club|series|recommend|ideas|"
        r"on\b)(?:a|an|my|the|it|flights)\b)",
    ),
    ("setup", r"\b(?:playlist|set up|create|schedule)\b"),
    ("plan", r"\b(?:plan|organi[sz]e|attend\w*|multi-city)\b"),
    ("recommend", r"\b(?:recommend|find|suggest|look at|options|ideas)\b"),
)


# Where the place that the person is in matters.
LOCAL = frozenset(["Restaurants", "Events", "Movies", "Services", "Shopping", "Sports"])


@dataclass
class Scene:
    """One assistant request, understood."""

    personal: bool
    situation: Slots
    facts: dict[str, Facts]  # by domain, said and remembered
    said: dict[str, Facts]
    remembered: dict[str, Facts]
    practical: Slots
    history: list[Domain] = field(default_factory=list)  # the domain of each user line
    user_lines: list[str] = field(default_factory=list)
    own_lines: list[str] = field(default_factory=list)

    @property
    def current(self) -> Domain:
        """Give the domain that the last user line is about."""
        return self.history[-1]

    @property
    def visits(self) -> list[str]:
        """Give the assistant's own replies in the current domain since it last became current."""
        replies: list[str] = []
        for domain, reply in zip(reversed(self.history[:-1]), reversed(self.own_lines), strict=False):
            if domain is not self.current:
                break
            replies.insert(0, reply)
        return replies

    @property
    def has_offered(self) -> bool:
        """Tell whether something concrete is on the table in the current domain."""
        return any(proposed(reply) for reply in self.visits)

    @property
    def closing(self) -> bool:
        """Tell whether the last user line takes its leave."""
        last = self.user_lines[-1] if self.user_lines else ""
        tail = (sentences(last) or [""])[-1]
        goes_on = tail.endswith("?") or re.search(r"\b(?:start|promising|helps|I see|sounds? (?:lovely|good))\b", tail)
        return len(self.user_lines) > 1 and bool(_CLOSING.search(tail)) and not goes_on

    @property
    def accepted(self) -> bool:
        """Tell whether the last user line says yes."""
        return bool(self.user_lines and _ACCEPT.search(self.user_lines[-1]))

    def kind(self, domain: Domain) -> str:
        """Give the kind of task in a domain: from the user's words about it, else the domain's usual one."""
        lines = [line for line, about in zip(self.user_lines, self.history, strict=False) if about is domain] or [""]
        text = " ".join([self.user_lines[0], lines[0]] if self.user_lines else lines).lower()
        offered = {*domain.offers, domain.kind}
        return next((kind for kind, words in _KINDS if kind in offered and re.search(words, text)), domain.kind)


def understand(request: Request) -> Scene:
    """Read a request as an attentive assistant would; it never sees affinities."""
    lines = request.said_by("user")
    known = [domain_named(name) for name in request.summaries]
    remembered = {
        domain_named(name).name: from_summary(domain_named(name), text) for name, text in request.summaries.items()
    }
    history: list[Domain] = []
    said: dict[str, Facts] = {}
    for line in lines:
        domain = domain_of(line, known, history)
        history.append(domain)
        for key, values in from_line(domain, line).items():
            kept = said.setdefault(domain.name, {}).setdefault(key, [])
            kept[:0] = [value for value in values if value not in kept]
    names = {*remembered, *said}
    facts = {name: merged(said.get(name, {}), remembered.get(name, {})) for name in names}
    practical = circumstances.read(lines)
    place = town_of(request.situation.get("location", ""))
    if place:
        practical.setdefault("city", place)
    return Scene(
        personal="personal" in request.system.lower(),
        situation=dict(request.situation),
        facts=facts,
        said=said,
        remembered=remembered,
        practical=practical,
        history=history or [known[0] if known else UNCLEAR],
        user_lines=lines,
        own_lines=request.said_by("assistant"),
    )


def domain_of(line: str, known: list[Domain], history: list[Domain]) -> Domain:
    """Choose the domain that a line is about; without a sign nothing changes."""
    candidates = tuple(domain.name for domain in known)
    unclear = not history or history[-1] is UNCLEAR
    name = topic_of_line(line, candidates, first=unclear)
    if name:
        return domain_named(name)
    return known[0] if unclear and known else UNCLEAR if unclear else history[-1]


def slots_of(scene: Scene, domain: Domain, facts: Facts, draws: Draws) -> Slots:
    """Give everything that the templates of a domain may need: facts as phrases, circumstances, and the items."""
    slots: Slots = {}
    for key, value in scene.practical.items():
        slots[key] = value
    if domain.name == "Messaging":
        slots.setdefault("recipient", "them")
        slots.setdefault(
            "gist",
            draws.pick(
                [
                    "Hi! Just a quick note about our plans, more soon.",
                    "Hello! Quick update from me: all is going to plan.",
                ]
            ),
        )
    for key, default in (("event", "the entry"), ("date", "tomorrow" if domain.name == "Calendar" else "")):
        if default and (domain.name == "Calendar"):
            slots.setdefault(key, default)
    for facet in domain.facets:
        values = facts.get(facet.key)
        if values:
            last = "or" if facet.key in ("airline", "chain", "company", "app", "room", "stars") else "and"
            if facet.frame.startswith("a "):
                last = "or"
            shown = values[: 1 if facet.key == "price" else 2]
            fitting = [value for value in shown if facet.fits(value)]
            if facet.frame == "{v}" or fitting or facet.key in ("seat", "notice"):
                slots[facet.key] = facet.phrase(fitting or shown, last)
            if facet.key == "seat" and fitting:
                slots["seat_fit"] = slots["seat"]
            slots[f"{facet.key}1"] = values[0]
    for key in ("event", "recipient", "date", "service"):
        if slots.get(key):
            slots[f"{key}_cap"] = capitalised(slots[key])
    if domain.name == "Travel" and facts.get("list"):
        slots["dest"] = facts["list"][0]
    if domain.name == "Services" and facts.get("service") and "service" not in scene.practical:
        slots["service"] = f"the {facts['service'][0]}"
    slots |= domain.items(facts, slots, draws)
    return slots
