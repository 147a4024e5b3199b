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
    build_statement,
    compile_prefixes,
    compose_line,
    extract_content_stems,
    filter_manners,
    find_known_pronoun,
    find_manners,
    find_shown_manners,
    find_speaker,
    find_statement,
    find_subject,
    load_pattern,
    replace_pronoun,
    sentences,
    stem,
    to_first_person,
)
from .understudy import Draws, MarkedRequest, normalize, quote, understudy
from .words import joined

_MIN_SHARE = 0.45
_WEIGHT_UNIT = 720720  # divisible by 1 to 16, so that sums of shares are exact in any order


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
    facts, traits = split_facts(request.part("profile")), split_facts(request.part("personality"))
    shown = {name for line in lines for name in find_shown_manners(line)}
    showing = {at for at, trait in enumerate(traits) if shown & {*find_manners(trait.source)}}
    pronoun = find_known_pronoun(request.part("profile"), lines)
    found: dict[str, str | None] = {}
    for tag, each, more in (("profile", facts, set()), ("personality", traits, showing)):
        whole, known = request.part(tag), sorted(find_revealed_facts(each, lines) | more)
        joint = "\n" if "\n" in whole else " "
        found[tag] = joint.join(replace_pronoun(each[at].source, whole, pronoun) for at in known) or None
    return found


@lru_cache(maxsize=512)
def split_facts(text: str) -> Facts:
    """Split a description into its facts, in order."""
    found: list[Fact] = []
    for source in load_pattern("end").split(text.strip()):
        sentence, words = to_first_person(source, find_speaker(text)), extract_content_stems(source)
        if len(words & extract_content_stems(sentence)) < max(_MIN_SHARE * len(words), min(2, len(words))):
            sentence = ""  # too short to reveal the fact
        found.append(Fact(source, sentence, words, bool(found and load_pattern("leans").match(source))))
    return tuple(fact for fact in found if re.search(r"\w", fact.source))


def find_traits(personality: str) -> list[str]:
    """Return the manners (ways of speaking) that a personality mentions."""
    return list(dict.fromkeys(name for fact in split_facts(personality) for name in find_manners(fact.source)))


