"""The understudy that writes profiles and personalities for pools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from .request import Draws, MarkedRequest
from .understudy import understudy
from .words import Words, third_person

_DATA = Path(__file__).parent / "data" / "pools"
_LIVES, _CHARACTERS = Words(_DATA / "lives.toml"), Words(_DATA / "characters.toml")
_MOST = 500
"""Maximum number of texts in one answer: a real model would not write more either."""

_SHARED, _TRIES = 3, 20
"""Maximum number of sentences that two texts of one answer share, and of tries to find such a text."""

_AGES = (19, 20, 22, 23, *range(24, 62), 64, 66, 68, 70, 72, 75, 77, 79, 81, 84)
_VERB = re.compile(r"\[(\w+)\]")
_SLOT = re.compile(r"\{(\w+|\d+-\d+)\}")
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()

_SHE, _HE, _THEY = ("She", "her", "her", False), ("He", "his", "him", False), ("They", "their", "them", True)
_NEUTRAL = ("This person", "their", "them", False)
_ANYONE = (_SHE,) * 4 + (_HE,) * 4 + (_THEY, _NEUTRAL)
"""Forms of reference to a person: subject, possessive, object, whether verbs are plural; repetitions weight the draw.
"""


@understudy("pools", "writer")
def write(request: MarkedRequest, _draws: Draws) -> str:
    """Answer with `{"items": [...]}`: the number of texts in the prompt's input `count`, by default one."""
    number = min(request.inputs.get("count", 1), _MOST)
    is_character = request.prompt == "pools/personalities"
    compose = _character if is_character else _life
    draws = request.draws(kind="personality" if is_character else "profile")
    items: list[str] = []
    before: list[frozenset[str]] = []
    for place in range(number):
        for again in range(_TRIES):
            person, sentences = compose(draws.fork(place, again))
            said = frozenset(sentences)
            if all(len(said & other) <= _SHARED for other in before):
                break
        before.append(said)
        items.append(person.described(sentences))
    return json.dumps({"items": items}, ensure_ascii=False)


class _Fact(NamedTuple):
    """A sentence with the marks that it gives the person, excludes and requires."""

    text: str
    gives: set[str]
    bars: set[str]
    needs: set[str]


@dataclass(slots=True)
class _Person:
    """A person under construction: the marks so far, and the form of reference."""

    draws: Draws
    spoken_of: tuple[str, str, str, bool]
    marks: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def fitting(self, facts: Sequence[_Fact]) -> list[str]:
        """Return a fact compatible with the person's marks, and add its marks; an empty list if there is none."""
        for fact in self.draws.shuffled(facts):
            if fact.needs <= self.marks and not fact.gives & self.barred and not fact.bars & self.marks:
                self.marks |= fact.gives
                self.barred |= fact.bars
                return [fact.text]
        return []

    def one_of_each(self, topics: Mapping[str, str], most: int) -> list[str]:
        """Return compatible sentences of different topics in random order, up to a maximum."""
        each = (self.fitting(_facts(topics[topic])) for topic in self.draws.shuffled(tuple(topics)))
        return list(islice(chain.from_iterable(each), most))

    def described(self, templates: Iterable[str]) -> str:
        """Return the templates as sentences about this person."""
        return " ".join(_SLOT.sub(self._word, _VERB.sub(self._verb, template)) for template in templates)

    def _verb(self, found: re.Match[str]) -> str:
        verb = found[1]
        return {"be": "are", "was": "were"}.get(verb, verb) if self.spoken_of[3] else third_person(verb)

    def _word(self, found: re.Match[str]) -> str:
        slot = found[1]
        subject, possessor, object_, _ = self.spoken_of
        own = {"S": subject, "s": subject.lower(), "P": possessor.capitalize(), "p": possessor, "o": object_}
        if slot in own:
            return own[slot]
        low, dash, high = slot.partition("-")
        if dash:
            number = self.draws.number(int(low), int(high))
            return _NUMBERS[number] if number < len(_NUMBERS) else str(number)
        # No word is used twice for a person: equal months or towns would look like a pattern.
        word: str = self.draws.pick([word for word in _LIVES.get(f"words.{slot}") if word not in self.used])
        self.used.add(word)
        return word


def _life(draws: Draws) -> tuple[_Person, list[str]]:
    person = _Person(draws, draws.pick(_ANYONE))
    age = draws.pick(_AGES)
    person.marks |= {mark for mark, (low, high) in _LIVES.get("ages").items() if low <= age <= high}
    homes = person.fitting(_facts(_LIVES.get("homes")))
    sentences = [f"{{S}} [be] {age} and [live] in {home} in {{town}}." for home in homes]
    sentences += _occupation(person, age)
    sentences += person.fitting(_facts(_LIVES.get("households")))
    return person, sentences + person.one_of_each(_LIVES.get("topics"), draws.number(8, 10) - len(sentences))


def _character(draws: Draws) -> tuple[_Person, list[str]]:
    person = _Person(draws, _THEY)  # a personality is combined with people of any gender
    # The first sentence must name its subject, to which "their" and "them" refer.
    traits = person.one_of_each(_CHARACTERS.table, draws.number(8, 10))
    traits.sort(key=lambda trait: not trait.startswith("{S}"))
    return person, traits[:1] + draws.shuffled(traits[1:])


def _occupation(person: _Person, age: int) -> list[str]:
    if age <= 23 and person.draws.chance(0.6):
        person.marks.add("student")
        return [f"{{S}} [study] {study}." for study in person.fitting(_facts(_LIVES.get("studies")))]
    jobs, frames = _facts(_LIVES.get("jobs")), _facts(_LIVES.get("job_frames"))
    return [frame.replace("{job}", job) for job in person.fitting(jobs) for frame in person.fitting(frames)]


@cache
def _facts(text: str) -> tuple[_Fact, ...]:
    lines = (line.partition(" | ") for line in text.strip().splitlines())
    return tuple(
        _Fact(text.strip(), *({mark[1:] for mark in marks.split() if mark[0] == sign} for sign in "+-?"))
        for text, _, marks in lines
    )
