"""The judges of a PersonaLens dialogue: four metrics by fixed rules, each with an explanation; and a reviewer of users.

* personalization, 1 to 4: counts the preferences relevant to the task that the assistant names before the user does
  (anticipated), after the user does (taken up), or not at all (passed over). 4: at least two, and at least half of
  them, are anticipated, and a reply suits the moment or three quarters are anticipated; 3: three in ten are
  anticipated, or two are used, none is passed over and a reply suits the moment; 2: something is anticipated or taken
  up, or no preference is relevant; 1: none is used, or only one of more than three. One point is deducted if the user
  corrects the assistant, or if more preferences were passed over than used. A reply suits the moment if it names a
  detail of the situation or the person that the user has not named.
* task_completion, true or false: each matter that the user has raised got a reply that does or proposes something, and
  the user did not give up on any of them.
* naturalness, 1 to 5: stock phrases, repeated sentences and stiff or overlong lines cost points.
* coherence, 1 to 5: repeated sentences, replies about another matter, and an open question at the end cost points.

As "generic", a judge is cruder: it only counts phrases and preferences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from .personalens_user import (
    find_topic,
    is_off_topic,
    list_wishes,
    load_domain,
    load_signal,
    makes_offer,
    read_affinities,
    reports_action,
)
from .understudy import Draws, MarkedRequest, SpokenLine, mentions_any, normalize, quote, sentences, understudy
from .words import joined


@understudy("personalens", "judge")
def judge(request: MarkedRequest, _draws: Draws) -> dict[str, Any]:
    """Answer with a verdict or a score, and an explanation that quotes the evidence."""
    crude, target = request.model == "generic", request.inputs.get("target", "assistant")
    match request.prompt.rpartition("/judge-")[2]:
        case "personalization":
            value, why = _judge_personalization(request, crude)
        case "naturalness":
            value, why = _judge_naturalness(request.said_by(target), target, crude)
        case "coherence":
            value, why = _judge_coherence(request, target, crude)
        case _:
            value, why = _judge_completion(request, crude)
    return {"verdict" if isinstance(value, bool) else "score": value, "explanation": why}


@dataclass
class _Evidence:
    """The preferences that are relevant to the task, by who named them first."""

    anticipated: list[str] = field(default_factory=list)
    taken_up: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.anticipated) + len(self.taken_up) + len(self.passed_over) + len(self.missed)

    def weigh(self, name: str, values: list[str], lines: Sequence[SpokenLine]) -> None:
        """Classify one preference by where the conversation mentions it."""
        named = [at for at, line in enumerate(lines) if line.speaker == "user" and mentions_any(line.text, values)]
        by_user = named[0] if named else len(lines)
        replies = [at for at, line in enumerate(lines) if line.speaker == "assistant"]
        used = [at for at in replies if mentions_any(_extract_statements(lines[at].text), values)]
        what = (
            f"{next((v for v in values if any(mentions_any(lines[at].text, [v]) for at in used)), values[0])} ({name})"
        )
        if used and used[0] < by_user:
            self.anticipated.append(what)
        elif named:
            (self.taken_up if used else self.passed_over).append(what)
        else:
            self.missed.append(what)


def _extract_statements(reply: str) -> str:
    """Return what a reply states or proposes: questions about the user's wishes are left out."""
    return " ".join(part for part in sentences(reply) if not part.endswith("?") or re.match("How about|I'd", part))


def _judge_personalization(request: MarkedRequest, crude: bool) -> tuple[int, str]:
    if not request.said_by("assistant"):
        return 1, "The assistant has not said anything yet."
    found, shown = _Evidence(), read_affinities(request)
    talk = "\n".join(line.text for line in request.lines)
    for domain, fields in shown:
        for at, (_, values) in enumerate(list_wishes(domain, fields, request.part("task"))):
            if at < (4 if len(shown) == 1 else 3) or mentions_any(talk, values):
                found.weigh(domain.name, values, request.lines)
    used = [*found.anticipated, *found.taken_up]
    if not found.total:
        return 2, "There is little to tailor here, and the help is neither particular nor wrong."
    if crude:
        share = (len(found.anticipated) + len(found.taken_up) / 2) / found.total
        score = 1 + (share >= 0.15) + (share >= 0.5) + (share >= 0.8)
        return score, f"{len(used)} of {found.total} preferences turn up in the replies: {joined(used[:2]) or 'none'}."
    if not used or (len(used) == 1 and found.total > 3):
        gap = joined([*found.passed_over, *found.missed][:2])
        return 1, f"{'Only ' + used[0] if used else 'Nothing'} is particular to this person; {gap} played no part."
    share = len(found.anticipated) / found.total
    moment = _find_moment(request)
    suits = f", and it suits the moment ({moment})" if moment else ""
    if share >= 0.5 and len(found.anticipated) > 1 and (moment or share >= 0.75):
        score, why = 4, f"It brings up {joined(found.anticipated[:3])} before the user says so{suits}."
    elif share >= 0.3:
        score, why = 3, f"It brings up {joined(found.anticipated[:3])} unprompted{suits}."
    elif moment and len(used) > 1 and not found.passed_over:
        score, why = 3, f"It takes up {joined(used[:3])}{suits}, though mostly after being told."
    else:
        gap = f": {found.missed[0]} could have been recalled" if found.missed else ""
        score, why = 2, f"It takes up {joined(used[:3])}, but anticipates too little{gap}."
    corrected = next((line for line in request.said_by("user")[1:] if load_signal("corrects").search(line)), "")
    if corrected or len(found.passed_over) > len(used):
        flaw = f"the user had to correct it: {quote(corrected, 8)}" if corrected else "most was said and passed over"
        return max(1, score - 1), f"{why} But {flaw}."
    return score, why


