"""The shapes of what the model knows: a facet of taste, a domain of help."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .draws import Draws
from .prose import joined
from .shapes import SHAPES, is_plural

Slots = dict[str, str]


def _with_article(team: str) -> str:
    """Say "the Harbour Sharks" and "the ... Team", but "Northfield United"."""
    plural = re.search(r"(?:[a-z]{2}s|Team)$", team) and not re.search(r"(?:us|ss|is)$", team)
    return f"the {team}" if plural and not team.lower().startswith("the ") else team


@dataclass(frozen=True, eq=False)
class Facet:
    """One kind of preference within a domain, and how people put it into words.

    In the templates `{v}` is the bare value or values and `{p}` the same as a phrase ("a window seat").
    """

    key: str
    names: str  # pattern of the affinity names that mean this facet
    reveal: tuple[str, ...]  # the user states it
    ask: tuple[str, ...]  # the assistant asks for it
    note: tuple[str, ...]  # the assistant shows that it remembers it
    asked: str  # pattern that shows that a question is about this facet
    frame: str = "{v}"
    say: Mapping[str, str] = field(default_factory=dict)  # values that need another wording
    lexicon: tuple[str, ...] = ()  # common values, found in prose
    heads: str = ""  # nouns that end a phrase of this facet in prose ("hard science fiction")
    noun: str = ""  # what to call it when a value fits no template ("for the seat, ...")
    cue: str = ""  # words before names in prose, for facets whose values are names
    proper: bool = False  # values are names: capitals stay
    shape: str = ""  # how a value of anyone's own making becomes a phrase (see `shapes.SHAPES`)

    @cached_property
    def lexicon_pattern(self) -> re.Pattern[str] | None:
        """Give the pattern that finds the lexicon's values, longest first."""
        if not self.lexicon:
            return None
        options = "|".join(re.escape(word) for word in sorted(self.lexicon, key=len, reverse=True))
        return re.compile(rf"(?<![\w-])(?:{options})(?![\w-])", re.IGNORECASE)

    @cached_property
    def entries(self) -> dict[str, str]:
        """Give the lexicon by lower case."""
        return {entry.lower(): entry for entry in self.lexicon}

    def fits(self, value: str) -> bool:
        """Tell whether a value goes into the templates; a long one of its own making does not."""
        if self.shape or value.lower() in self.say or self.proper or value.lower() in self.entries:
            return True
        if re.search(r"[,;]|\b(?:of|by|at|with|in|on|than|or|and|to|the|if|no|for|from|near|without)\b", value.lower()):
            return not self.noun and self.frame == "{v}"
        if self.frame == "{v}":
            return True
        if self.noun and self.lexicon:
            return False
        return len(value.split()) < 4 and value.split()[-1].lower() not in self.frame.lower().split()

    def phrase(self, values: list[str], last: str = "and") -> str:
        """Give the values as one noun phrase."""
        if self.key == "team":
            values = [_with_article(value) for value in values]
        phrases: list[str] = []
        plain: list[str] = []
        for value in values:
            known = value.lower() in self.entries
            special = self.say.get(value.lower(), "")
            if special or (self.shape and not known) or not self.fits(value) or self._stands_alone(value):
                phrases.append(special or (value if known else SHAPES[self.shape or "any"](value)))
            elif self.frame == "{v}" and self.shape:
                phrases.append(SHAPES[self.shape](value))
            else:
                plain.append(value)
        if plain:
            phrases.insert(0, self.frame.replace("{v}", joined(plain, last)))
        return joined(phrases, last)

    def _stands_alone(self, value: str) -> bool:
        """Tell whether a value is a plural of its own ("islands") that wants no other noun behind it."""
        return self.frame.startswith("{v} ") and is_plural(value)


def _no_items(_values: Mapping[str, list[str]], _slots: Slots, _draws: Draws) -> Slots:
    return {}


@dataclass(frozen=True, eq=False)
class Domain:
    """One of the 20 domains: its facets, and what an assistant can offer in it.

    `offers`, `done` and `opening` hold templates by kind of task; the key "" is the default. `items` fills the slots
    of the offers from the word banks: it gets the known values by facet, the slots so far and the draws.
    """

    name: str
    thing: tuple[str, ...]  # noun phrases that finish "Next, could you help with ..."
    kind: str  # the usual kind of task
    facets: tuple[Facet, ...]
    offers: Mapping[str, tuple[str, ...]]
    done: Mapping[str, tuple[str, ...]]
    opening: tuple[str, ...]
    bland: tuple[str, ...]
    needs: tuple[str, ...] = ()  # circumstances without which nothing can be booked
    items: Callable[[Mapping[str, list[str]], Slots, Draws], Slots] = _no_items

    def facet(self, key: str) -> Facet | None:
        """Find a facet by its key."""
        return next((facet for facet in self.facets if facet.key == key), None)

    def facet_named(self, name: str) -> Facet | None:
        """Find the facet that an affinity's name means."""
        return next((facet for facet in self.facets if re.search(facet.names, name, re.IGNORECASE)), None)
