"""The answerers of an open chat.

The attentive one takes up what was just told, ties it to something that it knows of the person, and speaks in a manner
that suits. As the preferred responder it knows what was induced. With nothing but the chat it knows what the chat told:
each thing told before comes to mind with a chance of 14 % (28 % if it belongs to the same circle of life), so that the
more was told, the likelier there is something to tie to; so it is with manners that showed. The generic one, and the
rejected responder, write a form letter: thanks, a commonplace of the topic, an offer to help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..draws import Draws
from ..request import Request
from ..understudy import understudy
from .english import LINES, telling
from .facts import facts_of, given_away, traits_of
from .manners import Manner, shown_in
from .statements import Statement, circle_of, remarks, stated, statement_in, subject_of
from .user import BRIEF
from .voice import Voice, new_line, put_together

_COMES_TO_MIND = 0.14
_MANNER_MISSED = 0.82
_LEISURE = frozenset("pets cooking drinks garden music reading screen sport crafts learning".split())


@dataclass(frozen=True)
class _Known:
    """What an answer can build on: what the last message tells, whether it was told before; the rest; the manner."""

    now: Statement | None
    again: bool
    earlier: tuple[tuple[int, Statement], ...]  # with the place of the line that told it
    manners: tuple[Manner, ...]


@understudy("assistant", when=lambda request: request.bare)
def chat(request: Request, draws: Draws) -> str:
    """Answer a bare chat."""
    return _answer(request, draws, _from_chat)


@understudy("preferred")
def prefer(request: Request, draws: Draws) -> str:
    """Answer with what was induced about the person."""
    return _answer(request, draws, _from_induction)


@understudy("rejected")
def reject(request: Request, draws: Draws) -> str:
    """Answer with what could be said to anyone."""
    return _answer(request, draws, None)


def _answer(request: Request, draws: Draws, gather: Callable[[Request, Draws], _Known] | None) -> str:
    own = request.said_by("assistant")
    message = next(reversed(request.said_by("user")), "")
    if gather is None or request.model == "generic":
        return new_line(own, draws, lambda fork: _letter(message, own, fork))
    known = gather(request, draws)
    return new_line(own, draws, lambda fork: _friendly(known, message, own, fork))


def _from_induction(request: Request, draws: Draws) -> _Known:
    lines = request.said_by("user")
    message = next(reversed(lines), "")
    facts = facts_of(request.part("profile"))
    fresh, before = given_away(facts, [message]), given_away(facts, lines[:-1])
    news = [at for at in sorted(fresh - before) or sorted(fresh) if facts[at].told]
    now = stated(facts[news[0]].told) if news else statement_in(message)
    told_in = {at: place for place in reversed(range(len(lines))) for at in given_away(facts, [lines[place]])}
    earlier = [
        (told_in.get(at, 0), stated(fact.told)) for at, fact in enumerate(facts) if fact.told and at not in fresh
    ]
    named = [manner for _, each in traits_of(request.part("personality")) for manner in each]
    # What shows in the message itself comes first: it suits the moment.
    ordered = [manner for manner in shown_in(message) if manner in named] + draws.shuffled(list(dict.fromkeys(named)))
    return _Known(now, bool(news) and not fresh - before, tuple(earlier), tuple(dict.fromkeys(ordered)))


def _from_chat(request: Request, draws: Draws) -> _Known:
    lines = request.said_by("user")
    message = next(reversed(lines), "")
    words = telling(message)
    now = statement_in(message)
    told = {each: at for at, line in reversed([*enumerate(lines[:-1])]) if (each := statement_in(line)) is not None}
    again = [each for each in told if len(each.words) > 1 and len(each.words & words) * 3 >= len(each.words) * 2]
    now = again[-1] if again else now
    about = circle_of(now.subject if now else subject_of(message))
    fitting = []
    for each, at in told.items():
        near = bool(about) and circle_of(each.subject) == about
        chance = _COMES_TO_MIND * (2 if near else 1)
        if len(each.words & words) * 2 <= len(each.words) and draws.fork("mind", each.text).chance(chance):
            fitting.append((at, each))
    showed = list(dict.fromkeys(manner for line in lines for manner in shown_in(line)))
    shows = sum(bool(shown_in(line)) for line in lines)
    manners = [] if draws.chance(_MANNER_MISSED**shows) else draws.shuffled(showed)
    return _Known(now, bool(again), tuple(fitting), tuple(manners))


def _friendly(known: _Known, message: str, own: Sequence[str], draws: Draws) -> str:
    voice = Voice(own, draws)
    now, names = known.now, {manner.name for manner in known.manners}
    slots = now.slots() if now else {}
    subject = now.subject if now else subject_of(message)
    grave = now is not None and now.is_grave
    echo = voice.of(LINES.get("echo.again"), slots) if known.again else _echo(now, voice, draws)
    suitable = [manner for manner in known.manners[:3] if manner.grave or not grave]
    tone = next((text for manner in suitable if (text := voice.of(manner.replies))), "")
    link = _link(known, own, voice, draws)
    brief = bool(names & BRIEF)
    tone = tone or ("" if echo and (brief or link) else voice.of(remarks(subject, "reacts"), slots))
    last = link or ("" if brief and draws.chance(0.4) else voice.of(remarks(subject, "asks"), slots))
    if not (echo or tone or last):
        echo = voice.of(LINES.get("friend.nothing")) or draws.pick(LINES.get("friend.nothing"))
    tone_last = tone and not last.endswith("?") and draws.chance(0.4)
    return put_together([echo, last, tone] if tone_last else [echo, tone, last], formal="formal" in names)


def _echo(now: Statement | None, voice: Voice, draws: Draws) -> str:
    """Take up what was just told."""
    if now is None:
        return ""
    plain = LINES.get("echo.plain")
    if now.is_grave:
        return voice.of(LINES.get("echo.sad" if now.subject == "hardship" else "echo.dislike"), now.slots())
    banks = [LINES.get(f"echo.{form}") for form in ("doing", "who") if now.slots()[form]]
    if now.doing and now.subject in _LEISURE:
        banks[0] = [*banks[0], *LINES.get("echo.leisure")]
    bank = draws.pick(banks) if banks and draws.chance(0.75) else plain
    return voice.of(bank, now.slots()) or voice.of(plain, now.slots())


def _link(known: _Known, own: Sequence[str], voice: Voice, draws: Draws) -> str:
    """Tie the moment to something told before, first of all to what has not been taken up yet."""
    about = circle_of(known.now.subject) if known.now else ""

    def distance(place_and_told: tuple[int, Statement]) -> tuple[bool, bool]:
        place, told = place_and_told
        return len(told.words & telling(" ".join(own[place + 1 :]))) >= 2, circle_of(told.subject) != about

    for _, told in sorted(draws.shuffled(known.earlier), key=distance):
        for bank in draws.shuffled(_banks(told, known.now)):
            text = voice.of(bank, told.slots())
            if text:
                return text
    return ""


def _banks(told: Statement, now: Statement | None) -> list[list[str]]:
    """Give the ways to come back to something, as suits it and the moment."""

    def bank(*names: str) -> list[str]:
        return [text for name in names for text in LINES.get(f"link.{name}")]

    if told.is_grave:
        return [bank("sad" if told.subject == "hardship" else "dislike")]
    if now is not None and now.is_grave:
        return [bank("grave")]
    near = now is not None and told.subject == now.subject
    banks = [bank("plain", *(["near"] if near else []))]
    if told.doing:
        banks += [bank("doing", *(["doing_near"] if near else []))] * 2
    if told.who:
        banks.append(bank("pet" if told.is_pet else "who" if now is not None and now.doing else "who_anyway"))
    return banks


def _letter(message: str, own: Sequence[str], draws: Draws) -> str:
    voice = Voice(own, draws)
    told = statement_in(message)
    subject = told.subject if told else subject_of(message)
    about = told is not None and draws.chance(0.6)
    opener = voice.of(LINES.get("letter.thanks_about"), told.slots()) if told and about else ""
    opener = opener or voice.of(LINES.get("letter.thanks")) or draws.pick(LINES.get("letter.thanks"))
    plain = remarks(subject, "plain") or remarks("anything", "plain")
    body = voice.of(plain) or voice.of(remarks("anything", "plain")) or draws.pick(plain)
    offers = LINES.get("letter.offer")
    return put_together([opener, body, (voice.of(offers) or draws.pick(offers)) if draws.chance(0.7) else ""])
