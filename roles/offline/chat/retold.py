"""One thing that somebody told, in the forms in which a chat comes back to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..lazy import Lazy
from .person import as_told_to
from .subjectbank import DISLIKE, HARDSHIP, ORIGIN, SUBJECTS
from .subjects import Subject, subject_of
from .verbs import ing_form, is_plain_form
from .words import stem, telling

_SAD = Lazy(
    r"\b(?:died|death|dead|passed away|lost (?:my|his|her|a|both)\b|widow\w*|(?:sleep|sleeps|slept) badly|"
    r"cancer|illness|ill\b|injur\w+|accident|"
    r"surgery|depress\w+|grie[fv]\w*|insomnia|migraines?|diabet\w+|chronic|blood pressure|operations?|"
    r"operated on|malaria|hernia|cataract|arthritis|panic|in debt|debts|sick\b|"
    r"stroke|heart attack|unemployed|laid off|estranged|miscarriage|pain|broke my)\b",
    re.IGNORECASE,
)
_DISLIKED = Lazy(
    r"\b(?:hate|dislike|detest|loathe|can['’]t stand|cannot stand|avoid|despise|dread|afraid of|allergic to|"
    r"scared of|terrified of|"
    r"colou?r-blind|deaf|blind|stammer|stutter|not fond of|refuse|don['’]t (?:like|enjoy)|do not (?:like|enjoy))\b",
    re.IGNORECASE,
)
_ORIGIN = Lazy(
    r"\b(?:grew up|was born|was raised|childhood|as a (?:child|boy|girl|kid)|used to|came here|originally)\b",
    re.IGNORECASE,
)
_CUT = Lazy(
    r"[,;:–—(]|\s-\s|\s(?:because|but|so|since|while|when|whenever|although|though|which|who|where|as (?:I|it|"
    r"he|she|they|if|soon|well)|until|unless|if|after|before|"
    r"even|and (?:I|my|we|the|now|then|often|usually|always|never|sometimes)|to (?:avoid|save|help|keep))\b",
)
_DOING = Lazy(
    r"^I (?:(?:also|often|usually|still|sometimes|always|mostly|regularly|really|just|proudly) )*([a-z]+) (.+)$"
)
_WHEN = Lazy(r"^(?:On|Every|In|At|Most|Once|Twice|Each) (?:[\w'-]+ ){1,4}?I (?=[a-z]+ )")
_DELIGHT = frozenset("like love enjoy adore prefer practise".split())
_STATES = frozenset(
    "live share suffer am have own know need want like love enjoy prefer believe hope think wish dream feel "
    "hate get".split()
)
_KIN = (
    r"(?:(?:older|younger|elder|eldest|youngest|twin|little|big|two|three|best|old|oldest|elderly|teenage|grown-up) )*"
    r"(?:husband|wife|partner|boyfriend|girlfriend|mother|father|mum|mom|dad|parents|brothers?|sisters?|twins?|sons?|"
    r"daughters?|children|kids|grandmother|grandfather|grandparents|gran|grandma|grandpa|aunt|uncle|cousins?|"
    r"nieces?|nephews?|"
    r"grandsons?|granddaughters?|grandchildren|friends?|neighbours?|flatmates?|roommates?|colleagues?|boss)"
)
_WHO = Lazy(rf"\b(?:my|an?|two|three|four|five|six) ((?:small |young )?{_KIN})\b(?!['’-])", re.IGNORECASE)
_NOT_HAD = Lazy(r"\b(?:never|no|not|don['’]t|without|want|save|saving|dream|sold|broke)\b", re.IGNORECASE)
_PET = (
    r"(?:dog|cat|parrot|rabbit|hamster|horse|pony|goat|tortoise|budgie|greyhound|terrier|labrador|spaniel|puppy|kitten|"
    r"goose|donkey|ferret|collie|beagle|dachshund|poodle|canary)s?"
)
_CALLED = Lazy(
    rf"\b({_PET})\b(?:[\w\s'-]{{0,20}})?(?:,|\bcalled|\bnamed) ([A-Z][a-zà-ÿ]+)\b|\b(?:my|the) {_PET} "
    rf"([A-Z][a-zà-ÿ]+)\b"
)
_PETS = Lazy(rf"\b(?:my|an?|two|three|four|the) (?:[a-z-]+ ){{0,2}}({_PET})\b(?! (?:show|food|park|owner|shelter))")


@dataclass(frozen=True)
class Told:
    """A statement of the first person and its forms.

    Attributes:
        text: The statement as its owner makes it, without an end mark.
        to_you: The same said to its owner, its first letter as inside a sentence.
        doing: What its owner does: `playing the cello in a small orchestra`; empty where that makes no sense.
        thing: Something that its owner has: `your cello`; empty if nothing was found.
        who: Somebody whom its owner knows: `your sister`, or a pet by its name; empty if nobody was found.
        is_pet: Whether `who` is an animal.
        subject: What it is about.
        sad: Whether it is nothing to be merry about.
        disliked: Whether it is a dislike.
        words: What it is about, as stems.
    """

    text: str
    to_you: str
    doing: str
    thing: str
    who: str
    is_pet: bool
    subject: Subject
    sad: bool
    disliked: bool
    words: frozenset[str]

    @property
    def circles(self) -> str:
        """The circle of life that it belongs to."""
        return subject_of(self.text).circle


@lru_cache(maxsize=8192)
def retold(text: str) -> Told:
    """Find the forms of one statement in the first person."""
    text = re.sub(r"\s+", " ", text).strip().rstrip(".!;,")
    sad, disliked = bool(_SAD.search(text)), bool(_DISLIKED.search(text))
    who, is_pet = _who(text)
    subject = HARDSHIP if sad else DISLIKE if disliked else ORIGIN if _ORIGIN.search(text) else _subject(text, is_pet)
    short = shortened(text)
    return Told(
        text,
        lowered(as_told_to(short)),
        "" if sad or disliked else _doing(text),
        "" if sad or subject is ORIGIN else _thing(text, subject),
        "" if sad or subject is ORIGIN or "late " in who else who,
        is_pet,
        subject,
        sad,
        disliked,
        telling(text),
    )


def _subject(text: str, is_pet: bool) -> Subject:
    """Give the subject, told first of all by the verb."""
    by_verb = re.match(
        r"I (?:(?:often|also|am|like|love|enjoy) )?(work|collect|restor|repair|mend|knit|sew|carv|crochet)", text
    )
    name = "pets" if is_pet else {"": "", "work": "work"}.get(by_verb.group(1) if by_verb else "", "crafts")
    return next((subject for subject in SUBJECTS if subject.name == name), None) or subject_of(text)


_LOWER = frozenset(
    """my our your the a an on in at every each most some when since after before once two three four five six nobody
    everybody both you we during for from it that this there while during until all no one""".split()
)


def lowered(text: str) -> str:
    """Lower the first letter of a statement if its first word is not a name."""
    head = re.split(r"[\s'’,]", text, maxsplit=1)[0].lower()
    common = head in _LOWER or any(stem(head) in subject.words for subject in SUBJECTS)
    return text[:1].lower() + text[1:] if common else text


def shortened(text: str, most: int = 15) -> str:
    """Cut a long statement where a clause ends, so that it can be taken up in passing."""
    if len(text.split()) <= most:
        return text
    for found in re.finditer(r"[,;:–—]|\s(?:because|but|so|while|although|though|which|and (?=I\b|my\b))", text):
        head = text[: found.start()].strip()
        if len(head.split()) >= 5 and not re.match(
            r"(?:On|In|At|When|Since|After|Before|Every|If|While|As)\b[^,]*$", head
        ):
            return head
    return text


def _doing(text: str) -> str:
    found = _DOING.match(_WHEN.sub("I ", text))
    if not found:
        return ""
    verb, rest = found.groups()
    cut = _CUT.search(rest)
    rest = rest[: cut.start()] if cut else rest
    rest = re.split(r" and (?=[a-z]+ (?:a|an|the|my|to|in|on|at|for|with|it|them|every|up|out)\b)", rest)[0].strip()
    first, _, more = rest.partition(" ")
    if verb in _DELIGHT and first.endswith("ing") and len(first) > 5:
        verb, rest = "", rest
    elif verb in _STATES or not is_plain_form(verb):
        return ""
    doing = as_told_to(f"{ing_form(verb)} {rest}" if verb else rest)
    doing = doing[:1].lower() + doing[1:]
    return doing if 1 < len(doing.split()) <= 12 or (doing.endswith("ing") and not more) else ""


def _who(text: str) -> tuple[str, bool]:
    called = _CALLED.search(text)
    if called:
        return called.group(2) or called.group(3), True
    found = _WHO.search(text)
    if found:
        return f"your {found.group(1).lower()}", False
    pet = _PETS.search(text)
    return (f"your {pet.group(1).lower()}", True) if pet else ("", False)


def _thing(text: str, subject: Subject) -> str:
    if subject.circle == "people" or _NOT_HAD.search(text):
        return ""
    for word in subject.things.split():
        if re.search(
            rf"\b(?:my|an?|the|our|two|three|four|of|play) (?:[\w-]+ )?{re.escape(word)}\b(?! (?:novel|show|owner))",
            text,
        ):
            return f"your {word}"
    return ""
