"""The judges of an open chat: how well an answer suits the person who gets it.

Their rules, which the explanations name:
    5  it builds on a fact of the person that the message does not hold, in a manner that suits a trait
    4  it builds on such a fact, in anybody's tone
    3  it takes up the message in a manner that suits, or with two of its words and a question
    2  it takes up the message, or suits a trait, and no more
    1  nothing in it is for this person, or it is at odds with the facts
One point less for a phrase that could stand in any letter, and for a recital: more than four facts, or 90 words. An
answer that takes up no fact and holds such a phrase gets 2 or 1. Of a pair, the one with the higher score is better,
then the one that takes up more; between equals it is the first. As `generic`, a judge counts shared words alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..draws import Draws
from ..request import Request
from ..understudy import understudy
from ..words import joined
from .english import pairs, plain, quoted, sentences, stem, telling
from .facts import Fact, Weights, facts_of, given_away, traits_of
from .manners import Manner, suits

STOCK = re.compile(
    r"thank you for (?:sharing|your message|the (?:information|update)|telling me about|bringing)|thanks for "
    r"(?:sharing|letting me)|i appreciate you|feel free|let me know|there are (?:many|various|always|advantages)|is "
    r"(?:important|recommended|advisable|sensible)|here to help|(?:of|be of) (?:help|assistance)|i hope this helps|"
    r"further (?:information|questions)|happy to (?:help|assist)|general tips|as an ai|everyone (?:is different|has "
    r"different)|many people|can be (?:relaxing|rewarding|enriching|satisfying|helpful)",
    re.IGNORECASE,
)
_TO_YOU = re.compile(r"\byou(?:r|rs|rself|'\w+)?\b", re.IGNORECASE)
_NEGATIVE = re.compile(r"\b(?:not|never|no|nobody|cannot|without|hardly|rarely|none|nor|\w+n't)\b", re.IGNORECASE)
_NOT_YOU = re.compile(
    r"\byou(?:'re not| (?:\w+ )?(?:don't|do not|never|aren't|are not|can't|cannot|no longer|have no|didn't|haven't))\b",
    re.IGNORECASE,
)
_HATES = re.compile(r"\b(?:hates?|dislikes?|detests?|loathes?|can't stand|avoids?|afraid|dreads?|allergic)\b", re.I)
_YOU_LIKE = re.compile(
    r"\byou(?:'d| must| really| clearly| surely)* (?:love|like|enjoy|adore)\b|\byour love of\b", re.I
)
_RECITED, _TOO_LONG = 4, 90


@dataclass(frozen=True)
class _Found:
    """What was found in one answer: its score from 1 to 5, how much it takes up, and what decided it."""

    score: int
    content: float
    why: str


@understudy("judge", marks=("profile", "message", "answer"))
def judge_alignment(request: Request, draws: Draws) -> str:  # noqa: ARG001
    """Judge one answer: a JSON object with `score` and `explanation`."""
    found = _assessed(request, request.part("answer"))
    return json.dumps({"score": found.score, "explanation": found.why}, ensure_ascii=False)


@understudy("judge", marks=("message", "first", "second"))
def judge_pair(request: Request, draws: Draws) -> str:  # noqa: ARG001
    """Judge which of two answers suits better: a JSON object with `better` and `explanation`."""
    one, other = (_assessed(request, request.part(place)) for place in ("first", "second"))
    better = "second" if (other.score, other.content) > (one.score, one.content) else "first"
    why = f"The first: {one.why} The second: {other.why}"
    return json.dumps({"better": better, "explanation": why}, ensure_ascii=False)


def _assessed(request: Request, answer: str) -> _Found:
    message = request.part("message")
    echoed = telling(message) & telling(answer)
    stock = STOCK.search(answer)
    if not answer.strip():
        return _Found(1, 0.0, "There is no answer.")
    if request.model == "generic":
        score = max(1, (3 if echoed else 2) + (len(echoed) > 2) - bool(stock))
        return _Found(score, float(len(echoed)), f"{len(echoed)} words of the message come back in it.")
    facts = facts_of(request.part("profile"))
    odd = _at_odds(facts, message, answer)
    if odd:
        return _Found(1, 0.0, odd)
    taken = _taken_up(facts, message, answer)
    named = dict.fromkeys(manner for _, each in traits_of(request.part("personality")) for manner in each)
    fits = [manner for manner in named if suits(manner, answer)]
    score, why = _weighed(taken, fits, echoed, answer)
    content = 3.0 * len(taken) + len(fits) + 0.1 * len(echoed)
    if stock and not taken:
        rest = "only the topic" if echoed else "nothing"
        return _Found(2 if echoed else 1, content, f"{quoted(stock[0])} could stand in any letter; {rest} is taken up.")
    if stock:
        return _Found(score - 1, content, f"{why} {quoted(stock[0])} sounds like a letter.")
    if len(taken) > _RECITED or len(answer.split()) > _TOO_LONG:
        return _Found(max(1, score - 1), content, f"{why} It is too much of a recital.")
    return _Found(score, content, why)


def _weighed(taken: Sequence[Fact], fits: Sequence[Manner], echoed: frozenset[str], answer: str) -> tuple[int, str]:
    """Give the score by the rules, and why."""
    tone = joined([manner.name for manner in fits[:2]])
    if taken:
        about = joined([quoted(fact.source, 7) for fact in taken[:2]])
        if fits:
            return 5, f"It builds on {about}, in a tone for somebody {tone}."
        return 4, f"It builds on {about}, but the tone is anybody's."
    if fits and echoed:
        return 3, f"The tone suits somebody {tone}, but it knows no more than the message says."
    if fits:
        return 2, f"The tone would suit somebody {tone}, but the message is passed over."
    if echoed:
        words = f"It echoes {joined(sorted(echoed)[:2])}"
        if answer.rstrip().endswith("?") and len(echoed) > 1:
            return 3, f"{words} and asks on."
        return 2, f"{words} and adds nothing for this person."
    return 2 if len(telling(answer)) > 1 else 1, "Nothing in it is for this person."


def _taken_up(facts: Sequence[Fact], message: str, answer: str) -> list[Fact]:
    """Give the facts that an answer takes up, in what it says to the person, and that the message does not hold."""
    heard, inside = telling(message), given_away(facts, [message])
    names = r"(?<=\w )[A-Z][a-zà-ÿ]+"
    personal = [part for part in sentences(answer) if _TO_YOU.search(part) or re.search(names, part)]
    owned = " ".join(run for part in personal for run in re.findall(r"\byour ((?:[\w-]+ ?){1,3})", plain(part)))
    anchored = {
        stem(plain(word)) for word in [*owned.split(), *(n for part in personal for n in re.findall(names, part))]
    }
    words = telling(" ".join(personal))
    weights = Weights(facts)
    found = []
    for at, fact in enumerate(facts):
        hits = (fact.words & words) - heard
        if at in inside or not hits:
            continue
        weight = weights.of(hits)
        half = len(hits) > 1 and weight * 2 >= weights.of(fact.words)
        if weight >= 1.5 or half or hits & anchored or hits == fact.words:
            found.append(fact)
    return found


def _at_odds(facts: Sequence[Fact], message: str, answer: str) -> str:
    """Say what an answer gets wrong about the person; empty if nothing is."""
    known = telling(message).union(*(fact.words for fact in facts))
    for word, allowed in pairs("claimed").items():
        claims = re.search(rf"\byour (?:\w+ )?{word}\b", answer, re.IGNORECASE)
        if facts and claims and not known & {stem(each) for each in allowed.split()}:
            return f"It speaks of a {word} that this person does not have."
    for part in sentences(answer.replace("’", "'")):
        if not part.endswith("?") and _TO_YOU.search(part):
            for fact in facts:
                if _contradicts(part, fact):
                    return f"{quoted(part, 10)} is at odds with {quoted(fact.source, 10)}."
    return ""


def _contradicts(part: str, fact: Fact) -> bool:
    hits = fact.words & telling(part)
    if not hits:
        return False
    source = fact.source.replace("’", "'")
    hated, denied = bool(_HATES.search(source)), bool(_NEGATIVE.search(source))
    if _YOU_LIKE.search(part) and hated and not _NEGATIVE.search(part) and not _HATES.search(part):
        return True
    if len(hits) * 5 < len(fact.words) * 3 or len(hits) < min(2, len(fact.words)):
        return False
    return bool(_NOT_YOU.search(part)) and not denied and not hated
