"""Text templates of scripted sources, and phrases for each facet of a preference.

The phrases are also used for parsing.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from dialoom.personas.apollo.calls import Value
from dialoom.personas.apollo.flows import FLOWS

from .source import PreferenceForm, stems

_CENTS = re.compile(r"(\$[\d,]+\.\d|\d\.\d(?= [A-Z]{3}\b))(?!\d)")
_CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")


def load_content(name: str) -> Mapping[str, Any]:
    """Read a packaged data file."""
    return tomllib.loads((Path(__file__).parent / "content" / f"{name}.toml").read_text(encoding="utf-8"))


class Filling(dict[str, Any]):
    """The values for the braces of a template: `{name}` is inserted unchanged, `{Name}` capitalised."""

    def __missing__(self, key: str) -> str:
        if (small := key[0].lower() + key[1:]) == key or small not in self:
            raise KeyError(key)
        return capitalize(str(self[small]))


def fill_template(text: str, values: Mapping[str, Any], draw: random.Random) -> str:
    """Fill a template: pick one of each `[choice|of|words]`, insert the values, and write amounts with two decimals."""
    text = _CHOICE.sub(lambda found: draw.choice(found[1].split("|")), text)
    return _CENTS.sub(r"\g<1>0", text.format_map(Filling(values)))


def format_spoken(value: Any) -> Any:
    """Return a value as people write it, without underscores or needless decimals, and with thousands separators."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{int(value) if value == int(value) else value:,}"
    return value.replace("_", " ") if isinstance(value, str) else value


def capitalize(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def join_options(items: list[str], word: str = "or") -> str:
    """Return items as an enumeration: `a, b or c`. If an item contains the conjunction itself, use commas only."""
    if any(f" {word} " in item for item in items):
        return ", ".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}" if len(items) > 1 else items[0]


CONTENT = load_content("preferences")
_FRAMES: Mapping[str, Sequence[str]] = CONTENT["frames"]
_ORDINALS: Sequence[str] = tuple(CONTENT["ordinals"].values())


