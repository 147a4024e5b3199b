"""Which domain a reply is about, so that a user and a judge notice an answer to another question."""

from __future__ import annotations

import re
from functools import lru_cache

from .circumstances import particulars
from .domains import DOMAINS
from .model import Domain
from .replyphrases import GUESS, NEEDS, SHORT, WISH
from .topics import weighed

_PARTICULARS = (*(line for lines in NEEDS.values() for line in lines), *particulars())
_RUN = 3  # words in a row that tell where a sentence comes from


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[\w'’]+", text.lower())
    return {tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}


def _sentences_of(domain: Domain) -> list[str]:
    told = [line for lines in (*domain.offers.values(), *domain.done.values()) for line in lines]
    asked = [line for facet in domain.facets for line in (*facet.ask, *facet.note)]
    around = [line for bank in (SHORT, WISH, GUESS) for line in bank.get(domain.name, ())]
    return [*told, *asked, *around, *domain.bland]


@lru_cache(maxsize=1)
def _origins() -> dict[tuple[str, ...], str]:
    """Give the runs of words that only one domain's sentences have."""
    homes: dict[tuple[str, ...], set[str]] = {}
    for domain in DOMAINS.values():
        for line in _sentences_of(domain):
            for piece in re.split(r"\{\w+\}|[<>|\[\]]", line):
                for run in _runs(piece):
                    homes.setdefault(run, set()).add(domain.name)
    return {run: next(iter(names)) for run, names in homes.items() if len(names) == 1}


@lru_cache(maxsize=2048)
def about(reply: str) -> dict[str, float]:
    """Weigh which domains a reply is about: the cues in it, and turns of phrase that belong to one domain."""
    found = dict(weighed(reply))
    origins = _origins()
    for run in _runs(reply):
        if run in origins:
            found[origins[run]] = found.get(origins[run], 0.0) + 1.0
    return found


def _without_particulars(reply: str) -> str:
    """Leave out quoted words, questions for the particulars, and what an entry or an errand is called."""
    text = re.sub(r"[\"“][^\"”]*[\"”]", " ", reply)
    for phrase in _PARTICULARS:
        text = text.replace(phrase, " ")
    return text


def strays(reply: str, domain: str) -> str:
    """Name the other domain that a reply is about when it has nothing to do with `domain`; else give nothing."""
    found = about(_without_particulars(reply))
    if domain not in {known.name for known in DOMAINS.values()} or found.get(domain, 0.0) >= 1.0:
        return ""
    other, weight = max(found.items(), key=lambda pair: pair[1], default=("", 0.0))
    return other if weight >= 3.0 else ""
