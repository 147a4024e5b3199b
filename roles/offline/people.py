"""The understudies that write personas for pools and PersonaLens, or derive users from recorded conversations.

The writer of PersonaLens' people answers in the form that the instruction asks for, which it recognizes by the form's
first key. One list of preferences in forty has an unlisted value, and one in forty a value that contradicts the
demographics. One summary in twenty states a value that the person does not have. One list of tasks in ten contains a
preference that no domain has. As `attentive`, it corrects a reported fault; as `generic`, it may repeat the fault. The
judge recognizes contradictions by their words, and a sentence with a value that the person does not have by its form
and value.

The rules of the analyst of recorded conversations, each applied to the user's lines:

person  the first sentence with `I am`, `I'm`, `I have` or `my`
goal    the first sentence of three words or more
traits  a sentence with `please` or `thanks`, one that objects, and lines of at most eight words on average

As `attentive`, it quotes exactly; as `generic`, it quotes in lower case, so that many quotations differ from the
user's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from .understudy import Draws, MarkedRequest, Part, sentences, split_values, understudy
from .words import Words, joined, match_template, say, third_person

_LIVES, _CHARACTERS, WORDS = (
    Words(Path(__file__).parent / "data" / "people" / f"{name}.toml") for name in ("lives", "characters", "personalens")
)
_MAX_TEXTS = 500
"""Maximum number of texts in one answer, because a real model would not write more."""

_MAX_SHARED_SENTENCES, _MAX_TRIES = 3, 20
"""Maximum number of sentences that two texts of one answer share, and maximum number of tries to find such a text."""

_AGES = (19, 20, 22, 23, *range(24, 62), 64, 66, 68, 70, 72, 75, 77, 79, 81, 84)
_VERB = re.compile(r"\[(\w+)\]")
_SLOT = re.compile(r"\{(\w+|\d+-\d+)\}")
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()

_SHE, _HE, _THEY = ("She", "her", "her", False), ("He", "his", "him", False), ("They", "their", "them", True)
_NEUTRAL = ("This person", "their", "them", False)
_REFERENCE_FORMS = (_SHE,) * 4 + (_HE,) * 4 + (_THEY, _NEUTRAL)
"""Forms of reference to a person: subject, possessive, object, whether verbs are plural; repetitions weight the draw.
"""


@understudy("pools", "writer")
def write_texts(request: MarkedRequest, _draws: Draws) -> dict[str, list[str]]:
    """Answer with `items`: the number of texts in the prompt's input `count`, by default one."""
    number = min(request.inputs.get("count", 1), _MAX_TEXTS)
    is_character = request.prompt == "pools/personalities"
    compose = _compose_personality if is_character else _compose_profile
    draws = request.draws(kind="personality" if is_character else "profile")
    items: list[str] = []
    before: list[frozenset[str]] = []
    for place in range(number):
        for again in range(_MAX_TRIES):
            person, templates = compose(draws.fork(place, again))
            words = frozenset(templates)
            if all(len(words & other) <= _MAX_SHARED_SENTENCES for other in before):
                break
        before.append(words)
        items.append(person.described(templates))
    return {"items": items}


class _Fact(NamedTuple):
    """A sentence, the marks that it gives the person, and those that it excludes or requires."""

    text: str
    gives: set[str]
    bars: set[str]
    needs: set[str]


@dataclass(slots=True)
class _Person:
    """A person under construction: the marks so far, and the form of reference."""

    draws: Draws
    forms: tuple[str, str, str, bool]
    marks: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def fitting(self, facts: Sequence[_Fact]) -> list[str]:
        """Return a compatible fact in a list and add its marks to the person's; an empty list if there is none."""
        for fact in self.draws.shuffled(facts):
            if fact.needs <= self.marks and not fact.gives & self.barred and not fact.bars & self.marks:
                self.marks |= fact.gives
                self.barred |= fact.bars
                return [fact.text]
        return []

    def one_of_each(self, topics: Mapping[str, str], most: int) -> list[str]:
        """Return compatible sentences of different topics in random order, up to a maximum."""
        each = (self.fitting(_parse_facts(topics[topic])) for topic in self.draws.shuffled(tuple(topics)))
        return list(islice(chain.from_iterable(each), most))

    def described(self, templates: Iterable[str]) -> str:
        """Return the templates as sentences about this person."""
        return " ".join(_SLOT.sub(self._word, _VERB.sub(self._verb, template)) for template in templates)

    def _verb(self, found: re.Match[str]) -> str:
        verb = found[1]
        return {"be": "are", "was": "were"}.get(verb, verb) if self.forms[3] else third_person(verb)

    def _word(self, found: re.Match[str]) -> str:
        slot = found[1]
        subject, possessor, object_, _ = self.forms
        own = {"S": subject, "s": subject.lower(), "P": possessor.capitalize(), "p": possessor, "o": object_}
        if slot in own:
            return own[slot]
        low, dash, high = slot.partition("-")
        if dash:
            number = self.draws.number(int(low), int(high))
            return _NUMBERS[number] if number < len(_NUMBERS) else str(number)
        # No word is used twice for a person: repeated months or towns would look like a pattern.
        word: str = self.draws.pick([word for word in _LIVES.get(f"words.{slot}") if word not in self.used])
        self.used.add(word)
        return word