def _find_moment(request: MarkedRequest) -> str:
    """Return the detail of the situation or person that only the assistant mentions; empty if there is none."""
    by_assistant, by_user = (" ".join(request.said_by(speaker)) for speaker in ("assistant", "user"))
    situation, about = request.fields("situation"), request.fields("demographics")
    known = (situation.get("location"), situation.get("day of the week"), about.get("reside_country"))
    named = (value for value in known if value and mentions_any(by_assistant, [value]))
    return next((value for value in named if not mentions_any(by_user, [value])), "")


def _group_by_matter(request: MarkedRequest) -> dict[str, list[SpokenLine]]:
    """Group the lines of the conversation by the matter that the user is speaking about."""
    found: dict[str, list[SpokenLine]] = {}
    name = ""
    for line in request.lines:
        name = find_topic(line.text, name) if line.speaker == "user" else name
        found.setdefault(name, []).append(line)
    return found


def _judge_completion(request: MarkedRequest, crude: bool) -> tuple[bool, str]:
    replies = request.said_by("assistant")
    if not replies:
        return False, "The assistant never replied, so no part of the goal was achieved."
    results = {
        name: [
            line.text
            for line in lines
            if line.speaker == "assistant"
            and not is_off_topic(line.text, load_domain(name))
            and (reports_action(line.text) or load_signal("proposed").search(line.text) or makes_offer(line.text))
        ]
        for name, lines in _group_by_matter(request).items()
    }
    found = [text for texts in results.values() for text in texts]
    if not found or (crude and len(found) * 3 < len(replies)):
        return False, f"No reply does enough of what the goal asks for; the nearest is {quote(replies[-1])}."
    gave_up = next((line for line in request.said_by("user") if load_signal("gives_up").search(line)), "")
    missed = [name or "the first request" for name, texts in results.items() if not texts]
    if not crude and gave_up:
        return False, f"The user gave up on part of it: {quote(gave_up)}."
    if not crude and missed:
        return False, f"{joined(missed[:2])} never got a concrete result, although the user asked for it."
    return True, f"The goal is met, by {quote(found[-1])}."


def _find_repetition(texts: Sequence[str]) -> str:
    parts = [part for text in texts for part in sentences(text)]
    keys = [part.lower().strip(" .!") for part in parts]
    return next((parts[at] for at, key in enumerate(keys) if len(key.split()) > 3 and key in keys[:at]), "")


def _round_score(value: float) -> int:
    return max(1, min(5, round(value)))


def _judge_naturalness(texts: Sequence[str], target: str, crude: bool) -> tuple[int, str]:
    if not texts:
        return 3, f"The {target} says nothing, so there is little to hear."
    stock = [found.group() for text in texts for found in load_signal("stock").finditer(text)]
    repeated = _find_repetition(texts)
    if crude:
        score = 4 - (len(stock) > 1) - bool(repeated) + (not stock and len(texts) > 2)
        return score, f"{len(stock)} stock phrases, {'a' if repeated else 'no'} repeated sentence."
    stiff = sum(not load_signal("lively").search(text) for text in texts) > 0.4 * len(texts)
    listing = sum(re.sub("“[^”]*”", "", text).count(": ") for text in texts) > 1.5 * len(texts)
    notes = {
        f"stock phrases such as {quote(stock[0] if stock else '')}": min(1.6, 0.5 * len(stock)),
        f"it repeats {quote(repeated, 8)}": 0.8 * bool(repeated),
        "some lines are stiff": 0.6 * stiff,
        f"it is long-winded in {quote(max(texts, key=len), 6)}": 0.6 * (max(len(text.split()) for text in texts) > 60),
        "colons make it sound written": 0.5 * listing,
    }
    why = (
        "; ".join(note for note, cost in notes.items() if cost)
        or f"it talks like a person, as in {quote(texts[-1], 9)}"
    )
    return _round_score(5 - sum(notes.values())), f"For the {target}: {why}."


