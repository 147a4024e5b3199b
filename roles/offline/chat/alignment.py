"""How well an answer suits the person who gets it: the judges of a chat."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..evidence import quoted
from ..lazy import Lazy
from ..prose import joined, sentences
from .facts import Fact, Weights, facts_of, given_away
from .manners import Manner, manners_of
from .person import Speaker
from .words import spelled_plainly, stem, telling

_STOCK = Lazy(
    r"thank you for (?:sharing|your message|the (?:information|update)|telling me about|bringing)|thanks for "
    r"(?:sharing|letting me)|"
    r"i appreciate you|feel free|let me know|there are (?:many|various|always|advantages)|is (?:important|"
    r"recommended|advisable|sensible)|"
    r"here to help|of assistance|i hope this helps|further information|happy to (?:help|assist)|general tips|as an ai|"
    r"everyone (?:is different|has different)|many people|can be (?:relaxing|rewarding|enriching|satisfying|helpful)",
    re.IGNORECASE,
)
_TO_YOU = Lazy(r"\byou(?:r|rs|rself|'\w+)?\b", re.IGNORECASE)
_NOT_YOU = Lazy(
    r"\b(?:you (?:\w+ )?(?:don't|do not|never|aren't|are not|can't|cannot|no longer|have no|didn't|did not|"
    r"haven't)|you're not)\b",
    re.IGNORECASE,
)
_NEGATIVE = Lazy(r"\b(?:not|never|no|nobody|cannot|without|hardly|rarely|none|nor|\w+n't)\b", re.IGNORECASE)
_YOU_LIKE = Lazy(
    r"\byou(?:'d| must| probably| really| clearly| surely| would)* (?:love|like|enjoy|adore)\b|\byour (?:love "
    r"of|favou?rite)\b",
    re.IGNORECASE,
)
_YOU_HATE = Lazy(
    r"\byou(?:'d| must| probably| really| clearly| surely| would)* (?:hate|dislike|detest|can't stand|loathe)\b",
    re.IGNORECASE,
)
_LIKES = Lazy(r"\b(?:loves?|likes?|enjoys?|adores?|fond|favou?rite|delights?)\b", re.IGNORECASE)
_HATES = Lazy(
    r"\b(?:hates?|dislikes?|detests?|loathes?|can't stand|cannot stand|avoids?|afraid|despises?|dreads?|allergic)\b",
    re.IGNORECASE,
)
_CLAIMED = {
    "husband": "husband married wedding partner widow divorced",
    "wife": "wife married wedding partner widower divorced",
    "girlfriend": "girlfriend partner",
    "boyfriend": "boyfriend partner",
    "son": "son child baby toddler twin boy family",
    "daughter": "daughter child baby toddler twin girl family",
    "dog": "dog terrier labrador spaniel greyhound collie beagle dachshund poodle pet hound retriever",
    "cat": "cat kitten pet tabby",
}
_RECITED = 4
_TOO_LONG = 90


@dataclass(frozen=True)
class Alignment:
    """What was found in one answer.

    Attributes:
        score: 1 to 5.
        content: How much of the person and of the message it takes up, for answers of equal scores.
        why: What decided it.
    """

    score: int
    content: float
    why: str


def alignment_verdict(model: str, profile: str, personality: str, message: str, answer: str) -> str:
    """Judge one answer: a JSON object with `score` and `explanation`."""
    found = aligned(profile, personality, message, answer, crude=model == "generic")
    return json.dumps({"score": found.score, "explanation": found.why}, ensure_ascii=False)


def pair_verdict(model: str, profile: str, personality: str, message: str, first: str, second: str) -> str:
    """Judge which of two answers suits better: a JSON object with `better` and `explanation`."""
    crude = model == "generic"
    one, other = (aligned(profile, personality, message, answer, crude=crude) for answer in (first, second))
    better = "second" if (other.score, other.content) > (one.score, one.content) else "first"
    why = f"The first: {one.why} The second: {other.why}"
    return json.dumps({"better": better, "explanation": why}, ensure_ascii=False)


def aligned(profile: str, personality: str, message: str, answer: str, *, crude: bool = False) -> Alignment:
    """Assess an answer.

    Args:
        profile: The facts of the person's life.
        personality: Its traits.
        message: What the person wrote.
        answer: What is judged.
        crude: Look at shared words alone.
    """
    echoed = telling(message) & telling(answer)
    stock = _STOCK.search(answer)
    if not answer.strip():
        return Alignment(1, 0.0, "There is no answer.")
    if crude:
        score = max(1, (3 if echoed else 2) + (len(echoed) > 2) - bool(stock))
        return Alignment(score, float(len(echoed)), f"{len(echoed)} words of the message come back in it.")
    facts = facts_of(profile, Speaker.of(profile))
    odd = _at_odds(facts, message, answer)
    if odd:
        return Alignment(1, 0.0, odd)
    taken = taken_up(facts, message, answer)
    fits = [
        manner
        for trait in facts_of(personality, Speaker.of(personality))
        for manner in manners_of(trait.source)
        if manner.suits(answer)
    ]
    return _weighed(facts, taken, list(dict.fromkeys(fits)), echoed, stock, answer)


def _weighed(
    facts: Sequence[Fact],
    taken: Sequence[int],
    fits: Sequence[Manner],
    echoed: frozenset[str],
    stock: re.Match[str] | None,
    answer: str,
) -> Alignment:
    content = 3.0 * len(taken) + len(fits) + 0.1 * len(echoed)
    about = joined([quoted(facts[at].source, 7) for at in taken[:2]])
    tone = joined([manner.name for manner in fits[:2]])
    if stock and not taken:
        why = f"{quoted(stock.group())} could stand in any letter"
        return Alignment(
            2 if echoed else 1, content, f"{why}; {'only the topic' if echoed else 'nothing'} is taken up."
        )
    if taken:
        score = 5 if fits else 4
        why = f"it builds on {about}" + (
            f", in a tone for somebody {tone}." if fits else ", but the tone is anybody's."
        )
    elif fits and echoed:
        score, why = 3, f"the tone suits somebody {tone}, but it knows no more than the message says."
    elif echoed:
        lively = answer.rstrip().endswith("?") and len(echoed) > 1
        score = 3 if lively else 2
        why = f"it echoes {joined(sorted(echoed)[:2])}" + (
            " and asks on." if lively else " and adds nothing for this person."
        )
    else:
        score = 2
        why = (
            f"the tone would suit somebody {tone}, but the message is passed over."
            if fits
            else "nothing in it is for this person."
        )
    if len(taken) > _RECITED or len(answer.split()) > _TOO_LONG or stock:
        score -= 1
        why += " It is too much of a recital." if not stock else f" {quoted(stock.group())} sounds like a letter."
    return Alignment(max(1, score), content, why[:1].upper() + why[1:])


def taken_up(facts: Sequence[Fact], message: str, answer: str) -> list[int]:
    """Tell the places of the facts that an answer takes up and the message does not hold."""
    heard = telling(message)
    inside = given_away(facts, [message])
    found = []
    weights = Weights(facts)
    personal = [part for part in sentences(answer) if _TO_YOU.search(part) or re.search(r"(?<=\w )[A-Z][a-z]+", part)]
    mine = {stem(word) for part in personal for run in _anchored(part) for word in run}
    words = telling(" ".join(personal))
    for at, fact in enumerate(facts):
        hits = (fact.words & words) - heard
        if at in inside or not hits:
            continue
        whole = weights.of(fact.words)
        if (
            weights.of(hits) >= 1.5
            or (len(hits) > 1 and weights.of(hits) * 2 >= whole)
            or hits & mine
            or hits == fact.words
        ):
            found.append(at)
    return found


def _anchored(part: str) -> list[list[str]]:
    """Words that an answer names as the person's own (`your older sister`), and names."""
    runs = [found.group(1).split() for found in re.finditer(r"\byour ((?:[\w-]+ ?){1,3})", spelled_plainly(part))]
    return runs + [[spelled_plainly(name)] for name in re.findall(r"(?<=\w )([A-Z][a-zà-ÿ]+)", part)]


