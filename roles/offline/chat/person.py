"""Turn a sentence about somebody into what that somebody says, and that into what is said to them.

    She works in Leeds and lives with her son.  ->  I work in Leeds and live with my son.
    Likes strong tea.                           ->  I like strong tea.
    I work in Leeds.                            ->  you work in Leeds

There is no parser in it. A walk over the words keeps in mind whose verb comes next; where English is ambiguous it
takes the reading that is likelier in a description of one person's life.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..lazy import Lazy
from ..prose import capitalised, sentences
from .verbs import is_plain_form, known_third_person, may_be_noun, plain_form

_SUBJECTS = {"she": ("her", "herself"), "he": ("his", "himself"), "they": ("their", "themselves")}
_ADVERBS = frozenset(
    """
    never always often usually rarely seldom sometimes still also really just only hardly almost even now once
    then mostly mainly ever not both quietly secretly proudly
    """.split()
)
_OPENERS = frozenset(
    """
    a an the her his their my our your in on at every each after before since when while during once most some
    many two three four five six seven both all no one as if for from with without by although though because
    until between there it this that these those what where to and but i we you they she he despite like unlike
    nothing
    """.split()
)
_PREPOSITIONS = frozenset("with around behind to for from about by near beside on after before at of without".split())
_NOT_POSSESSED = frozenset(
    """
    to and but or that the a an in on at for with by from there home up out off down when because every while if
    as into about so than how what who why too either again before after since over through is was has had not
    away back around this his their my each once whenever until where through during early late daily often
    always everywhere along somewhere anywhere nowhere together alone sometimes now then much more most enough
    regularly constantly
    """.split()
)
_OTHERS_CLAUSE = frozenset("who which whose while because when if although though where whenever".split())
_ADJECTIVES = Lazy(
    r"(?:married|single|divorced|widowed|retired|allergic|afraid|fond|proud|born|engaged|raised|vegetarian|vegan|"
    r"addicted|obsessed|devoted|terrified|scared|interested|originally|currently|recently|newly|happily|trained|"
    r"used to|unable|able|from|self-employed|unemployed|keen|crazy|mad|hooked|in (?:her|his|their)|"
    r"\w+(?:ful|ous|ive|able|ible|ish|less|ic|ary)\b)",
    re.IGNORECASE,
)
_KIN = (
    r"(?:husband|wife|partner|boyfriend|girlfriend|spouse|fianc[eé]e?|brother|sister|twin|mother|father|mum|mom|dad|"
    r"son|daughter|friend|neighbour|neighbor|flatmate|roommate|cousin|grandmother|grandfather|aunt|uncle)"
)
_COMPANION = Lazy(rf"\b(?:her|his|their|my|a|an)\s+(?:[\w-]+\s+){{0,2}}{_KIN}\b(?!')", re.IGNORECASE)
_JOINT = Lazy(r"^(she|he|they) and (?=(?:her|his|their|an?|the) )", re.IGNORECASE)
_FINITE = frozenset("are is were was have had keep make help can mean call will do".split())
_PLURALS = frozenset(
    """
    weekends mornings evenings nights days mondays tuesdays wednesdays thursdays fridays saturdays sundays
    holidays friends neighbours kids parents children dogs cats books plants colleagues brothers sisters sons
    daughters
    """.split()
)
_NAMING = frozenset("call calls called name named nickname nicknamed".split())
_PAST = frozenset("met bought ran kept grew moved opened married built had were started took adopted share".split())
_WORD = Lazy(r"[^\W_]+(?:['’-][^\W_]+)*")
_NAME = Lazy(r"^([A-Z][a-zà-ÿ]+)(?: [A-Z][a-zà-ÿ'-]+)?(?:, (?:\d+|an? [^,]+),)? (?=(?:is|was|has|works|lives|grew)\b)")
_COMMON_START = frozenset(
    "Coffee Tea Home Work Life Money Music Sleep Breakfast Dinner Lunch Sunday Saturday Friday Monday "
    "Tuesday Wednesday "
    "Thursday Winter Summer Spring Autumn Christmas Everything Nothing Everybody Everyone Family Cooking Reading "
    "Football English".split()
)


@dataclass(frozen=True)
class Speaker:
    """How a description calls the person.

    Attributes:
        pronoun: `she`, `he`, `they`, `i`, or an empty text for bare phrases.
        name: Its name, if the description gives one.
        paired: Whether the person is one of two who do things together.
    """

    pronoun: str = ""
    name: str = ""
    paired: bool = False

    @classmethod
    def of(cls, *texts: str) -> Speaker:
        """Find out from whole descriptions."""
        parts = [part for text in texts for line in text.splitlines() for part in sentences(line)]
        starts = Counter(_first(part) for part in parts)
        counts = Counter({word: 3 * starts[word] for word in (*_SUBJECTS, "i")})
        for word in (found.group().lower() for text in texts for found in _WORD.finditer(text)):
            for subject, (possessive, own) in _SUBJECTS.items():
                counts[subject] += word in (subject, possessive, own) and subject != "they"
            counts["i"] += word in ("i", "my", "i'm", "i’m")
        best = max((*_SUBJECTS, "i"), key=lambda word: counts[word])
        paired = any(_JOINT.match(part) or re.match(r"(?:Her|His) \w+ and (?:she|he)\b", part) for part in parts)
        return cls(best if counts[best] else "", _name_in(parts), paired)


def _first(text: str) -> str:
    found = _WORD.search(text)
    return re.split(r"['’]", found.group())[0].lower() if found else ""


def _name_in(parts: Sequence[str]) -> str:
    for part in parts:
        found = _NAME.match(part)
        if found and found.group(1) not in _COMMON_START and found.group(1).lower() not in _OPENERS:
            return found.group(1)
    return ""


@lru_cache(maxsize=4096)
def as_told_by(sentence: str, speaker: Speaker) -> str:
    """Give a sentence of a description as its person would say it, with a capital first and its own end mark."""
    text = re.sub(r"^[\s*•\-–\d.)]+(?=\D)", "", sentence.strip()) or sentence.strip()
    pronoun = speaker.pronoun
    if re.search(r"\b(?:I|I['’]\w+|[Mm]y|[Mm]e)\b", text) and pronoun in ("i", ""):
        return capitalised(text)
    if speaker.name:
        text = _without_name(text, speaker)
    text, pronoun = _with_subject(text, pronoun)
    joint = _joint(text, pronoun)
    if joint is not None:
        return capitalised(joint)
    ours = speaker.paired and not _several(text)
    return capitalised(_Walk(text, pronoun, ours=ours).told())


def _several(text: str) -> bool:
    """Tell whether a sentence speaks of several others, whom its `they` may mean."""
    words = [found.group().lower() for found in _WORD.finditer(text)]
    return any(word.endswith("s") and len(word) > 3 and not known_third_person(word) for word in words)


def _without_name(text: str, speaker: Speaker) -> str:
    subject = speaker.pronoun if speaker.pronoun in _SUBJECTS else "they"
    possessive = _SUBJECTS[subject][0]
    text = _NAME.sub(
        lambda found: f"{subject.capitalize()} " if found.group(1) == speaker.name else found.group(), text
    )
    text = re.sub(rf"\b{re.escape(speaker.name)}['’]s\b", possessive, text)
    return re.sub(rf"^{re.escape(speaker.name)}\b", subject.capitalize(), text)


def _with_subject(text: str, pronoun: str) -> tuple[str, str]:
    """Give a bare phrase the subject that it lacks: `Likes tea` becomes `She likes tea`."""
    subject = pronoun if pronoun in _SUBJECTS else _owner_in(text)
    words = [found.group() for found in _WORD.finditer(text)]
    if not words:
        return text, subject
    head, rest = words[0].lower(), words[1:]
    labelled = re.match(r"^([A-Z][\w ]{2,24}):\s+(.+)$", text)
    if labelled:
        return f"{_SUBJECTS[subject][0].capitalize()} {labelled.group(1).lower()} is {labelled.group(2)}", subject
    if head in _SUBJECTS:
        return text, subject
    someone = re.match(r"(?:This|The) person(['’]s)?\b", text)
    if someone:
        subject = pronoun if pronoun in _SUBJECTS else "they"
        return (_SUBJECTS[subject][0] if someone.group(1) else subject).capitalize() + text[someone.end() :], subject
    lowered = text[:1].lower() + text[1:]
    if _bare_verb(words):
        return f"{subject.capitalize()} {lowered}", subject
    if _ADJECTIVES.match(text) and not any(known_third_person(word) for word in rest[:3]):
        if head in ("used", "grew"):
            return f"{subject.capitalize()} {lowered}", subject
        return f"{subject.capitalize()} is {lowered}", subject
    if re.match(r"[\w-]+ years? old\b", text):
        return f"{subject.capitalize()} is {lowered}", subject
    verbless = not any(known_third_person(word) for word in rest)
    if verbless and head in ("a", "an"):
        return f"{subject.capitalize()} is {lowered}", subject
    verbless = verbless and not any(is_plain_form(word) for word in rest[1:4])
    if verbless and re.match(r"(?:one|two|three|four|five|six|several|many|no)\b", text, re.IGNORECASE):
        return f"{subject.capitalize()} has {lowered}", subject
    return text, subject


def _owner_in(text: str) -> str:
    found = re.search(r"\b(?:(she|her)|(he|his)|(they|their))\b", text, re.IGNORECASE)
    return ("she", "he", "they")[(found.lastindex or 1) - 1] if found else "she"


def _bare_verb(words: Sequence[str]) -> bool:
    at = 0
    while at < len(words) - 1 and (words[at].lower() in _ADVERBS or re.fullmatch(r"\w{3,}ly", words[at].lower())):
        at += 1
    word = words[at].lower()
    following = words[at + 1].lower() if at + 1 < len(words) else ""
    if word in ("grew", "moved", "used", "lost", "spent", "studied", "worked", "met", "learned", "learnt", "left"):
        return True
    if word in _OPENERS or not known_third_person(word):
        finite = any(each.lower() in _FINITE or known_third_person(each) for each in words[at + 1 : at + 6])
        unknown = bool(re.fullmatch(r"[a-z]{2,}[^s\W]s", word)) and word not in _PLURALS
        return (bool(at) and is_plain_form(word)) or (
            unknown and bool(following) and not finite and not is_plain_form(following)
        )
    if following in _FINITE - {"help", "make"}:
        return False
    return not (may_be_noun(word) and is_plain_form(following) and following not in ("work", "fish", "cards"))


def _joint(text: str, pronoun: str) -> str | None:
    """Turn `She and her husband run a shop` into `My husband and I run a shop`."""
    found = _JOINT.match(text)
    if found is None or found.group(1).lower() != pronoun:
        return None
    words = list(_WORD.finditer(text))[2:]
    for word in words[1:6]:
        low = word.group().lower()
        if (
            low in _PAST
            or low in ("are", "have", "both")
            or low in _ADVERBS
            or (is_plain_form(low) and low != "partner")
        ):
            other = _Walk(text[found.end() : word.start()], pronoun).told().strip()
            return f"{other} and I {_Walk(text[word.start() :], pronoun, ours=True).told()}"
    return None


class _Walk:
    """One pass over a sentence in the third person."""

    def __init__(self, text: str, pronoun: str, *, ours: bool = False) -> None:
        self._text, self._subject = text, pronoun
        self._possessive, self._own = _SUBJECTS[pronoun]
        self._object = {"she": "her", "he": "him", "they": "them"}[pronoun]
        self._ours = ours or (pronoun != "they" and bool(_COMPANION.search(text)))
        self._mine = self._pending = self._others = self._begun = self._led = self._after_verb = False
        self._name_next = False

    def told(self) -> str:
        """Give the sentence in the first person."""
        found = list(_WORD.finditer(self._text))
        done, last = [], 0
        for at, word in enumerate(found):
            gap = self._text[last : word.start()]
            if re.search(r"[,;:–—()]", gap):
                self._others = False
            done.append(gap)
            following = found[at + 1] if at + 1 < len(found) else None
            joined_up = following is not None and not re.search(r"[^\s]", self._text[word.end() : following.start()])
            after = following.group().lower() if following and joined_up else ""
            before = found[at - 1].group().lower() if at else ""
            self._name_next = bool(following and following.group()[0].isupper())
            done.append(self._word(word.group(), before, after, gap))
            last = word.end()
        return "".join(done) + self._text[last:]

    def _word(self, word: str, before: str, after: str, gap: str) -> str:
        low = word.lower().replace("’", "'")
        stem, _, ending = low.partition("'")
        if stem == self._subject and ending in ("", "s", "d", "ll", "ve", "re"):
            self._mine, self._others, self._begun = True, False, True
            self._pending = not ending
            return _contracted(ending, after)
        shared = self._shared(low)
        if shared:
            return shared
        if self._pending:
            if low in _ADVERBS or (low.endswith("ly") and not known_third_person(low)):
                return word
            self._pending, self._after_verb = False, True
            return _agreeing(low, word)
        owned = self._owned(low, word, before, after)
        if owned:
            return owned
        if (low in _OTHERS_CLAUSE and after != self._subject) or low in ("she", "he"):
            self._others = True
        chained, self._after_verb = self._after_verb, False
        if low in ("and", "but", "or", "then", "nor"):
            self._led, self._after_verb = True, chained
            return word
        if self._led or "," in gap:
            if low in _ADVERBS or (low.endswith("ly") and not known_third_person(low)):
                self._led = self._after_verb = True
                return word
            self._led = False
            if self._mine and not self._others and self._coordinated(low, after, chained):
                self._after_verb = True
                return _agreeing(low, word)
        return word

    def _shared(self, low: str) -> str:
        """`they` next to a husband or a sister is the two of us."""
        if self._ours and self._subject != "they" and (self._mine or self._begun or not self._text.startswith("They")):
            return {"they": "we", "their": "our", "them": "us", "they're": "we're"}.get(low, "")
        return ""

    def _owned(self, low: str, word: str, before: str, after: str) -> str:
        if low in (self._own, "themself") and (low != "themself" or self._subject == "they"):
            return "myself"
        if low == self._possessive and low != self._object:
            return "my" if after else "mine"
        if low in ("hers", "theirs") and low == self._possessive + "s":
            return "mine"
        if low != self._object:
            return ""
        if (
            low == self._possessive
            and after
            and after not in _NOT_POSSESSED
            and not (before in _NAMING and self._name_next)
        ):
            return "my"
        if self._mine and not self._others and before not in _PREPOSITIONS:
            return word
        return "me"

    def _coordinated(self, low: str, after: str, chained: bool) -> bool:
        """Tell whether a word is one more verb of the same subject: `and walks his dog`, not `cakes and walks`."""
        if not known_third_person(low):
            return False
        return chained or not may_be_noun(low) or bool(after and after not in ("and", "but", "or"))


def _contracted(ending: str, after: str) -> str:
    if ending == "s":
        return "I've" if after in ("been", "got", "had", "always", "never") else "I'm"
    return {"": "I", "re": "I'm"}.get(ending, f"I'{ending}")


def _agreeing(low: str, word: str) -> str:
    if low in ("are", "were", "aren't", "weren't"):
        return {"are": "am", "were": "was", "aren't": "am not", "weren't": "wasn't"}[low]
    return plain_form(word)


_TO_YOU = {
    "i": "you",
    "i'm": "you're",
    "i've": "you've",
    "i'd": "you'd",
    "i'll": "you'll",
    "my": "your",
    "mine": "yours",
    "me": "you",
    "myself": "yourself",
    "we": "you",
    "our": "your",
    "ours": "yours",
    "us": "you",
    "we're": "you're",
    "we've": "you've",
    "ourselves": "yourselves",
}
_PAIR = Lazy(r"^([Mm]y [\w -]{2,40}?) and I ")
_AFTER_I = {"am": "are", "was": "were", "wasn't": "weren't"}


@lru_cache(maxsize=4096)
def as_told_to(text: str) -> str:
    """Give first-person words in the second person; everything else stays as it is."""
    text = _PAIR.sub(lambda found: f"I and {found.group(1)[:1].lower()}{found.group(1)[1:]} ", text)
    done, last, heard_i = [], 0, False
    for found in _WORD.finditer(text):
        low = found.group().lower().replace("’", "'")
        done.append(text[last : found.start()])
        if heard_i and low in _AFTER_I:
            word = _AFTER_I[low]
        else:
            word = _TO_YOU.get(low, found.group())
            if found.group()[0].isupper() and low not in ("i", "i'm", "i've", "i'd", "i'll"):
                word = capitalised(word)
            if not found.start():
                word = capitalised(word)
        heard_i = low == "i" or (heard_i and (low in _ADVERBS or low.endswith("ly")))
        done.append(word)
        last = found.end()
    return "".join(done) + text[last:]
