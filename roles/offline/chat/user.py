"""The person in the chat: tells something of its life with each line, in its own manner."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..draws import Draws
from ..lazy import Lazy
from ..prose import capitalised
from .facts import Fact, facts_of, given_away
from .manners import Manner, manners_of
from .person import Speaker
from .phrases import Fresh, put_together
from .retold import Told, lowered, retold
from .subjectbank import ANYTHING
from .words import telling

_HELLO = (
    "<Hi|Hello|Hey> there.",
    "Hello, good to have somebody to write to.",
    "Hi, I've got a minute, so here I am.",
    "Hey, I thought I'd say hello.",
    "<Well, hello|Good to meet you>.",
)
_HELLO_FORMAL = (
    "Good day to you.",
    "Good evening.",
    "Allow me to begin.",
    "Good morning, and thank you for your time.",
)
_HELLO_SHORT = ("Hello.", "Hi.", "Hi there.")
_LEADS = (
    "{fact}",
    "{fact}",
    "{fact}",
    "<By the way|Something else>: {inside}",
    "I don't think I've mentioned that {inside}",
    "Did I say that {inside}?",
    "You may not know this yet: {inside}",
    "That reminds me, {inside}",
    "On another note, {inside}",
    "What else? {fact}",
    "And then there's this: {inside}",
)
_ANSWERS = (
    (r"\bwhich would\b", ("Neither, if I can help it.", "Don't make me choose.")),
    (
        r"\bor\b",
        ("A bit of both, I'd say.", "Both, depending on the day.", "Neither, if I'm honest.", "The first one, mostly."),
    ),
    (
        r"\bwould\b.*\b(?:say|make of|see it)\b",
        ("I'd have to ask.", "Nothing that I could repeat here.", "I can guess, but I won't.", "Not much, I think."),
    ),
    (r"\b(?:any|what) news\b", ("Nothing new, which is good news.", "Nothing worth a headline.", "All as ever.")),
    (r"\bhow (?:is|are|'s)\b", ("Well enough, thanks.", "Up and down, thanks for asking.", "Slowly but surely.")),
    (
        r"\bhow (?:do you fit|does it compare)\b",
        ("With a bit of juggling.", "You can't compare the two.", "Somehow it works."),
    ),
    (r"\bhow long\b", ("Longer than I care to count.", "For quite a while now.", "Long enough to know better.")),
    (r"\bhow many\b", ("More than you'd think.", "Fewer than there should be.")),
    (
        r"\b(?:what|which)\b",
        (
            "Hard to pick one.",
            "I'd have to think about that.",
            "It changes all the time, so don't hold me to it.",
            "Good question, ask me again tomorrow.",
        ),
    ),
    (r"\bwho\b", ("I'd rather not point fingers.", "Take a guess.", "That depends on the day.")),
    (
        r"\b(?:why|how)\b",
        ("It just came about, bit by bit.", "Slowly, and mostly by accident.", "One thing led to another."),
    ),
    (
        r"\?",
        (
            "Most days, yes.",
            "Not as often as I'd like.",
            "Now and then, yes.",
            "Yes and no.",
            "You could say so.",
            "I think so, yes.",
        ),
    ),
)
_REMEMBERED = (
    "You remembered that!",
    "You do listen, I notice.",
    "Good memory.",
    "Fancy you bringing that up again.",
    "You've got me there.",
    "Funny that you put those two together.",
)
_HEARD = (
    "True enough.",
    "I suppose so.",
    "That's one way to see it.",
    "You may be right there.",
    "Quite.",
    "Nicely put.",
    "Well, yes.",
)
_LEAFLET = (
    "That sounded a little like a leaflet.",
    "Hm, that could have been said to anyone.",
    "Well, thanks, I suppose.",
    "If you say so.",
    "Right.",
)
_STOCK = Lazy(
    r"thank you for (?:sharing|your message)|let me know|feel free|there are many|is important|further "
    r"questions|be of (?:help|assistance)",
    re.IGNORECASE,
)
_BACK = (
    "I keep coming back to {doing}, I know.",
    "Still on about {doing}, I'm afraid.",
    "If I had to choose one thing to keep, {doing} would be high on the list.",
    "Some days it's {doing} that holds everything together.",
    "You asked nothing, but I'll say it anyway: {doing} has taught me a thing or two.",
    "I said something about {thing} before, and there's always more to it.",
    "Today it was all about {thing} again.",
    "When I think of {who}, I have to smile.",
    "I should write to somebody about {who} more often, it does me good.",
    "I told you that {inside}, and it was on my mind again.",
    "It came up again today that {inside}.",
    "Somebody asked me lately whether it's true that {inside}. It is.",
    "I never finished that thought: {inside}, and it won't change any time soon.",
)
_BRIEF = frozenset(("reserved", "blunt", "impatient"))


def user_line(profile: str, personality: str, own: Sequence[str], replies: Sequence[str], draws: Draws) -> str:
    """Write the person's next line.

    Args:
        profile: The facts of its life.
        personality: Its traits.
        own: Its own lines so far.
        replies: What the other one answered so far.
        draws: Chooses the fact, the manner and the words.
    """
    facts = facts_of(profile, Speaker.of(profile))
    line = ""
    for attempt in range(6):
        line = _line(facts, _manners(personality), own, replies, draws.fork(attempt))
        if line and line not in own:
            return line
    return line or "Well, here I am."


def _manners(personality: str) -> list[Manner]:
    speaker = Speaker.of(personality)
    found = [manner for trait in facts_of(personality, speaker) for manner in manners_of(trait.source)]
    return list(dict.fromkeys(found))


def _line(
    facts: Sequence[Fact], manners: Sequence[Manner], own: Sequence[str], replies: Sequence[str], draws: Draws
) -> str:
    fresh = Fresh(own, draws)
    formal = any(manner.name == "formal" for manner in manners)
    brief = any(manner.name in _BRIEF for manner in manners)
    known = given_away(facts, own)
    new = _next_fact(facts, known, own, draws)
    parts = [_hello(fresh, formal, brief)] if not own else [_reaction(own, replies, brief, fresh, draws)]
    if new is not None:
        told = retold(new.told)
        parts.append(_said(new.told, told, fresh, plain=not own, draws=draws))
    else:
        told = retold(draws.pick(facts).told) if facts else retold("")
        parts.append(_said_again(told, fresh))
    remark = _remark(manners, own, told, fresh, draws)
    room = 3 - sum(bool(part) for part in parts) - bool(remark)
    if room > 0 and (not remark or new is None or (not brief and draws.chance(0.35))):
        parts.append(fresh.of(told.subject.says) or fresh.of(ANYTHING.says))
    parts.append(remark)
    if not any(parts):
        parts.append(fresh.of((*ANYTHING.again, *_HEARD)) or draws.pick(ANYTHING.says))
    return put_together(parts, formal=formal, casual=True)


def _hello(fresh: Fresh, formal: bool, brief: bool) -> str:
    return fresh.of(_HELLO_FORMAL if formal else _HELLO_SHORT if brief else _HELLO)


def _next_fact(facts: Sequence[Fact], known: set[int], own: Sequence[str], draws: Draws) -> Fact | None:
    """Choose something not told yet; what leans on the sentence before it comes right after that one."""
    last = given_away(facts, own[-1:]) if own else set()
    open_ = [at for at in range(len(facts)) if at not in known and not _said_in(facts[at], own)]
    following = [at for at in open_ if facts[at].leans and at - 1 in last]
    if following:
        return facts[following[0]]
    free = [at for at in open_ if not facts[at].leans or at - 1 in known]
    if not own:
        # Nobody begins a chat with the saddest thing there is.
        free = [at for at in free if not retold(facts[at].told).sad] or free
    return facts[draws.pick(free)] if free else None


def _said_in(fact: Fact, own: Sequence[str]) -> bool:
    return any(fact.told in line or (fact.words and fact.words <= telling(line)) for line in own)


def _said(fact: str, told: Told, fresh: Fresh, *, plain: bool, draws: Draws) -> str:
    slots = {"fact": capitalised(fact), "inside": lowered(fact)}
    # A statement that begins with a name cannot be lowered, and one that holds a full stop cannot be embedded.
    whole = plain or told.sad or draws.chance(0.55) or re.search(r"[.!?:]", fact)
    return fresh.of(_LEADS[:1] if whole else _LEADS, slots) or slots["fact"]


def _said_again(told: Told, fresh: Fresh) -> str:
    mine = {"doing": _mine(told.doing), "thing": _mine(told.thing), "who": "" if told.sad else _mine(told.who)}
    slots = mine | {"inside": lowered(told.text), "Thing": capitalised(mine["thing"])}
    # What names the matter again is clearer than a mere "it".
    named = [*_BACK, *(text for text in told.subject.again if "{" in text)]
    return fresh.of(named, slots) or fresh.of(told.subject.again, slots) or fresh.of(ANYTHING.again)


def _mine(text: str) -> str:
    """`your sister` as its owner says it."""
    text = re.sub(r"\byour\b", "my", re.sub(r"\byours\b", "mine", text))
    return re.sub(r"\byourself\b", "myself", re.sub(r"\byou\b", "me", text))


def _reaction(own: Sequence[str], replies: Sequence[str], brief: bool, fresh: Fresh, draws: Draws) -> str:
    reply = replies[-1] if replies else ""
    if not reply or draws.chance(0.55 if brief else 0.25):
        return ""
    question = re.findall(r"[^.!?]*\?", reply)
    if question and draws.chance(0.8):
        for pattern, bank in _ANSWERS:
            if re.search(pattern, question[-1].strip(), re.IGNORECASE):
                return fresh.of(bank)
    if _STOCK.search(reply):
        return fresh.of(_LEAFLET) if draws.chance(0.5) else ""
    earlier = telling(" ".join(own[:-1])) - telling(own[-1])
    if len(earlier & telling(reply)) >= 2:
        return fresh.of(_REMEMBERED)
    return fresh.of(_HEARD) if draws.chance(0.5) else ""


def _remark(manners: Sequence[Manner], own: Sequence[str], told: Told, fresh: Fresh, draws: Draws) -> str:
    """Let one trait show, the ones that have not shown yet first."""
    fitting = [manner for manner in manners if manner.grave or not (told.sad or told.disliked)]
    hidden = [manner for manner in fitting if not any(manner.shows_in(line) for line in own)]
    if not fitting or not draws.chance(0.9 if hidden else 0.7):
        return ""
    for manner in draws.shuffled(hidden) + draws.shuffled(fitting):
        remark = fresh.of(manner.says)
        if remark:
            return remark
    return ""
