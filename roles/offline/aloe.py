"""The understudies of an open chat: the person, the induction, the answerers and the judges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .aloe_speech import (
    ENGLISH,
    GRAVE,
    LINES,
    MANNERS,
    SUBJECTS,
    Statement,
    Voice,
    beginnings,
    called,
    content_stems,
    first_person,
    fitting,
    manners_of,
    new_line,
    pattern,
    pronoun_known,
    sentences,
    shown_in,
    speaker_of,
    stated,
    statement_in,
    stem,
    subject_of,
)
from .understudy import Draws, MarkedRequest, plain, quoted, understudy
from .words import joined

_ENOUGH = 0.45
_PARTS = 720720  # divisible by 1 to 16, so that sums of shares are exact in any order


class Fact(NamedTuple):
    """A sentence of a description."""

    source: str  # verbatim
    sentence: str  # in the first person, without its full stop; empty if the conversion is uncertain
    words: frozenset[str]  # the stems of the fact's content words
    leans: bool  # whether it can only be understood after the preceding sentence


Facts = tuple[Fact, ...]


@understudy("aloe", "induction")
def induce(request: MarkedRequest, _draws: Draws) -> dict[str, str | None]:
    """Answer with `profile` and `personality`, each with the known sentences or nothing."""
    lines = request.said_by("user")
    facts, traits = facts_of(request.part("profile")), facts_of(request.part("personality"))
    shown = {name for line in lines for name in shown_in(line)}
    showing = {at for at, trait in enumerate(traits) if shown & {*manners_of(trait.source)}}
    pronoun = pronoun_known(request.part("profile"), lines)
    found: dict[str, str | None] = {}
    for tag, each, more in (("profile", facts, set()), ("personality", traits, showing)):
        whole, known = request.part(tag), sorted(given_away(each, lines) | more)
        joint = "\n" if "\n" in whole else " "
        found[tag] = joint.join(called(each[at].source, whole, pronoun) for at in known) or None
    return found


@lru_cache(maxsize=512)
def facts_of(text: str) -> Facts:
    """Split a description into its facts, in order."""
    found: list[Fact] = []
    for source in pattern("end").split(text.strip()):
        sentence, words = first_person(source, speaker_of(text)), content_stems(source)
        if len(words & content_stems(sentence)) < max(_ENOUGH * len(words), min(2, len(words))):
            sentence = ""  # too short to reveal the fact
        found.append(Fact(source, sentence, words, bool(found and pattern("leans").match(source))))
    return tuple(fact for fact in found if re.search(r"\w", fact.source))


def traits_of(personality: str) -> list[str]:
    """Return the manners (ways of speaking) that a personality mentions."""
    return list(dict.fromkeys(name for fact in facts_of(personality) for name in manners_of(fact.source)))


def weight(words: Iterable[str], facts: Facts) -> float:
    """Return the weight of words within a description; a word that occurs in several facts counts partly for each."""
    return sum(_PARTS // (_counts(facts)[word] or 1) for word in words) / _PARTS


def given_away(facts: Facts, lines: Iterable[str]) -> set[int]:
    """Return the indices of the facts that any single line reveals; more lines never reveal fewer."""
    return {at for line in lines for at in _in_line(facts, line)}


@lru_cache(maxsize=64)
def _counts(facts: Facts) -> Counter[str]:
    return Counter(word for fact in facts for word in fact.words)


@lru_cache(maxsize=4096)
def _in_line(facts: Facts, line: str) -> tuple[int, ...]:
    left, found = set(content_stems(line)), []
    whole = {at: weight(fact.words, facts) for at, fact in enumerate(facts) if fact.words & left}
    while whole:
        shares = {at: weight(facts[at].words & left, facts) / whole[at] for at in whole}
        at = max(shares, key=lambda each: (shares[each], -each))
        if len(facts[at].words & left) >= min(2, len(facts[at].words)) and shares[at] >= _ENOUGH:
            found.append(at)
            left -= facts[at].words
        del whole[at]
    return tuple(found)


@understudy("aloe", "judge", marks=("profile", "message", "answer"))
def judge_alignment(request: MarkedRequest, _draws: Draws) -> dict[str, Any]:
    """Judge one answer."""
    score, _, why = _assessed(request, request.part("answer"))
    return {"score": score, "explanation": why}


@understudy("aloe", "judge", marks=("message", "first", "second"))
def judge_pair(request: MarkedRequest, _draws: Draws) -> dict[str, str]:
    """Judge which of two answers suits better."""
    one, other = (_assessed(request, request.part(place)) for place in ("first", "second"))
    better = "second" if other[:2] > one[:2] else "first"
    return {"better": better, "explanation": f"The first: {one[2]} The second: {other[2]}"}


def stock_phrase(text: str) -> str:
    """Return a stock phrase of the text; empty if there is none."""
    found = beginnings(tuple(LINES.get("letter.phrases"))).search(text)
    return found[0] if found else ""


def _assessed(request: MarkedRequest, answer: str) -> tuple[int, float, str]:
    """Return an answer's score from 1 to 5, the amount of personal information that it uses, and the reason."""
    message, stock = request.part("message"), stock_phrase(answer)
    echoed = content_stems(message) & content_stems(answer)
    if request.model == "generic":
        score = max(1, (3 if echoed else 2) + (len(echoed) > 2) - bool(stock))
        return (score, len(echoed), f"{len(echoed)} words of the message come back in it.")
    facts = facts_of(request.part("profile"))
    odd = _at_odds(facts, message, answer)
    if odd or not answer:
        return (1, 0, odd or "There is no answer.")
    taken = _taken_up(facts, message, answer)
    fits = [name for name in traits_of(request.part("personality")) if name in shown_in(answer, "suited")]
    score, why = _weighed([fact.source for fact in taken], fits, sorted(echoed), answer)
    if stock:
        score, why = score - 1 if taken else 1 + bool(echoed), f"{why} {quoted(stock)} could stand in any letter."
    elif len(taken) > 4 or len(answer.split()) > 90:
        score, why = max(1, score - 1), f"{why} It is too much of a recital."
    return (score, 3 * len(taken) + len(fits) + 0.1 * len(echoed), why)


