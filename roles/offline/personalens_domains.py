"""The domains of PersonaLens: their kinds of tasks, and their preferences.

A domain's texts are in its data file, which is read on first use. A domain or a kind of preference without a file gets
plain texts made of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from .request import MarkedRequest, mentions_any, sentences, values_of
from .words import Words, heard

FOLDER = Path(__file__).parent / "data" / "personalens"
USER = Words(FOLDER / "user.toml")
_INDEX = Words(FOLDER / "index.toml")
_SIGNALS = Words(FOLDER / "signals.toml")
_FILLER = re.compile(r"\b(?:preferences?|preferred|favou?rite|types?|desired|usual|choices?)\b", re.IGNORECASE)


@cache
def signal(name: str) -> re.Pattern[str]:
    """Return one of the patterns that classify lines (`signals.toml`)."""
    return re.compile(_SIGNALS.get(name), re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Facet:
    """A kind of preference: its name, and templates for stating it and asking for it."""

    noun: str
    names: str
    asked: str
    ask: Sequence[str]
    reveal: Sequence[str]
    one: bool = False

    def is_asked_in(self, questions: Iterable[str]) -> bool:
        """Return whether one of the questions asks for it."""
        return any(re.search(self.asked, question, re.IGNORECASE) for question in questions)


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of task: its opening, its plan, and its completion."""

    cue: str
    open: Sequence[str]
    plan: str
    done: str


@dataclass(frozen=True, eq=False)
class DomainWords:
    """A domain: its name by the user (`matter`) and by the assistant (`thing`), its kinds of task and its facets."""

    name: str
    matter: str
    thing: str
    kinds: tuple[Kind, ...]
    facets: tuple[Facet, ...]

    def kind(self, text: str) -> Kind:
        """Return the kind of task that a text asks for; the last one if none matches."""
        return next((kind for kind in self.kinds if re.search(kind.cue, text, re.IGNORECASE)), self.kinds[-1])

    def told(self, sentence: str) -> tuple[Facet, str] | None:
        """Return the facet and the value that a sentence of the user's understudy states."""
        for lead in ("", *USER.get("leads"), *USER.get("again"), *USER.get("late")):
            if not sentence.lower().startswith(lead.lower()):
                continue
            rest = sentence[len(lead) :]
            for facet in self.facets:
                slots = heard(facet.reveal, rest)
                if slots:
                    return facet, slots["v"]
            slots = heard(USER.get("frames"), rest)
            if slots:
                known = (facet for facet in self.facets if facet.noun == slots["noun"])
                return next(known, plain_facet(slots["noun"])), slots["v"]
        return None


@lru_cache(maxsize=256)
def domain_named(name: str) -> DomainWords:
    """Return a domain by its name, ignoring case."""
    known = next((key for key in _INDEX.table if key.lower() == name.strip().lower()), "")
    if not known:
        return _plain_domain(name.strip())
    entry = _INDEX.get(known)
    table = Words(FOLDER / "domains" / f"{entry['file']}.toml").table
    kinds = tuple(Kind(kind.get("cue", ""), kind["open"], kind["plan"], kind["done"]) for kind in table["kinds"])
    facets = tuple(Facet(**facet) for facet in table["facets"])
    return DomainWords(known, entry["matter"], entry["thing"], kinds, facets)


def _plain_domain(name: str) -> DomainWords:
    topic = name.lower()
    plain = Kind("", USER.get("help"), f"see to {topic}", f"{topic} is seen to")
    return DomainWords(name, topic, topic, (plain,), ())


@lru_cache(maxsize=1024)
def plain_facet(name: str) -> Facet:
    """Return a facet without a file, named after the preference."""
    noun = re.sub(r"\s+", " ", _FILLER.sub("", name)).strip().lower() or "that"
    noun = noun if noun.startswith("the ") else f"the {noun}"
    return Facet(noun=noun, names=re.escape(name), asked=re.escape(noun.removeprefix("the ")), ask=(), reveal=())


Wish = tuple[Facet, list[str]]