def _compose_profile(draws: Draws) -> tuple[_Person, list[str]]:
    person = _Person(draws, draws.pick(_REFERENCE_FORMS))
    age = draws.pick(_AGES)
    person.marks |= {mark for mark, (low, high) in _LIVES.get("ages").items() if low <= age <= high}
    homes = person.fitting(_parse_facts(_LIVES.get("homes")))
    texts = [f"{{S}} [be] {age} and [live] in {home} in {{town}}." for home in homes]
    if age <= 23 and draws.chance(0.6):
        person.marks.add("student")
        texts += [f"{{S}} [study] {study}." for study in person.fitting(_parse_facts(_LIVES.get("studies")))]
    else:
        jobs, frames = _parse_facts(_LIVES.get("jobs")), _parse_facts(_LIVES.get("job_frames"))
        texts += [frame.replace("{job}", job) for job in person.fitting(jobs) for frame in person.fitting(frames)]
    texts += person.fitting(_parse_facts(_LIVES.get("households")))
    return person, texts + person.one_of_each(_LIVES.get("topics"), draws.number(8, 10) - len(texts))


def _compose_personality(draws: Draws) -> tuple[_Person, list[str]]:
    person = _Person(draws, _THEY)  # a personality is combined with people of any gender
    # The first sentence must name its subject, to which "their" and "them" refer.
    traits = person.one_of_each(_CHARACTERS.table, draws.number(8, 10))
    traits.sort(key=lambda trait: not trait.startswith("{S}"))
    return person, traits[:1] + draws.shuffled(traits[1:])


@cache
def _parse_facts(text: str) -> tuple[_Fact, ...]:
    lines = (line.partition(" | ") for line in text.strip().splitlines())
    return tuple(
        _Fact(text.strip(), *({mark[1:] for mark in marks.split() if mark[0] == sign} for sign in "+-?"))
        for text, _, marks in lines
    )


@understudy("personalens_people", "writer")
def write(request: MarkedRequest, draws: Draws) -> Mapping[str, Any] | str:
    """Answer in the form that the instruction asks for, or with a summary."""
    return _WRITERS.get(request.reply_key, _write_interests)(request, draws)


@understudy("personalens_people", "judge")
def judge(request: MarkedRequest, _draws: Draws) -> dict[str, list[Any]]:
    """Answer with the contradictions, or the passages that do not fit the person."""
    if "summary" in request:
        own = {joined(split_values(value)).lower() for value in request.fields("preferences").values()}
        told = (
            (each, match_template(WORDS.get("summary.told"), each))
            for each in dict.fromkeys(sentences(request.part("summary")))
        )
        return {"passages": [each for each, slots in told if slots and slots["value"].lower() not in own]}
    demographics = request.fields("demographics")
    return {
        "contradictions": [
            {
                "domain": part.attributes.get("domain", ""),
                "preference": name,
                "reason": WORDS.get("judge.rules_out").format(key=against["key"], value=demographics[against["key"]]),
            }
            for part in request.parts("preferences")
            for name, value in part.fields.items()
            for against in _find_contradictions(demographics)
            if against["words"] in value
        ]
    }