def _weighed(taken: Sequence[str], fits: Sequence[str], echoed: Sequence[str], answer: str) -> tuple[int, str]:
    """Return the score by the rules, and the reason."""
    tone = joined(fits[:2])
    if taken:
        about = f"It builds on {joined([quoted(source, 7) for source in taken[:2]])}"
        return (5, f"{about}, in a tone for somebody {tone}.") if fits else (4, f"{about}, but the tone is anybody's.")
    if fits and echoed:
        return 3, f"The tone suits somebody {tone}, but it knows no more than the message says."
    if len(echoed) > 1 and answer.endswith("?"):
        return 3, f"It echoes {joined(echoed[:2])} and asks on."
    if echoed:
        return 2, f"It echoes {joined(echoed[:2])} and adds nothing for this person."
    if fits:
        return 2, f"The tone would suit somebody {tone}, but the message is passed over."
    return 1, "Nothing is for this person."


def _taken_up(facts: Facts, message: str, answer: str) -> list[Fact]:
    """Return the facts about the person that an answer uses, except those stated in the last message."""
    known, inside = content_stems(message), given_away(facts, [message])
    personal = [part for part in sentences(answer) if pattern("your").search(part) or pattern("name").search(part)]
    owned = " ".join(run for part in personal for run in re.findall(r"\byour ((?:[\w-]+ ?){1,3})", plain(part)))
    anchors = {stem(word) for word in plain(f"{owned} {' '.join(pattern('name').findall(' '.join(personal)))}").split()}
    found, said = [], content_stems(" ".join(personal)) - known
    for at, fact in enumerate(facts):
        hits = fact.words & said
        half = len(hits) > 1 and weight(hits, facts) * 2 >= weight(fact.words, facts)
        if hits and at not in inside and (half or weight(hits, facts) >= 1.5 or hits & anchors or hits == fact.words):
            found.append(fact)
    return found


def _at_odds(facts: Facts, message: str, answer: str) -> str:
    """Return what an answer gets wrong about the person; empty if it gets nothing wrong."""
    known = content_stems(message).union(*(fact.words for fact in facts))
    for word, allowed in ENGLISH.get("claimed").items():
        claimed = facts and re.search(rf"\b[Yy]our (?:\w+ )?{word}\b", answer)
        if claimed and known.isdisjoint(map(stem, allowed.split())):
            return f"It speaks of a {word} that this person does not have."
    for part in (part for part in sentences(answer) if pattern("not_you").search(part) and not part.endswith("?")):
        for fact in facts:
            hits = fact.words & content_stems(part)
            if len(hits) > 1 and len(hits) * 5 >= len(fact.words) * 3 and not pattern("negative").search(fact.source):
                return f"{quoted(part)} is at odds with {quoted(fact.source)}."
    return ""


BRIEF = frozenset(("reserved", "blunt", "impatient"))


@understudy("aloe", "user", marks=("profile",))
def write(request: MarkedRequest, draws: Draws) -> str:
    """Write the person's next line."""
    facts, manners = facts_of(request.part("profile")), traits_of(request.part("personality"))
    own, replies = request.said_by("user"), request.said_by("assistant")
    return new_line(own, draws, lambda fork: _remarks(facts, manners, own, replies, fork)) or "Well, here I am."


