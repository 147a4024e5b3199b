"""The attentive one in the chat: takes up what was said, ties it to what it knows, and speaks as suits the person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..draws import Draws
from ..prose import capitalised
from .facts import facts_of, given_away
from .heard import statement_in
from .manners import Manner, manners_of, shown_in
from .person import Speaker
from .phrases import Fresh, put_together
from .retold import Told, retold
from .subjects import subject_of
from .words import telling

_ECHO_SAD = (
    "I'm sorry; I didn't know that {you}.",
    "So {you}; I won't make light of that.",
    "I'll remember that {you}.",
)
_ECHO_DISLIKE = ("So {you}, good to know.", "All right, {you}.", "I'll remember that {you}.")
_ECHO_DOING = (
    "So you're one for {doing}.",
    "I can just see you {doing}.",
    "There's something about {doing}, isn't there?",
    "{Doing} is no small thing.",
    "{Doing}: that I can picture.",
)
_ECHO_LEISURE = (
    *_ECHO_DOING,
    "{Doing}, I like the picture of that.",
    "{Doing} sounds like time well spent.",
    "{Doing}: I'm a little envious.",
)
_LEISURE = frozenset(
    ("pets", "cooking", "drinks", "garden", "music", "reading", "screen", "sport", "crafts", "learning")
)
_ECHO = (
    "So {you}.",
    "Ah, {you}.",
    "Let me picture it: {you}.",
    "So that's how it is: {you}.",
    "Good to know that {you}.",
    "I didn't know that {you}.",
)
_ECHO_WHO = ("I'd like to meet {who} one day.", "I can picture {who} already.", "Do give {who} my best.")
_ECHO_THING = (
    "I'd love to see {thing}.",
    "I can almost see {thing} from here.",
    "{Thing}, of all things.",
    "You must tell me more about {thing}.",
)
_LINK_WHO = (
    "What would {who} say to that?",
    "Have you told {who} about it?",
    "I wonder what {who} would make of it.",
    "I can just hear {who} on the subject.",
    "Did {who} have a hand in it?",
    "Would {who} see it the same way?",
    "How are things with {who}, by the way?",
    "Any news of {who}?",
)
_LINK_WHO_ANYWAY = ("How are things with {who}, by the way?", "Any news of {who}?", "Say hello to {who} from me, too.")
_ECHO_AGAIN = (
    "Yes, I remember: {you}.",
    "So we're back to {doing}, good.",
    "Ah, {thing} again; I was hoping you'd come back to that.",
    "I haven't forgotten: {you}.",
    "{Doing} again, and no wonder.",
    "You told me that {you}, and it stuck.",
)
_LINK_PET = (
    "What would {who} say, given a voice?",
    "I suppose {who} had an opinion about it, too.",
    "Give {who} a pat from me while you're at it.",
    "And {who}, all for it or against it?",
    "Does that leave enough time for {who}?",
)
_LINK_DOING = (
    "And {doing}, how is that going?",
    "How do you fit that in with {doing}?",
    "You're full of surprises: first {doing}, now this.",
    "First {doing}, and now this; I'm getting a picture of you.",
    "I put it right next to {doing} in my picture of you.",
    "Which would you rather miss, that or {doing}?",
    "Does it ever get in the way of {doing}?",
    "Somewhere between that and {doing} you must get some sleep.",
    "And all that on top of {doing}!",
    "One wouldn't guess it from {doing} alone.",
)
_LINK_DOING_NEAR = (
    "It must go well with {doing}.",
    "It seems to come from the same place as {doing}.",
    "Is it a change from {doing}, or more of the same?",
    "After {doing}, that must be a nice change.",
    "With {doing}, that makes two of a kind.",
    "How does it compare with {doing}?",
)
_LINK = (
    "You also said that {you}, so I'm getting a picture of you.",
    "And I hadn't forgotten that {you}.",
    "Next to that, I remember, {you}.",
    "It made me think of what you said before: {you}.",
    "Another thing I remember is that {you}.",
    "Is it still true, by the way, that {you}?",
)
_LINK_NEAR = (
    "It fits with what you told me, that {you}.",
    "Coming from somebody who told me that {you}, it makes sense.",
    "No wonder, seeing that {you}.",
    "Does it have to do with the fact that {you}?",
    "I hadn't forgotten that {you}, and the two go well together.",
)
_LINK_GRAVE = (
    "I haven't forgotten the rest either: {you}.",
    "Something lighter, if you like: you told me that {you}.",
    "And still, {you}; that's worth something, too.",
)
_LINK_THING = (
    "What news of {thing}, by the way?",
    "Is there still time for {thing}, then?",
    "And {thing}, does that have to wait meanwhile?",
)
_LINK_DISLIKE = (
    "I remember that {you}, so I won't suggest anything of the sort.",
    "And since {you}, I know what to leave out.",
    "I haven't forgotten that {you}, so no bad ideas from me.",
)
_LINK_SAD = (
    "I haven't forgotten that {you}, so go easy on yourself.",
    "Knowing that {you}, I'm all the gladder to hear of good moments.",
    "I keep in mind that {you}, so one thing after the other.",
)
_NOTHING = (
    "It's good to hear from you.",
    "I like how you put that.",
    "Go on, I'm listening.",
    "That stays with me.",
    "I see what you're getting at.",
    "Well said.",
)
_BRIEF = frozenset(("reserved", "blunt", "impatient"))
_GOES_TOGETHER = 0.14
_MANNER_MISSED = 0.82


@dataclass(frozen=True)
class Known:
    """What an answer can build on.

    Attributes:
        now: What the last message tells, if it could be made out.
        again: Whether that was told before.
        earlier: What was told before, each with the place of the line that told it.
        manners: How the person is, as far as that has shown.
    """

    now: Told | None
    again: bool
    earlier: tuple[tuple[int, Told], ...]
    manners: tuple[Manner, ...]


def from_induction(profile: str, personality: str, lines: Sequence[str], draws: Draws) -> Known:
    """Gather what was induced about the person from the lines of the chat."""
    message = lines[-1] if lines else ""
    facts = facts_of(profile, Speaker.of(profile))
    fresh = given_away(facts, [message])
    before = given_away(facts, lines[:-1])
    news = sorted(fresh - before) or sorted(fresh)
    now = retold(facts[news[0]].told) if news else statement_in(message)
    told_in = {at: place for place in reversed(range(len(lines))) for at in given_away(facts, [lines[place]])}
    earlier = tuple((told_in.get(at, 0), retold(fact.told)) for at, fact in enumerate(facts) if at not in fresh)
    manners = [
        manner for trait in facts_of(personality, Speaker.of(personality)) for manner in manners_of(trait.source)
    ]
    seen = shown_in([message])
    # What shows in the message itself comes first: it suits the moment.
    ordered = [manner for manner in seen if manner in manners] + draws.shuffled(list(dict.fromkeys(manners)))
    return Known(now, bool(news) and not fresh - before, earlier, tuple(dict.fromkeys(ordered)))


def from_chat(lines: Sequence[str], draws: Draws) -> Known:
    """Gather what the chat itself has told: the longer it lasts, the more there is that goes with the last line."""
    message = lines[-1] if lines else ""
    now = statement_in(message)
    told = {each: at for at, line in reversed([*enumerate(lines[:-1])]) if (each := statement_in(line)) is not None}
    known = [
        each for each in told if len(each.words) > 1 and len(each.words & telling(message)) * 3 >= len(each.words) * 2
    ]
    if known:
        now = known[-1]
    about = now.circles if now else subject_of(message).circle
    fitting = [
        (at, each)
        for each, at in told.items()
        if len(each.words & telling(message)) * 2 <= len(each.words)
        and (
            (about and each.circles == about and draws.fork("near", each.text).chance(_GOES_TOGETHER * 2))
            or draws.fork("goes together", each.text).chance(_GOES_TOGETHER)
        )
    ]
    shows = sum(bool(shown_in([line])) for line in lines)
    manners = draws.shuffled(shown_in(lines)) if not draws.chance(_MANNER_MISSED**shows) else []
    return Known(now, bool(known), tuple(fitting), tuple(manners))


def friendly_reply(known: Known, message: str, own: Sequence[str], draws: Draws) -> str:
    """Write the next answer.

    Args:
        known: What it can build on.
        message: The last message.
        own: The earlier answers of the same side.
        draws: Chooses the words.
    """
    line = ""
    for attempt in range(6):
        line = _line(known, message, own, draws.fork(attempt))
        if line and line not in own:
            return line
    return line or "Go on, I'm listening."


def _line(known: Known, message: str, own: Sequence[str], draws: Draws) -> str:
    fresh = Fresh(own, draws)
    subject = known.now.subject if known.now else subject_of(message)
    formal = any(manner.name == "formal" for manner in known.manners)
    brief = any(manner.name in _BRIEF for manner in known.manners)
    grave = known.now is not None and (known.now.sad or known.now.disliked)
    echo = fresh.of(_ECHO_AGAIN, _slots(known.now)) if known.again and known.now else _echo(known.now, fresh, draws)
    tone = next(
        (text for manner in known.manners[:3] if manner.grave or not grave if (text := fresh.of(manner.replies))), ""
    )
    link = _link(known, own, fresh, draws)
    tone = tone or ("" if echo and (brief or link) else fresh.of(subject.reacts))
    last = link or ("" if brief and draws.chance(0.4) else fresh.of(subject.asks))
    if not (echo or tone or last):
        echo = fresh.of(_NOTHING) or draws.pick(_NOTHING)
    parts = [echo, tone, last]
    if tone and not last.endswith("?") and draws.chance(0.4):
        parts = [echo, last, tone]
    return put_together(parts, formal=formal)


def _slots(told: Told) -> dict[str, str]:
    slots = {"you": told.to_you, "doing": told.doing, "who": told.who, "thing": told.thing}
    return slots | {capitalised(name): capitalised(text) for name, text in slots.items()}


def _echo(now: Told | None, fresh: Fresh, draws: Draws) -> str:
    if now is None:
        return ""
    slots = _slots(now)
    if now.sad:
        return fresh.of(_ECHO_SAD, slots)
    if now.disliked:
        return fresh.of(_ECHO_DISLIKE, slots)
    banks: list[tuple[str, ...]] = [
        bank for bank, usable in ((_ECHO_DOING, now.doing), (_ECHO_WHO, now.who), (_ECHO_THING, now.thing)) if usable
    ]
    if now.subject.name in _LEISURE and now.doing:
        banks[0] = _ECHO_LEISURE
    bank = draws.pick(banks) if banks and draws.chance(0.75) else _ECHO
    return fresh.of(bank, slots) or fresh.of(_ECHO, slots)


def _link(known: Known, own: Sequence[str], fresh: Fresh, draws: Draws) -> str:
    """Tie the moment to something told before, first of all to what has not been taken up yet."""
    about = known.now.circles if known.now else ""
    grave = known.now is not None and (known.now.sad or known.now.disliked)

    def distance(place_and_told: tuple[int, Told]) -> tuple[bool, bool]:
        place, told = place_and_told
        return len(told.words & telling(" ".join(own[place + 1 :]))) >= 2, told.circles != about

    for _, told in sorted(draws.shuffled(known.earlier), key=distance):
        slots = _slots(told)
        for bank in draws.shuffled(
            _banks(told, known.now, near=known.now is not None and told.subject is known.now.subject, grave=grave)
        ):
            text = fresh.of(bank, slots)
            if text:
                return text
    return ""


def _banks(told: Told, now: Told | None, *, near: bool, grave: bool) -> list[tuple[str, ...]]:
    """Give the ways to come back to something, as suits it and the moment."""
    if told.sad:
        return [_LINK_SAD]
    if told.disliked:
        return [_LINK_DISLIKE]
    if grave:
        return [_LINK_GRAVE]
    banks: list[tuple[str, ...]] = [(*_LINK, *_LINK_NEAR) if near else _LINK]
    if told.doing:
        banks += [(*_LINK_DOING, *_LINK_DOING_NEAR) if near else _LINK_DOING] * 2
    if told.thing:
        banks.append(_LINK_THING)
    if told.who:
        others: tuple[str, ...] = _LINK_WHO if now is not None and now.doing else _LINK_WHO_ANYWAY
        banks.append(_LINK_PET if told.is_pet else others)
    return banks