def wishes(domain: DomainWords, fields: Mapping[str, str], task: str) -> list[Wish]:
    """Return a person's preferences with their facets; those that the task touches come first."""
    found: list[Wish] = []
    for name, text in fields.items():
        known = (facet for facet in domain.facets if re.search(facet.names, name, re.IGNORECASE))
        facet = next(known, None)
        if facet is None or any(facet is other for other, _ in found):
            facet = plain_facet(name)
        values = values_of(text)
        if values:
            found.append((facet, values))
    touched = [wish for wish in found if re.search(wish[0].names, task, re.IGNORECASE)]
    return touched + [wish for wish in found if wish not in touched]


def affinities(request: MarkedRequest) -> list[tuple[DomainWords, dict[str, str]]]:
    """Return the domains whose preferences a request contains, with the preferences."""
    parts = [part for part in request.parts("affinities") if part.attributes.get("domain")]
    return [(domain_named(part.attributes["domain"]), part.fields) for part in parts]


@cache
def _cues() -> dict[str, re.Pattern[str]]:
    return {
        name: re.compile(rf"(?<![\w-])(?:{entry['cues']})(?![\w-])", re.IGNORECASE)
        for name, entry in _INDEX.table.items()
    }


@cache
def _matters() -> dict[str, str]:
    return {entry["matter"]: name for name, entry in _INDEX.table.items()}


@lru_cache(maxsize=8192)
def topics(text: str) -> dict[str, int]:
    """Count the cues of each domain in a text; domains without one are left out, the strongest comes first."""
    counts = {name: len({hit.lower() for hit in cues.findall(text)}) for name, cues in _cues().items()}
    return dict(sorted(((name, count) for name, count in counts.items() if count), key=lambda pair: -pair[1]))


@lru_cache(maxsize=8192)
def topic_of_line(line: str, current: str) -> str:
    """Return the domain that a user's line is about, if the one before was about `current` (empty at first).

    The domain changes if the line says so in the words of the user's understudy, or if it asks for another domain and
    names
    nothing of the current one.
    """
    parts = sentences(line)
    for part in reversed(parts):
        slots = heard((*USER.get("next"), *USER.get("strayed")), part) or heard(_begins(), part)
        if slots:
            return _matters().get(slots["matter"]) or next(iter(topics(slots["matter"])), slots["matter"])
    if not current:
        return next(iter(topics(line)), "")
    for part in parts:
        found = topics(part) if signal("moves_on").search(part) else {}
        if found and current not in found and not domain_named(current).told(part):
            return next(iter(found))
    return current


@cache
def _begins() -> tuple[str, ...]:
    return tuple(part for template in USER.get("begin") for part in sentences(template) if "{matter}" in part)


def strays(reply: str, domain: DomainWords) -> bool:
    """Return whether a reply is about another domain and unrelated to this one."""
    if domain.name not in _INDEX.table:
        return False
    own = [text for kind in domain.kinds for text in (kind.plan, kind.done)]
    plain = re.sub(r"“[^”]*”|\"[^\"]*\"", " ", reply).lower()
    found = topics(plain)
    questions = [part for part in sentences(plain) if part.endswith("?")]
    if any(facet.is_asked_in(questions) for facet in domain.facets):
        return False
    other = any(count > 1 or _INDEX.get(name)["thing"] in plain for name, count in found.items())
    return other and domain.name not in found and domain.thing not in plain and not mentions_any(reply, own)


def acts(reply: str) -> bool:
    """Return whether a reply says that something was done."""
    return bool(signal("acted").search(reply))


@lru_cache(maxsize=8192)
def concerning(reply: str, domain: DomainWords) -> str:
    """Return a reply without the sentences about other matters."""
    own = [text for kind in domain.kinds for text in (kind.plan, kind.done)]
    parts = sentences(reply)
    return " ".join(p for p in parts if domain.name in (found := topics(p)) or not found or mentions_any(p, own))


def offers(reply: str) -> bool:
    """Return whether a reply asks for permission to do something ("Shall I ...?")."""
    return any(part.endswith("?") and signal("offers").search(part) for part in sentences(reply))