def _judge_coherence(request: MarkedRequest, target: str, crude: bool) -> tuple[int, str]:
    texts = request.said_by(target)
    if not texts:
        return 3, f"The {target} says nothing to judge."
    repeated = _find_repetition(texts)
    astray = [
        line.text
        for name, lines in _group_by_matter(request).items()
        for line in lines
        if line is not request.lines[-1]
        and target == "assistant" == line.speaker
        and is_off_topic(line.text, load_domain(name))
    ]
    vague = [text for text in texts if load_signal("stock").search(text)]
    if crude:
        return 5 - bool(repeated) - (len(texts) < 2), f"{'A' if repeated else 'No'} sentence comes twice."
    last = request.lines[-1]
    notes = {
        f"it repeats {quote(repeated, 8)}": 1.2 * bool(repeated),
        f"{quote((astray or [''])[0], 9)} is about something else": min(2.0, 1.0 * len(astray)),
        f"{quote((vague or [''])[0], 9)} does not take up what was said": min(1.5, 0.5 * len(vague)),
        "it ends on an open question": 0.5 * (last.speaker == target and last.text.endswith("?")),
    }
    why = "; ".join(note for note, cost in notes.items() if cost) or f"each line follows, up to {quote(texts[-1], 9)}"
    return _round_score(5 - sum(notes.values())), f"For the {target}: {why}."


_DENIES = re.compile(r"\bi (?:do not|don't|never|hate|can't stand) (?:really |ever )?((?:[\w'-]+ ?){1,5})")
_DROPS = re.compile(r"\b(?:never ?mind|forget it|forget about it|i'll leave it|i give up|don't bother|drop it)\b")
_THANKS = re.compile(r"\b(?:thanks|thank you|perfect|great|cheers)\b")
_REFUSED = re.compile(r"\b(?:can't|cannot|couldn't|could not|unable|sold out|not possible|i'm sorry|i am sorry)\b")
_FIGURE = re.compile(r"\d[\d:.,]*\d|\d")
_MIN_DISCLOSED_WORDS = 8


@understudy("gate", "reviewer")
def review(request: MarkedRequest, _draws: Draws) -> dict[str, Any]:
    """Answer whether the fault in question occurs."""
    given = " ".join(part.body for part in request.parts("about"))
    shown = _FAULT_FINDERS.get(request.inputs.get("fault", ""), _find_disclosure)(request, given)
    why = f"It shows in {quote(shown)}." if shown else "There is nothing to find."
    return {"verdict": bool(shown), "explanation": why}


def _find_contradiction(request: MarkedRequest, given: str) -> str:
    known = {word for word in normalize(given).split() if len(word) > 4}
    said = ((line, _DENIES.findall(line.lower().replace("’", "'"))) for line in request.said_by("user"))
    return next((line for line, denied in said if not known.isdisjoint(normalize(" ".join(denied)).split())), "")


def _find_invention(request: MarkedRequest, given: str) -> str:
    known = set(_FIGURE.findall(given))
    for line in request.lines:
        figures = _FIGURE.findall(line.text)
        if line.speaker == "user" and not known.issuperset(figures):
            return line.text
        known.update(figures)
    return ""


def _find_giving_up(request: MarkedRequest, _given: str) -> str:
    last = (request.said_by("user") or [""])[-1]
    return last if _DROPS.search(last.lower()) else ""


def _find_contentment(request: MarkedRequest, _given: str) -> str:
    pairs = ((before, line) for before, line in pairwise(request.lines) if before.speaker != "user" == line.speaker)
    refused = (line.text for before, line in pairs if _REFUSED.search(before.text.lower().replace("’", "'")))
    return next((text for text in refused if _THANKS.search(text.lower())), "")


def _find_disclosure(request: MarkedRequest, given: str) -> str:
    words = normalize(given).split()
    runs = [
        f" {' '.join(words[at : at + _MIN_DISCLOSED_WORDS])} " for at in range(len(words) - _MIN_DISCLOSED_WORDS + 1)
    ]
    said = ((line, f" {' '.join(normalize(line).split())} ") for line in request.said_by("user"))
    return next((line for line, text in said if any(run in text for run in runs)), "")


_FAULT_FINDERS = {
    "contradicts_persona": _find_contradiction,
    "invents_facts": _find_invention,
    "gives_up": _find_giving_up,
    "content_too_soon": _find_contentment,
}