def _remarks(
    facts: Facts, manners: Sequence[str], own: Sequence[str], replies: Sequence[str], draws: Draws
) -> list[str]:
    voice = Voice(own, draws)
    brief = not BRIEF.isdisjoint(manners)
    hello = "hello_formal" if "formal" in manners else "hello_brief" if brief else "hello"
    first = _reaction(own, replies, brief, voice, draws) if own else voice.of(LINES.get(f"user.{hello}"))
    new = _next_fact(facts, own, draws)
    if new:
        statement = stated(new.sentence)
        # A text with a full stop cannot be embedded in another sentence.
        whole = not own or statement.subject == "hardship" or draws.chance(0.55) or re.search(r"[.!?:]", new.sentence)
        statement_text = ("" if whole else voice.of(LINES.get("user.leads"), statement.slots)) or new.sentence
    else:
        statement = stated(draws.pick([fact.sentence for fact in facts if fact.sentence] or [""]))
        again = SUBJECTS.get(f"{statement.subject}.again")
        statement_text = voice.of([*LINES.get("user.again"), *(text for text in again if "{" in text)], statement.slots)
        statement_text = statement_text or voice.of(again, statement.slots) or voice.of(SUBJECTS.get("anything.again"))
    remark = _remark(manners, own, statement, voice, draws)
    more = ""
    if not (first and remark) and (not remark or not new or (not brief and draws.chance(0.35))):
        more = voice.of(SUBJECTS.get(f"{statement.subject}.says")) or voice.of(SUBJECTS.get("anything.says"))
    return [first, statement_text, more, remark]


def _next_fact(facts: Facts, own: Sequence[str], draws: Draws) -> Fact | None:
    known, last = given_away(facts, own), given_away(facts, own[-1:])
    earlier = frozenset().union(*(content_stems(line) for line in own))
    open_ = [at for at, fact in enumerate(facts) if fact.sentence and at not in known and not fact.words <= earlier]
    following = [at for at in open_ if facts[at].leans and at - 1 in last]
    free = following[:1] or [at for at in open_ if not facts[at].leans or at - 1 in known]
    if not own:
        free = [at for at in free if stated(facts[at].sentence).subject != "hardship"] or free
    return facts[draws.pick(free)] if free else None


def _reaction(own: Sequence[str], replies: Sequence[str], brief: bool, voice: Voice, draws: Draws) -> str:
    reply = replies[-1] if replies else ""
    if not reply or draws.chance(0.55 if brief else 0.25):
        return ""
    question = next(reversed(re.findall(r"[^.!?]*\?", reply)), "").lower()
    if question and draws.chance(0.8):
        return next(voice.of(each["say"]) for each in LINES.get("user.answers") if re.search(each["to"], question))
    earlier = content_stems(" ".join(own[:-1])) - content_stems(own[-1])
    if len(earlier & content_stems(reply)) >= 2:
        return voice.of(LINES.get("user.remembered"))
    return voice.of(LINES.get("user.leaflet" if stock_phrase(reply) else "user.heard")) if draws.chance(0.5) else ""


def _remark(manners: Sequence[str], own: Sequence[str], statement: Statement, voice: Voice, draws: Draws) -> str:
    """Return a remark that shows one trait, preferably one that has not been shown yet; empty if no remark is drawn."""
    possible = fitting(manners, statement.subject)
    shown = {name for line in own for name in shown_in(line)}
    hidden = [name for name in possible if name not in shown]
    if not draws.chance(0.9 if hidden else 0.7):
        return ""
    ordered = draws.shuffled(hidden) + draws.shuffled(possible)
    return next((remark for name in ordered if (remark := voice.of(MANNERS.get(f"{name}.says")))), "")


_COMES_TO_MIND, _MANNER_MISSED = 1 / 6, 0.82


class _Known(NamedTuple):
    """The material for an answer: the last statement, whether it is a repetition, earlier statements, and manners."""

    now: Statement | None
    again: bool
    earlier: list[tuple[int, Statement]]  # with the index of the line that states it
    manners: list[str]


@understudy("aloe", "assistant")
@understudy("aloe", "preferred")
@understudy("aloe", "rejected")
def answer(request: MarkedRequest, draws: Draws) -> str:
    """Answer the last message."""
    own = request.said_by("assistant")
    message = next(reversed(request.said_by("user")), "")
    if request.role == "rejected" or request.model == "generic":
        return new_line(own, draws, lambda fork: _letter(message, own, fork))
    known = (_from_induction if request.role == "preferred" else _from_chat)(request, message, draws)
    return new_line(own, draws, lambda fork: _friendly(known, message, own, fork))