class FacetPhrases:
    """The phrases about a facet of a flow.

    Args:
        flow: The flow's name.
        facet: The facet's name.
    """

    def __init__(self, flow: str, facet: str) -> None:
        self.flow, self.facet = flow, facet
        phrasing = CONTENT["facets"][f"{flow}.{facet}"]
        table = CONTENT["values"][phrasing["values"]]
        self.asks: Sequence[str] = phrasing["ask"]
        self.plain: bool = phrasing.get("plain", False)
        self._phrasing: Mapping[str, Any] = phrasing
        self._values: Mapping[Value, Mapping[str, Any]] = {
            value: table[str(value).lower() if isinstance(value, bool) else str(value)]
            for value in FLOWS[flow].facet(facet).values
        }

    def form(self, preferred: PreferenceForm) -> PreferenceForm:
        """Return the form in which the facet is stated. A plain facet uses only `explicit` and `choice`."""
        return "explicit" if self.plain and preferred != "choice" else preferred

    def exchange(self, value: Value, form: PreferenceForm, draw: random.Random, used: set[str]) -> tuple[str, str]:
        """Return a question and an answer that states the value. Unused phrases are preferred."""
        ask, form = draw.choice(self.asks), self.form(form)
        words = self._values[value]
        if form == "facts":
            return ask, _pick_unused(words["facts"], draw, used)
        if form not in ("choice", "anti"):
            frame = _pick_unused(self._frames(form), draw, used)
            return ask, frame.format_map(Filling(name=draw.choice(words["names"]), rest=self._rest(value)))
        options = draw.sample(list(self._values), len(self._values))
        ask = f"{ask} {capitalize(join_options([self._label(option) for option in options]))}?"
        if form == "choice":
            frame = _pick_unused(self._frames(form), draw, used)
            return ask, frame.format_map(Filling(ordinal=_ORDINALS[options.index(value)]))
        others = [option for option in options if option != value]
        return ask, _join_sentences([_pick_unused(self._values[other]["grumbles"], draw, used) for other in others])

    def read(self, question: str, reply: str) -> tuple[PreferenceForm, Value] | None:
        """Return the form and the value that an answer states; None if it answers no question about this facet."""
        if (ask := next((ask for ask in self.asks if ask in question), None)) is None:
            return None
        if reply in self.replies:
            return self.replies[reply]
        offered = question.partition(ask)[2].casefold()
        places = {value: offered.find(self._label(value).casefold()) for value in self._values}
        if min(places.values()) < 0:
            return None
        for frame, (number, value) in product(_FRAMES["choice"], enumerate(sorted(places, key=places.__getitem__))):
            if reply == frame.format_map(Filling(ordinal=_ORDINALS[number])):
                return "choice", value
        return self._left_over(reply.casefold())

    @cached_property
    def replies(self) -> Mapping[str, tuple[PreferenceForm, Value]]:
        """Every answer that can be understood without its question, with the form and the value that it states."""
        made: dict[str, tuple[PreferenceForm, Value]] = {}
        forms: tuple[PreferenceForm, ...] = ("explicit",) if self.plain else ("explicit", "comparison", "tone")
        for value, words in self._values.items():
            for form, frame in [(each, frame) for each in forms for frame in self._frames(each)]:
                filled_in = (frame.format_map(Filling(name=name, rest=self._rest(value))) for name in words["names"])
                made |= dict.fromkeys(filled_in, (form, value))
            made |= dict.fromkeys(words.get("facts", ()), ("facts", value))
        return made

    @cached_property
    def words(self) -> Mapping[Value, frozenset[str]]:
        """The stems of the words that reveal each value."""
        return {value: stems(" ".join(data.get("words", ()))) for value, data in self._values.items()}

    @cached_property
    def labels(self) -> Mapping[Value, Sequence[str]]:
        """All names of each value, including its name in lists of options."""
        return {value: (*self.names[value], self._label(value).casefold()) for value in self._values}

    @cached_property
    def names(self) -> Mapping[Value, Sequence[str]]:
        """The names of each value."""
        return {value: tuple(name.casefold() for name in data["names"]) for value, data in self._values.items()}

    def _frames(self, form: PreferenceForm) -> Sequence[str]:
        frames: Sequence[str] = self._phrasing.get(form, _FRAMES[form])
        return frames

    def _rest(self, value: Value) -> str:
        return join_options([str(other["names"][0]) for one, other in self._values.items() if one != value])

    def _label(self, value: Value) -> str:
        return str(self._values[value].get("label", self._values[value]["names"][0]))

    def _left_over(self, reply: str) -> tuple[PreferenceForm, Value] | None:
        """Return the form and the only value that the complaints in a reply do not exclude; None if several remain."""
        spared = [
            value
            for value, words in self._values.items()
            if not any(grumble.casefold() in reply for grumble in words.get("grumbles", ()))
        ]
        return ("anti", spared[0]) if len(spared) == 1 else None


@lru_cache(maxsize=1)
def phrases() -> Mapping[str, Mapping[str, FacetPhrases]]:
    """Return the phrases of every facet, by flow, in the order of the questions."""
    asks = load_content("requests")["flows"]
    return {flow: {facet: FacetPhrases(flow, facet) for facet in asks[flow]["asks"]} for flow in FLOWS}


def preference_words(flow: str, values: Mapping[str, Value]) -> frozenset[str]:
    """Return the stems of the words that reveal a preference."""
    return frozenset[str]().union(*(phrases()[flow][name].words[value] for name, value in values.items()))


@lru_cache(maxsize=1)
def telltale_words() -> frozenset[str]:
    """Return the stems of the words that reveal any value of any facet."""
    facets = [facet for each in phrases().values() for facet in each.values()]
    return frozenset[str]().union(*(words for facet in facets for words in facet.words.values()))


def _pick_unused(texts: Sequence[str], draw: random.Random, used: set[str]) -> str:
    """Return a random text and mark it as used. If possible, the text was not used before."""
    text = draw.choice([text for text in texts if text not in used] or texts)
    used.add(text)
    return text


def _join_sentences(clauses: list[str]) -> str:
    """Join clauses into sentences of two clauses."""
    pairs = [clauses[start : start + 2] for start in range(0, len(clauses), 2)]
    return " ".join(capitalize(", and ".join(pair)) + "." for pair in pairs)
