"""The writer of pools: people put together out of facts that go with each other, characters out of traits that do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from dialoom.roles.offline.draws import Draws

from .characters import AXES
from .lives import HOMES, HOUSEHOLDS, JOB_FRAMES, JOBS, STUDIES, TOPICS, WORDS

_MOST = 500
"""Texts in one answer: a real model would not write more either."""

_THEY = ("They", "their", "them", True)
_SPOKEN_OF = (
    *[("She", "her", "her", False)] * 4,
    *[("He", "his", "him", False)] * 4,
    _THEY,
    ("This person", "their", "them", False),
)
"""As subject, possessor and object; whether verbs are in the plural; the more often the likelier."""

_EXAMPLE = re.compile(r"<example>(.*?)</example>", re.DOTALL)
_VERB = re.compile(r"\[(\w+)\]")
_SLOT = re.compile(r"\{(\w+|\d+-\d+)\}")
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_IRREGULAR = {"be": "is", "have": "has", "do": "does", "go": "goes", "cannot": "cannot"}


def pool_texts(messages: Sequence[Mapping[str, str]], seed: int | None) -> str:
    """Answer a request for new texts of a pool.

    Args:
        messages: What marks the `<kind>`, the `<count>` and the `<example>`s.
        seed: Another one gives other texts.

    Returns:
        `{"items": [...]}`.
    """
    text = "\n".join(str(message.get("content", "")) for message in messages)
    kind, count = _tagged("kind", text), _tagged("count", text)
    number = min(int(count), _MOST) if count.isdecimal() else 1
    draws = Draws("writer", kind, _EXAMPLE.findall(text), seed)
    write = _character if kind == "personality" else _life
    return json.dumps({"items": [write(draws.fork(place)) for place in range(number)]}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence with what it says about the person besides its words."""

    text: str
    gives: frozenset[str] = frozenset()
    bars: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Person:
    """What is settled so far, and how the person is spoken of."""

    draws: Draws
    marks: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    words: dict[str, str] = field(default_factory=dict)
    plural: bool = False
    used: set[str] = field(default_factory=set)

    def fitting(self, facts: Sequence[Fact]) -> Fact | None:
        """One of the facts that go with what is settled; it is settled with it."""
        for fact in self.draws.shuffled(facts):
            if fact.needs <= self.marks and not fact.gives & self.barred and not fact.bars & self.marks:
                self.marks |= fact.gives
                self.barred |= fact.bars
                return fact
        return None

    def facts(self, topics: Mapping[str, str]) -> list[str]:
        """A fitting sentence of each topic for which there is one, in a drawn order."""
        found = [self.fitting(_facts(topics[topic])) for topic in self.draws.shuffled(tuple(topics))]
        return [fact.text for fact in found if fact is not None]

    def said(self, text: str) -> str:
        """A template as a sentence about this person."""
        spoken = _VERB.sub(lambda match: self._verb(match[1]), text)
        return _SLOT.sub(lambda match: self._word(match[1]), spoken)

    def _verb(self, verb: str) -> str:
        if self.plural:
            return {"be": "are"}.get(verb, verb)
        if verb in _IRREGULAR:
            return _IRREGULAR[verb]
        if re.search(r"(?:s|sh|ch|x|z)$", verb):
            return verb + "es"
        return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"

    def _word(self, slot: str) -> str:
        if slot in self.words:
            return self.words[slot]
        low, dash, high = slot.partition("-")
        if dash:
            number = self.draws.number(int(low), int(high))
            return _NUMBERS[number] if number < len(_NUMBERS) else str(number)
        # No word twice in one life: two months or towns that are the same would look like a pattern.
        word = self.draws.pick([word for word in _words(slot) if word not in self.used])
        self.used.add(word)
        return word


def _life(draws: Draws) -> str:
    age = draws.pick((19, 20, 22, 23, *range(24, 62), 64, 66, 68, 70, 72, 75, 77, 79, 81, 84))
    person = _person(draws)
    person.marks |= _marks_of(age)
    home = person.fitting(_facts(HOMES))
    assert home is not None
    sentences = [f"{{S}} [be] {age} and [live] in {home.text} in {{town}}.", _occupation(person, age)]
    household = person.fitting(_facts(HOUSEHOLDS))
    sentences += [household.text] if household else []
    sentences += person.facts(TOPICS)
    return " ".join(person.said(sentence) for sentence in sentences[: draws.number(8, 10)])


def _character(draws: Draws) -> str:
    person = _person(draws, (_THEY,))  # a personality is given to people of any gender
    # The first sentence names who it is about, so that "their" and "him" have somebody to stand for.
    traits = sorted(person.facts(AXES)[: draws.number(8, 10)], key=lambda trait: not trait.startswith("{S}"))
    traits = traits[:1] + draws.shuffled(traits[1:])
    return " ".join(person.said(trait) for trait in traits)


def _occupation(person: _Person, age: int) -> str:
    if age <= 23 and person.draws.chance(0.6):
        person.marks.add("student")
        return f"{{S}} [study] {person.draws.pick(_facts(STUDIES)).text}."
    job = person.fitting(_facts(JOBS))
    assert job is not None
    name = re.sub(r"^a (?=[aeiou](?!ni))", "an ", job.text)
    if "retired" in person.marks:
        return f"{{S}} {'were' if person.plural else 'was'} {name} for {{20-40}} years and [be] now retired."
    frames = JOB_FRAMES if age >= 29 else JOB_FRAMES.replace("{S} [have] been {job} for {3-9} years.\n", "")
    return person.draws.pick(_facts(frames)).text.replace("{job}", name)


def _marks_of(age: int) -> set[str]:
    marks = {"teen"} if age < 21 else set()
    marks |= {"young"} if age < 30 else set()
    marks |= {"grown"} if age >= 30 else set()
    marks |= {"parent"} if 33 <= age <= 48 else set()
    marks |= {"old"} if age >= 62 else set()
    return marks | ({"retired"} if age >= 66 else set())


def _person(draws: Draws, spoken_of: Sequence[tuple[str, str, str, bool]] = _SPOKEN_OF) -> _Person:
    subject, possessor, object_, plural = draws.pick(spoken_of)
    words = {
        "S": subject,
        "s": subject.lower(),
        "p": possessor,
        "P": possessor.capitalize(),
        "o": object_,
    }
    return _Person(draws, words=words, plural=plural)


@cache
def _facts(text: str) -> tuple[Fact, ...]:
    return tuple(_fact(line) for line in text.strip().splitlines())


def _fact(line: str) -> Fact:
    text, _, marks = line.partition(" | ")

    def named(sign: str) -> frozenset[str]:
        return frozenset(mark[1:] for mark in marks.split() if mark[0] == sign)

    return Fact(text.strip(), named("+"), named("-"), named("?"))


@cache
def _words(slot: str) -> tuple[str, ...]:
    return tuple(WORDS[slot].split(", "))


def _tagged(tag: str, text: str) -> str:
    match = re.search(rf"<{tag}>\s*([\w-]+)\s*</{tag}>", text)
    return match.group(1) if match else ""