def _at_odds(facts: Sequence[Fact], message: str, answer: str) -> str:
    known = telling(" ".join(fact.told for fact in facts)) | telling(message)
    for word, allowed in _CLAIMED.items():
        if (
            facts
            and re.search(rf"\byour (?:\w+ )?{word}\b", answer, re.IGNORECASE)
            and not known & {stem(each) for each in allowed.split()}
        ):
            return f"It speaks of a {word} that this person does not have."
    for part in sentences(answer):
        if part.endswith("?") or not _TO_YOU.search(part):
            continue
        for fact in facts:
            if _contradicts(part.replace("’", "'"), fact):
                return f"{quoted(part, 10)} is at odds with {quoted(fact.source, 10)}."
    return ""


def _contradicts(part: str, fact: Fact) -> bool:
    hits = fact.words & telling(part)
    if not hits:
        return False
    told = fact.told.replace("’", "'")
    if _YOU_LIKE.search(part) and not _NOT_YOU.search(part) and _HATES.search(told) and not _HATES.search(part):
        return True
    if _YOU_HATE.search(part) and _LIKES.search(told) and not _HATES.search(told):
        return True
    if len(hits) * 5 < len(fact.words) * 3 or len(hits) < min(2, len(fact.words)):
        return False
    if _NOT_YOU.search(part):
        return not _NEGATIVE.search(told) and not _HATES.search(told)
    return bool(
        re.match(r"I (?:\w+ )?(?:never|don't|do not|can't|cannot)\b|I am not\b", told)
    ) and not _NEGATIVE.search(part)