def _from_induction(request: MarkedRequest, message: str, draws: Draws) -> _Known:
    lines, facts = request.said_by("user"), facts_of(request.part("profile"))
    fresh, before = given_away(facts, [message]), given_away(facts, lines[:-1])
    new = [at for at in sorted(fresh - before) or sorted(fresh) if facts[at].sentence]
    now = stated(facts[new[0]].sentence) if new else statement_in(message)
    first_place = {at: place for place in reversed(range(len(lines))) for at in given_away(facts, [lines[place]])}
    others = [at for at, fact in enumerate(facts) if fact.sentence and at not in fresh]
    manners = draws.shuffled(traits_of(request.part("personality")))
    manners.sort(key=lambda name: name not in shown_in(message))  # manners shown in this message come first
    earlier = [(first_place.get(at, 0), stated(facts[at].sentence)) for at in others]
    return _Known(now, bool(new) and not fresh - before, earlier, manners)


def _from_chat(request: MarkedRequest, message: str, draws: Draws) -> _Known:
    lines, words = request.said_by("user"), content_stems(message)
    statements = {each.text: (at, each) for at, line in enumerate(lines[:-1]) if (each := statement_in(line))}
    shares = {text: len(each.words & words) / len(each.words) for text, (_, each) in statements.items() if each.words}
    again = [statements[text][1] for text, share in shares.items() if share > 0.6]
    other = [statements[text] for text, share in shares.items() if share <= 0.5]
    earlier = [each for each in other if draws.fork("mind", each[1].text).chance(_COMES_TO_MIND)]
    showed = [shown_in(line) for line in lines if shown_in(line)]
    noticed = not draws.chance(_MANNER_MISSED ** len(showed))
    manners = draws.shuffled(list(dict.fromkeys(name for names in showed for name in names))) if noticed else []
    return _Known(again[0] if again else statement_in(message), bool(again), earlier, manners)


def _friendly(known: _Known, message: str, own: Sequence[str], draws: Draws) -> list[str]:
    voice, now = Voice(own, draws), known.now
    subject = now.subject if now else subject_of(message)
    echoes = LINES.get("echo.again" if known.again else f"echo.{subject}") or LINES.get("echo.plain")
    echo = voice.of(echoes, now.slots) if now else ""
    tone = next(
        (text for name in fitting(known.manners[:3], subject) if (text := voice.of(MANNERS.get(f"{name}.replies")))), ""
    )
    link = _link(known, own, voice, draws)
    brief = not BRIEF.isdisjoint(known.manners)
    tone = tone or ("" if echo and (brief or link) else voice.of(SUBJECTS.get(f"{subject}.reacts")))
    last = link or ("" if brief and draws.chance(0.4) else voice.of(SUBJECTS.get(f"{subject}.asks")))
    if not (echo or tone or last):
        echo = draws.pick(LINES.get("friend.nothing"))
    return [echo, last, tone] if tone and not last.endswith("?") and draws.chance(0.4) else [echo, tone, last]


def _link(known: _Known, own: Sequence[str], voice: Voice, draws: Draws) -> str:
    """Return a reference to an earlier statement, preferably to one that has not been referred to yet."""

    def taken_up(pair: tuple[int, Statement]) -> bool:
        return len(pair[1].words & content_stems(" ".join(own[pair[0] + 1 :]))) >= 2

    other = LINES.get("link.grave" if known.now and known.now.subject in GRAVE else "link.plain")
    ordered = [statement for _, statement in sorted(draws.shuffled(known.earlier), key=taken_up)]
    texts = (voice.of(LINES.get(f"link.{statement.subject}") or other, statement.slots) for statement in ordered)
    return next(filter(None, texts), "")


def _letter(message: str, own: Sequence[str], draws: Draws) -> list[str]:
    voice, statement = Voice(own, draws), statement_in(message)
    opener = voice.of(LINES.get("letter.thanks_about"), statement.slots) if statement and draws.chance(0.6) else ""
    opener = opener or voice.of(LINES.get("letter.thanks")) or draws.pick(LINES.get("letter.thanks"))
    plain = SUBJECTS.get(f"{statement.subject if statement else subject_of(message)}.plain")
    body = voice.of(plain) or voice.of(SUBJECTS.get("anything.plain")) or draws.pick(plain)
    offers = LINES.get("letter.offer")
    return [opener, body, (voice.of(offers) or draws.pick(offers)) if draws.chance(0.7) else ""]