def _find_contradictions(demographics: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return the attributes that would contradict these demographics."""
    return [each for each in WORDS.get("contradictions") if re.search(each["value"], demographics.get(each["key"], ""))]


def _write_interests(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    """Return three random domains, and each other domain with probability 0.72."""
    names = [_get_name(part) for part in request.parts("domain")]
    first = draws.shuffled(names)[:3]
    return {"domains": [name for name in names if name in first or draws.chance(0.72)]}


def _write_preferences(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    options = {part.attributes.get("of", ""): split_values(part.body) for part in request.parts("values")}
    fault, found = _draw_fault(request, draws, 40), []
    for part in request.parts("preference"):
        is_listed = part.attributes.get("from") == "list"
        count = draws.number(1, 3) if part.attributes.get("takes") == "several" else 1
        values = draws.shuffled(options.get(_get_name(part), []) if is_listed else _find_free_values(part))[:count]
        if fault == 0 and is_listed:
            values, fault = [WORDS.get("preferences.unlisted")], None
        elif fault == 1 and not is_listed and (against := _find_contradictions(request.fields("demographics"))):
            values, fault = [draws.pick(against)["words"]], None
        found.append({"name": _get_name(part), "values": values})
    return {"preferences": found}


def _find_free_values(preference: Part) -> Sequence[str]:
    """Return values for a preference without a list of values, chosen by its name or else by its description."""
    about, banks = (_get_name(preference), preference.body), WORDS.get("free")
    fitting = (bank["words"] for text in about for bank in banks if re.search(bank["cue"], text, re.IGNORECASE))
    found: Sequence[str] = next(fitting, WORDS.get("preferences.any"))
    return found


def _write_summary(request: MarkedRequest, draws: Draws) -> str:
    """Return a summary with every preference worded as in the request."""
    preferences = [
        {"name": name, "value": joined(split_values(value))} for name, value in request.fields("preferences").items()
    ]
    if _draw_fault(request, draws, 20) == 0 and preferences:
        preferences.append({**preferences[0], "value": draws.pick(WORDS.get("summary.foreign"))})
    wordings = [WORDS.say("summary.told", draws.fork(place), slots) for place, slots in enumerate(preferences)]
    slots = {"domain": "".join(map(_get_name, request.parts("domain")[:1])).lower()}
    return " ".join([WORDS.say("summary.opening", draws, slots), *wordings, WORDS.say("summary.ending", draws)])


def _write_tasks(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    """Return tasks of one domain; if several domains are given, return tasks that combine two or three of them.

    No two tasks have the same goal.
    """
    domains, count = list(map(_get_name, request.parts("domain"))), request.inputs.get("count", 1)
    drawn = (_draw_task(request, draws.fork(at), domains) for at in range(_MAX_TEXTS))
    by_goal: dict[str, dict[str, Any]] = {}
    while len(by_goal) < count and (task := next(drawn, None)) is not None:
        by_goal.setdefault(task["goal"], task)
    made = list(by_goal.values())
    if _draw_fault(request, draws, 10) == 0 and made:
        made[0]["preferences"].append(WORDS.get("tasks.foreign"))
    return {"tasks": made}


def _draw_task(request: MarkedRequest, draws: Draws, domains: Sequence[str]) -> dict[str, Any]:
    about = draws.shuffled(domains)[: draws.number(2, 3)]
    chosen: list[str] = []
    for domain in about:
        own = [_get_name(part) for part in request.parts("preference") if part.attributes.get("domain") == domain]
        chosen += draws.shuffled(own)[: 1 if len(about) > 1 else draws.number(2, 3)]
    slots = {key: draws.pick(WORDS.get(f"tasks.{key}")) for key in ("occasion", "again")}
    slots |= {"domain": joined(about).lower(), "preference": joined(chosen).lower()}
    kind = {**draws.pick(WORDS.get("tasks.kinds")), "goal": WORDS.get("tasks.goal")}
    texts = {key: say([template], draws, slots) for key, template in kind.items()}
    return {**texts, "domains": about, "preferences": chosen}


def _write_situation(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    made = {key: draws.pick(words) for key, words in WORDS.get("situation").items()}
    country = request.fields("demographics").get("reside_country")
    return made | ({"location": f"{made['location']}, {country}"} if country else {})


def _draw_fault(request: MarkedRequest, draws: Draws, among: int) -> int | None:
    """Return a number below `among`, which selects a scripted fault or none; `None` if a fault must be repaired."""
    return None if request.is_repair else draws.fork("fault").number(0, among - 1)


def _get_name(part: Part) -> str:
    return part.attributes.get("name", "")


_WRITERS: Mapping[str, Callable[[MarkedRequest, Draws], Mapping[str, Any] | str]] = {
    "": _write_summary,
    "preferences": _write_preferences,
    "tasks": _write_tasks,
    "location": _write_situation,
}


_SELF = re.compile(r"\b(?:i am|i'm|i have|my)\b", re.IGNORECASE)
_POLITE = re.compile(r"\b(?:please|thanks|thank you)\b", re.IGNORECASE)
_OBJECTS = re.compile(r"^no\b|\b(?:that is not|that's not|i said|not what i)\b", re.IGNORECASE)
_THREE_WORDS = re.compile(r"\w+\W+\w+\W+\w+")
_MAX_AVERAGE_WORDS = 8


@understudy("transcript_people", "analyst")
def infer(request: MarkedRequest, _draws: Draws) -> dict[str, Any]:
    """Answer with `person`, `goal` and `traits`, each statement with the sentence that shows it."""
    lines = request.said_by("user")
    texts = [part for line in lines for each in line.splitlines() for part in sentences(each)]
    return {
        "person": _build_statement("You say of yourself: {}", _find_first(_SELF, texts), request.model),
        "goal": _build_statement("You want what you ask for: {}", _find_first(_THREE_WORDS, texts), request.model),
        "traits": [_build_statement(trait, shown, request.model) for trait, shown in _find_traits(lines, texts)],
    }


def _find_traits(lines: Sequence[str], texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    if shown := _find_first(_POLITE, texts):
        yield "is polite", shown
    if shown := _find_first(_OBJECTS, texts):
        yield "objects to what is wrong", shown
    if lines and sum(len(line.split()) for line in lines) <= _MAX_AVERAGE_WORDS * len(lines):
        yield "writes in few words", min(texts, key=len)


def _find_first(pattern: re.Pattern[str], texts: Sequence[str]) -> str:
    return next((sentence for sentence in texts if pattern.search(sentence)), "")


def _build_statement(template: str, shown: str, model: str) -> dict[str, Any]:
    if not shown:
        return {"statement": "", "evidence": []}
    return {"statement": template.format(shown), "evidence": [shown if model == "attentive" else shown.lower()]}
