"""The 20 domains: what is said, asked and offered in each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..model import Domain, Facet
from . import daily, errands, going_out, journeys, reading, roaming, screen, staying

DOMAINS: dict[str, Domain] = {
    domain.name.lower(): domain
    for module in (
        daily,
        reading,
        screen,
        going_out,
        journeys,
        staying,
        roaming,
        errands,
    )
    for domain in module.DOMAINS
}
_FILLER = re.compile(
    r"\b(?:preferences?|preferred|favou?rites?|types?|desired|usual|choices?)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=256)
def domain_named(name: str) -> Domain:
    """Find a domain by its name, whatever the case; one never seen gets plain words built from its name."""
    return DOMAINS.get(name.strip().lower()) or _plain_domain(name.strip())


def _plain_domain(name: str) -> Domain:
    topic = name.lower()
    return Domain(
        name=name, thing=(f"the {topic} part", f"{topic}"), kind="recommend",
        facets=(),
        offers={"": (f"For {topic} I've put together two options that fit your day, a simple one and a "
                     f"special one.",
                     f"Here's what I'd do about {topic}: start small, and I'll adjust it as we go.")},
        done={"": (f"I've set up the {topic} part for you.",
                   f"I've arranged the {topic} part as discussed.")},
        opening=(f"I need some help with {topic}",),
        bland=(f"There are many options when it comes to {topic}.",
               "It depends on what you are looking for."),
    )  # fmt: skip


UNCLEAR = _plain_domain("your request")  # nobody has said yet what it is about


@lru_cache(maxsize=1024)
def _plain_facet(name: str) -> Facet:
    noun = re.sub(r"\s+", " ", _FILLER.sub("", name)).strip().lower() or "that"
    return Facet(
        key=re.sub(r"\W+", "_", name.lower()),
        names=re.escape(name),
        reveal=(f"as for the {noun}: {{v}}", f"about the {noun}: {{v}}, please"),
        ask=(f"Any wishes about the {noun}?",),
        note=("I kept {v} in mind.",),
        asked=re.escape(noun),
    )


def facets_of(domain: str, affinities: Mapping[str, list[str]]) -> list[tuple[Facet, list[str]]]:
    """Pair each affinity that has values with the facet that its name means, in the given order."""
    shape = domain_named(domain)
    pairs: list[tuple[Facet, list[str]]] = []
    for name, values in affinities.items():
        if not values:
            continue
        facet = shape.facet_named(name) or _plain_facet(name)
        if any(known is facet for known, _ in pairs):
            facet = _plain_facet(name)
        pairs.append((facet, values))
    return pairs


def relevant(pairs: Iterable[tuple[Facet, list[str]]], task: str, least: int = 2) -> list[tuple[Facet, list[str]]]:
    """Keep the facets that the task's words touch, in their order; the first ones when it touches too few."""
    listed = list(pairs)
    task = re.sub(r"\bday of the week|time of day|each time\b", "", task)
    touched = [pair for pair in listed if re.search(pair[0].names, task, re.IGNORECASE)]
    rest = [pair for pair in listed if pair not in touched]
    return touched + rest[: max(0, least - len(touched))]