def compute_weight(words: Iterable[str], facts: Facts) -> float:
    """Return the weight of words within a description; a word that occurs in several facts counts partly for each."""
    return sum(_WEIGHT_UNIT // (_count_words(facts)[word] or 1) for word in words) / _WEIGHT_UNIT


def find_revealed_facts(facts: Facts, lines: Iterable[str]) -> set[int]:
    """Return the indices of the facts that any single line reveals; more lines never reveal fewer."""
    return {at for line in lines for at in _find_facts_in_line(facts, line)}


@lru_cache(maxsize=64)
def _count_words(facts: Facts) -> Counter[str]:
    return Counter(word for fact in facts for word in fact.words)


@lru_cache(maxsize=4096)
def _find_facts_in_line(facts: Facts, line: str) -> tuple[int, ...]:
    left, found = set(extract_content_stems(line)), []
    whole = {at: compute_weight(fact.words, facts) for at, fact in enumerate(facts) if fact.words & left}
    while whole:
        shares = {at: compute_weight(facts[at].words & left, facts) / whole[at] for at in whole}
        at = max(shares, key=lambda each: (shares[each], -each))
        if len(facts[at].words & left) >= min(2, len(facts[at].words)) and shares[at] >= _MIN_SHARE:
            found.append(at)
            left -= facts[at].words
        del whole[at]
    return tuple(found)


@understudy("aloe", "judge", marks=("profile", "message", "answer"))
def judge_alignment(request: MarkedRequest, _draws: Draws) -> dict[str, Any]:
    """Judge one answer."""
    score, _, why = _assess(request, request.part("answer"))
    return {"score": score, "explanation": why}


@understudy("aloe", "judge", marks=("message", "first", "second"))
def judge_pair(request: MarkedRequest, _draws: Draws) -> dict[str, str]:
    """Judge which of two answers suits better."""
    one, other = (_assess(request, request.part(place)) for place in ("first", "second"))
    better = "second" if other[:2] > one[:2] else "first"
    return {"better": better, "explanation": f"The first: {one[2]} The second: {other[2]}"}


def find_stock_phrase(text: str) -> str:
    """Return a stock phrase of the text; empty if there is none."""
    found = compile_prefixes(tuple(LINES.get("letter.phrases"))).search(text)
    return found[0] if found else ""


def _assess(request: MarkedRequest, answer: str) -> tuple[int, float, str]:
    """Return an answer's score from 1 to 5, the amount of personal information that it uses, and the reason."""
    message, stock = request.part("message"), find_stock_phrase(answer)
    echoed = extract_content_stems(message) & extract_content_stems(answer)
    if request.model == "generic":
        score = max(1, (3 if echoed else 2) + (len(echoed) > 2) - bool(stock))
        return (score, len(echoed), f"{len(echoed)} words of the message come back in it.")
    facts = split_facts(request.part("profile"))
    odd = _find_contradiction(facts, message, answer)
    if odd or not answer:
        return (1, 0, odd or "There is no answer.")
    taken = _find_used_facts(facts, message, answer)
    fits = [name for name in find_traits(request.part("personality")) if name in find_shown_manners(answer, "suited")]
    score, why = _score([fact.source for fact in taken], fits, sorted(echoed), answer)
    if stock:
        score, why = score - 1 if taken else 1 + bool(echoed), f"{why} {quote(stock)} could stand in any letter."
    elif len(taken) > 4 or len(answer.split()) > 90:
        score, why = max(1, score - 1), f"{why} It is too much of a recital."
    return (score, 3 * len(taken) + len(fits) + 0.1 * len(echoed), why)


def _score(taken: Sequence[str], fits: Sequence[str], echoed: Sequence[str], answer: str) -> tuple[int, str]:
    """Return the score by the rules, and the reason."""
    tone = joined(fits[:2])
    if taken:
        about = f"It builds on {joined([quote(source, 7) for source in taken[:2]])}"
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


def _find_used_facts(facts: Facts, message: str, answer: str) -> list[Fact]:
    """Return the facts about the person that an answer uses, except those stated in the last message."""
    known, inside = extract_content_stems(message), find_revealed_facts(facts, [message])
    personal = [
        part for part in sentences(answer) if load_pattern("your").search(part) or load_pattern("name").search(part)
    ]
    owned = " ".join(run for part in personal for run in re.findall(r"\byour ((?:[\w-]+ ?){1,3})", normalize(part)))
    anchors = {
        stem(word)
        for word in normalize(f"{owned} {' '.join(load_pattern('name').findall(' '.join(personal)))}").split()
    }
    found, said = [], extract_content_stems(" ".join(personal)) - known
    for at, fact in enumerate(facts):
        hits = fact.words & said
        half = len(hits) > 1 and compute_weight(hits, facts) * 2 >= compute_weight(fact.words, facts)
        if (
            hits
            and at not in inside
            and (half or compute_weight(hits, facts) >= 1.5 or hits & anchors or hits == fact.words)
        ):
            found.append(fact)
    return found


def _find_contradiction(facts: Facts, message: str, answer: str) -> str:
    """Return what an answer gets wrong about the person; empty if it gets nothing wrong."""
    known = extract_content_stems(message).union(*(fact.words for fact in facts))
    for word, allowed in ENGLISH.get("claimed").items():
        claimed = facts and re.search(rf"\b[Yy]our (?:\w+ )?{word}\b", answer)
        if claimed and known.isdisjoint(map(stem, allowed.split())):
            return f"It speaks of a {word} that this person does not have."
    for part in (part for part in sentences(answer) if load_pattern("not_you").search(part) and not part.endswith("?")):
        for fact in facts:
            hits = fact.words & extract_content_stems(part)
            if (
                len(hits) > 1
                and len(hits) * 5 >= len(fact.words) * 3
                and not load_pattern("negative").search(fact.source)
            ):
                return f"{quote(part)} is at odds with {quote(fact.source)}."
    return ""


BRIEF = frozenset(("reserved", "blunt", "impatient"))


@understudy("aloe", "user", marks=("profile",))
def write(request: MarkedRequest, draws: Draws) -> str:
    """Write the person's next line."""
    facts, manners = split_facts(request.part("profile")), find_traits(request.part("personality"))
    own, replies = request.said_by("user"), request.said_by("assistant")
    return (
        compose_line(own, draws, lambda fork: _compose_remarks(facts, manners, own, replies, fork))
        or "Well, here I am."
    )


def _compose_remarks(
    facts: Facts, manners: Sequence[str], own: Sequence[str], replies: Sequence[str], draws: Draws
) -> list[str]:
    voice = Voice(own, draws)
    brief = not BRIEF.isdisjoint(manners)
    hello = "hello_formal" if "formal" in manners else "hello_brief" if brief else "hello"
    first = _compose_reaction(own, replies, brief, voice, draws) if own else voice.of(LINES.get(f"user.{hello}"))
    new = _choose_fact(facts, own, draws)
    if new:
        statement = build_statement(new.sentence)
        # A text with a full stop cannot be embedded in another sentence.
        whole = not own or statement.subject == "hardship" or draws.chance(0.55) or re.search(r"[.!?:]", new.sentence)
        statement_text = ("" if whole else voice.of(LINES.get("user.leads"), statement.slots)) or new.sentence
    else:
        statement = build_statement(draws.pick([fact.sentence for fact in facts if fact.sentence] or [""]))
        again = SUBJECTS.get(f"{statement.subject}.again")
        statement_text = voice.of([*LINES.get("user.again"), *(text for text in again if "{" in text)], statement.slots)
        statement_text = statement_text or voice.of(again, statement.slots) or voice.of(SUBJECTS.get("anything.again"))
    remark = _compose_remark(manners, own, statement, voice, draws)
    more = ""
    if not (first and remark) and (not remark or not new or (not brief and draws.chance(0.35))):
        more = voice.of(SUBJECTS.get(f"{statement.subject}.says")) or voice.of(SUBJECTS.get("anything.says"))
    return [first, statement_text, more, remark]


def _choose_fact(facts: Facts, own: Sequence[str], draws: Draws) -> Fact | None:
    known, last = find_revealed_facts(facts, own), find_revealed_facts(facts, own[-1:])
    earlier = frozenset().union(*(extract_content_stems(line) for line in own))
    open_ = [at for at, fact in enumerate(facts) if fact.sentence and at not in known and not fact.words <= earlier]
    following = [at for at in open_ if facts[at].leans and at - 1 in last]
    free = following[:1] or [at for at in open_ if not facts[at].leans or at - 1 in known]
    if not own:
        free = [at for at in free if build_statement(facts[at].sentence).subject != "hardship"] or free
    return facts[draws.pick(free)] if free else None


def _compose_reaction(own: Sequence[str], replies: Sequence[str], brief: bool, voice: Voice, draws: Draws) -> str:
    reply = replies[-1] if replies else ""
    if not reply or draws.chance(0.55 if brief else 0.25):
        return ""
    question = next(reversed(re.findall(r"[^.!?]*\?", reply)), "").lower()
    if question and draws.chance(0.8):
        return next(voice.of(each["say"]) for each in LINES.get("user.answers") if re.search(each["to"], question))
    earlier = extract_content_stems(" ".join(own[:-1])) - extract_content_stems(own[-1])
    if len(earlier & extract_content_stems(reply)) >= 2:
        return voice.of(LINES.get("user.remembered"))
    return (
        voice.of(LINES.get("user.leaflet" if find_stock_phrase(reply) else "user.heard")) if draws.chance(0.5) else ""
    )


def _compose_remark(
    manners: Sequence[str], own: Sequence[str], statement: Statement, voice: Voice, draws: Draws
) -> str:
    """Return a remark that shows one trait, preferably one that has not been shown yet; empty if no remark is drawn."""
    possible = filter_manners(manners, statement.subject)
    shown = {name for line in own for name in find_shown_manners(line)}
    hidden = [name for name in possible if name not in shown]
    if not draws.chance(0.9 if hidden else 0.7):
        return ""
    ordered = draws.shuffled(hidden) + draws.shuffled(possible)
    return next((remark for name in ordered if (remark := voice.of(MANNERS.get(f"{name}.says")))), "")


_COMES_TO_MIND, _MANNER_MISSED = 1 / 6, 0.82


class _AnswerMaterial(NamedTuple):
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
        return compose_line(own, draws, lambda fork: _compose_letter(message, own, fork))
    known = (_read_induction if request.role == "preferred" else _read_chat)(request, message, draws)
    return compose_line(own, draws, lambda fork: _compose_friendly_answer(known, message, own, fork))


def _read_induction(request: MarkedRequest, message: str, draws: Draws) -> _AnswerMaterial:
    lines, facts = request.said_by("user"), split_facts(request.part("profile"))
    fresh, before = find_revealed_facts(facts, [message]), find_revealed_facts(facts, lines[:-1])
    new = [at for at in sorted(fresh - before) or sorted(fresh) if facts[at].sentence]
    now = build_statement(facts[new[0]].sentence) if new else find_statement(message)
    first_place = {
        at: place for place in reversed(range(len(lines))) for at in find_revealed_facts(facts, [lines[place]])
    }
    others = [at for at, fact in enumerate(facts) if fact.sentence and at not in fresh]
    manners = draws.shuffled(find_traits(request.part("personality")))
    manners.sort(key=lambda name: name not in find_shown_manners(message))  # manners shown in this message come first
    earlier = [(first_place.get(at, 0), build_statement(facts[at].sentence)) for at in others]
    return _AnswerMaterial(now, bool(new) and not fresh - before, earlier, manners)


def _read_chat(request: MarkedRequest, message: str, draws: Draws) -> _AnswerMaterial:
    lines, words = request.said_by("user"), extract_content_stems(message)
    statements = {each.text: (at, each) for at, line in enumerate(lines[:-1]) if (each := find_statement(line))}
    shares = {text: len(each.words & words) / len(each.words) for text, (_, each) in statements.items() if each.words}
    again = [statements[text][1] for text, share in shares.items() if share > 0.6]
    other = [statements[text] for text, share in shares.items() if share <= 0.5]
    earlier = [each for each in other if draws.fork("mind", each[1].text).chance(_COMES_TO_MIND)]
    showed = [find_shown_manners(line) for line in lines if find_shown_manners(line)]
    noticed = not draws.chance(_MANNER_MISSED ** len(showed))
    manners = draws.shuffled(list(dict.fromkeys(name for names in showed for name in names))) if noticed else []
    return _AnswerMaterial(again[0] if again else find_statement(message), bool(again), earlier, manners)


def _compose_friendly_answer(known: _AnswerMaterial, message: str, own: Sequence[str], draws: Draws) -> list[str]:
    voice, now = Voice(own, draws), known.now
    subject = now.subject if now else find_subject(message)
    echoes = LINES.get("echo.again" if known.again else f"echo.{subject}") or LINES.get("echo.plain")
    echo = voice.of(echoes, now.slots) if now else ""
    tone = next(
        (
            text
            for name in filter_manners(known.manners[:3], subject)
            if (text := voice.of(MANNERS.get(f"{name}.replies")))
        ),
        "",
    )
    link = _compose_link(known, own, voice, draws)
    brief = not BRIEF.isdisjoint(known.manners)
    tone = tone or ("" if echo and (brief or link) else voice.of(SUBJECTS.get(f"{subject}.reacts")))
    last = link or ("" if brief and draws.chance(0.4) else voice.of(SUBJECTS.get(f"{subject}.asks")))
    if not (echo or tone or last):
        echo = draws.pick(LINES.get("friend.nothing"))
    return [echo, last, tone] if tone and not last.endswith("?") and draws.chance(0.4) else [echo, tone, last]


def _compose_link(known: _AnswerMaterial, own: Sequence[str], voice: Voice, draws: Draws) -> str:
    """Return a reference to an earlier statement, preferably to one that has not been referred to yet."""

    def taken_up(pair: tuple[int, Statement]) -> bool:
        return len(pair[1].words & extract_content_stems(" ".join(own[pair[0] + 1 :]))) >= 2

    other = LINES.get("link.grave" if known.now and known.now.subject in GRAVE else "link.plain")
    ordered = [statement for _, statement in sorted(draws.shuffled(known.earlier), key=taken_up)]
    texts = (voice.of(LINES.get(f"link.{statement.subject}") or other, statement.slots) for statement in ordered)
    return next(filter(None, texts), "")


def _compose_letter(message: str, own: Sequence[str], draws: Draws) -> list[str]:
    voice, statement = Voice(own, draws), find_statement(message)
    opener = voice.of(LINES.get("letter.thanks_about"), statement.slots) if statement and draws.chance(0.6) else ""
    opener = opener or voice.of(LINES.get("letter.thanks")) or draws.pick(LINES.get("letter.thanks"))
    plain = SUBJECTS.get(f"{statement.subject if statement else find_subject(message)}.plain")
    body = voice.of(plain) or voice.of(SUBJECTS.get("anything.plain")) or draws.pick(plain)
    offers = LINES.get("letter.offer")
    return [opener, body, (voice.of(offers) or draws.pick(offers)) if draws.chance(0.7) else ""]
