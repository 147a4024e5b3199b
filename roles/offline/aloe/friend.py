"""The answerers of an open chat.

The attentive one takes up what was just told, ties it to something that it knows of the person, and speaks in a manner
that suits. As the preferred responder it knows what was induced. With nothing but the chat it knows what the chat told:
each thing told before comes to mind with a chance of one in six, so that the more was told, the likelier there is
something to tie to; so it is with manners that showed. The generic one, and the rejected responder, write a form
letter: thanks, a commonplace of the topic, an offer to help.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..draws import Draws
from ..request import MarkedRequest
from ..understudy import understudy
from .english import LINES, telling
from .facts import facts_of, given_away, traits_of
from .manners import GRAVE, MANNERS, Voice, fitting, new_line, shown_in
from .statements import SUBJECTS, Statement, stated, statement_in, subject_of
from .user import BRIEF

_COMES_TO_MIND, _MANNER_MISSED = 1 / 6, 0.82


class _Known(NamedTuple):
    """What an answer can build on: what the last message tells and whether it was told before; the rest; the manner."""

    now: Statement | None
    again: bool
    earlier: list[tuple[int, Statement]]  # with the place of the line that told it
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
    news = [at for at in sorted(fresh - before) or sorted(fresh) if facts[at].told]
    now = stated(facts[news[0]].told) if news else statement_in(message)
    told_in = {at: place for place in reversed(range(len(lines))) for at in given_away(facts, [lines[place]])}
    others = [at for at, fact in enumerate(facts) if fact.told and at not in fresh]
    manners = draws.shuffled(traits_of(request.part("personality")))
    manners.sort(key=lambda name: name not in shown_in(message))  # what shows just now comes first
    earlier = [(told_in.get(at, 0), stated(facts[at].told)) for at in others]
    return _Known(now, bool(news) and not fresh - before, earlier, manners)


def _from_chat(request: MarkedRequest, message: str, draws: Draws) -> _Known:
    lines, words = request.said_by("user"), telling(message)
    told = {each.text: (at, each) for at, line in enumerate(lines[:-1]) if (each := statement_in(line))}
    shares = {text: len(each.words & words) / len(each.words) for text, (_, each) in told.items() if each.words}
    again = [told[text][1] for text, share in shares.items() if share > 0.6]
    other = [told[text] for text, share in shares.items() if share <= 0.5]
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
    """Tie the moment to something told before, first of all to what has not been taken up yet."""

    def taken_up(place_and_told: tuple[int, Statement]) -> bool:
        place, told = place_and_told
        return len(told.words & telling(" ".join(own[place + 1 :]))) >= 2

    other = LINES.get("link.grave" if known.now and known.now.subject in GRAVE else "link.plain")
    ordered = [told for _, told in sorted(draws.shuffled(known.earlier), key=taken_up)]
    texts = (voice.of(LINES.get(f"link.{told.subject}") or other, told.slots) for told in ordered)
    return next(filter(None, texts), "")


def _letter(message: str, own: Sequence[str], draws: Draws) -> list[str]:
    voice, told = Voice(own, draws), statement_in(message)
    opener = voice.of(LINES.get("letter.thanks_about"), told.slots) if told and draws.chance(0.6) else ""
    opener = opener or voice.of(LINES.get("letter.thanks")) or draws.pick(LINES.get("letter.thanks"))
    plain = SUBJECTS.get(f"{told.subject if told else subject_of(message)}.plain")
    body = voice.of(plain) or voice.of(SUBJECTS.get("anything.plain")) or draws.pick(plain)
    offers = LINES.get("letter.offer")
    return [opener, body, (voice.of(offers) or draws.pick(offers)) if draws.chance(0.7) else ""]
