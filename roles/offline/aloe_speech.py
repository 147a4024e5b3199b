"""The speech of the person in an open chat: manners, pronouns, and statements in the first or second person."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from .understudy import Draws, normalize
from .understudy import stem as plain_stem
from .words import Words, ing_form, say, third_person, tidy

DATA = Path(__file__).parent / "data" / "aloe"
ENGLISH = Words(DATA / "english.toml")
LINES = Words(DATA / "lines.toml")


@cache
def load_word_set(name: str) -> frozenset[str]:
    """Return the words of one of the lists in `english.toml`."""
    return frozenset(ENGLISH.get(name).split())


@cache
def load_pattern(name: str) -> re.Pattern[str]:
    """Return one of the patterns in `english.toml`."""
    return re.compile(ENGLISH.get(f"patterns.{name}"))


@cache
def compile_prefixes(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that matches any of the given beginnings of words."""
    return re.compile(rf"\b(?:{'|'.join(patterns)})", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """Split a line into its sentences."""
    return [part for part in load_pattern("stop").split(text.replace("’", "'").strip()) if part]


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return the common stem of a word's forms and synonyms."""
    bare = plain_stem(_load_synonyms().get(word, word))
    return _load_synonyms().get(bare, bare)


@lru_cache(maxsize=16384)
def extract_content_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words."""
    words = re.findall(r"[^\W_]+", re.sub(r"'\w+", "", normalize(text)))
    return frozenset(
        stem(word) for word in words if word not in load_word_set("stop") and (len(word) > 1 or word.isdigit())
    )


@cache
def _load_synonyms() -> dict[str, str]:
    return {word: as_one for as_one, words in ENGLISH.get("same").items() for word in words.split()}


MANNERS = Words(DATA / "manners.toml")
GRAVE = frozenset(("hardship", "dislike"))
"""Subjects for which cheerful remarks are unsuitable."""


@lru_cache(maxsize=4096)
def find_manners(trait: str) -> tuple[str, ...]:
    """Return the manners that a sentence about a person mentions, in order; a denied manner becomes its opposite."""
    named: list[tuple[int, str]] = []
    for name, found in _find_matches("called", trait):
        denied = load_pattern("denied").search(found.string[: found.start()])
        named.append((found.start(), MANNERS.get(f"{name}.opposite", "") if denied else name))
    return tuple(dict.fromkeys(name for _, name in sorted(named, key=lambda each: each[0]) if name))


@lru_cache(maxsize=4096)
def find_shown_manners(line: str, what: str = "shown") -> tuple[str, ...]:
    """Return the manners that a person's line shows; with "suited", return the manners that an answer is suited to."""
    return tuple(name for name, _ in _find_matches(what, line))


def filter_manners(manners: Iterable[str], subject: str) -> list[str]:
    """Return the manners whose remarks suit a subject."""
    return [name for name in manners if subject not in GRAVE or MANNERS.get(f"{name}.grave", False)]


def _find_matches(kind: str, text: str) -> list[tuple[str, re.Match[str]]]:
    small = text.lower().replace("’", "'")
    each = ((name, compile_prefixes(tuple(entry[kind])).search(small)) for name, entry in MANNERS.table.items())
    return [(name, found) for name, found in each if found]


class Voice:
    """A speaker that picks remarks and does not repeat its own lines."""

    def __init__(self, own: Sequence[str], draws: Draws) -> None:
        self._earlier = _normalize_words(" ".join(own))
        self._draws = draws

    def of(self, bank: Iterable[str], slots: Mapping[str, str] | None = None) -> str:
        """Return an unused remark from a bank, filled with values for all its slots; empty if there is none."""
        for template in self._draws.shuffled(tuple(bank)):
            head = _normalize_words(re.split(r"[{<\[]", template)[0])
            if len(head.split()) >= 3 and head in self._earlier:
                continue
            text = say([template], self._draws, slots)
            if text and _normalize_words(text) not in self._earlier:
                return text
        return ""


def compose_line(own: Sequence[str], draws: Draws, remarks: Callable[[Draws], Iterable[str]]) -> str:
    """Join remarks into a line that differs from all earlier ones, if such a line is found in eight tries."""
    line = ""
    for attempt in range(8):
        parts = [part.strip() for part in remarks(draws.fork(attempt)) if part.strip()]
        line = tidy(" ".join(part if part[-1] in ".!?…" else part + "." for part in parts))
        if line and line not in own:
            break
    return line


def _normalize_words(text: str) -> str:
    words = re.findall(r"[a-z0-9]+", normalize(text).replace("'", ""))
    return f" {' '.join(words)} " if words else ""


_POSSESSIVES = {"she": "her", "he": "his", "they": "their"}
_OBJECT_PRONOUNS = {"she": "her", "he": "him", "they": "them"}
_PLURAL = re.compile(r"\w{3,}s$")
_EITHER = re.compile(r"\b(he|his|him|himself)/(?:she|hers?|herself)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


Speaker = tuple[str, str]
"""The pronoun of the person in a description (she, he, they, i, or empty), and the person's name, if it is repeated."""


@lru_cache(maxsize=512)
def find_speaker(text: str) -> Speaker:
    """Find the pronoun and the name by which a whole description refers to the person."""
    text = _EITHER.sub(r"\1", text)
    starts = re.findall(r"(?:^|[.!?;]\s+|\n[\s•*-]*)([A-Z]\w*)", text.replace("This person", "They"))
    calls = {"She": "she", "Her": "she", "He": "he", "His": "he", "They": "they", "Their": "they", "I": "i", "My": "i"}
    repeated = [
        word for word in starts[:1] if starts.count(word) > 1 and not {word, word.lower()} & {*calls, "a", "the"}
    ]
    return next((calls[word] for word in starts if word in calls), ""), "".join(repeated)


@lru_cache(maxsize=4096)
def to_first_person(sentence: str, speaker: Speaker) -> str:
    """Return a description's sentence in the first person, without its full stop; empty if that is uncertain."""
    text = re.sub(r"^[\s*•\-–\d.)]+(?=\D)", "", _EITHER.sub(r"\1", sentence).strip()).rstrip(".;! ")
    for short, full in (("s(?= been| got| had)", "has"), ("s", "is"), ("re", "are"), ("ve", "have"), ("ll", "will")):
        text = re.sub(rf"\b([Ss]he|[Hh]e|[Tt]hey)['’]{short}\b", rf"\1 {full}", text)
    called_by, name = speaker
    if called_by == "i" or re.search(r"\b(?:I|My|my)\b", text):
        return text
    pronoun = called_by or ("he" if re.search(r"\bhis\b", text) else "she" if "her " in text else "they")
    subject, own = pronoun.capitalize(), _POSSESSIVES[pronoun].capitalize()
    for called in filter(None, ("This person", name)):
        text = re.sub(rf"^{called}\b", subject, re.sub(rf"^{called}['’]s\b", own, text))
    head = next((word for word in text.split() if word.lower() not in load_word_set("adverbs")), "").lower().strip(",")
    if not called_by and (
        head in _base_forms() or head in load_word_set("past") or head in load_word_set("adjectives")
    ):
        text = f"{subject} {'is ' if head in load_word_set('adjectives') else ''}{text[:1].lower()}{text[1:]}"
    converted = _convert_words(text, pronoun)
    return converted[:1].upper() + converted[1:]


@lru_cache(maxsize=4096)
def to_second_person(text: str) -> str:
    """Convert a text from the first person to the second; its first letter is lower case, unless it may be a name."""
    text = re.sub(r"\bI((?: \w+ly)?) was\b", r"you\1 were", text)
    return lower_first_letter(
        _WORD.sub(lambda word: ENGLISH.get("to_you").get(word[0].lower().replace("’", "'"), word[0]), text)
    )


def lower_first_letter(text: str) -> str:
    """Lower the first letter of a statement unless its first word may be a name."""
    first = re.split(r"[\s'’,]", text, maxsplit=1)[0].lower()
    return text[:1].lower() + text[1:] if first in load_word_set("openers") or first == "your" else text


def _convert_words(text: str, pronoun: str) -> str:
    """Convert one sentence word by word, up to the first uncertain word."""
    words = [*_WORD.finditer(text)]
    small = [word.group().lower().replace("’", "'") for word in words]
    aside = small[:1] and small[0] in load_word_set("adverbials")  # such as "On Sundays she ..."
    is_first_person = verb_next = going_on = linked = False
    done, last = "", 0
    for at, (found, low) in enumerate(zip(words, small, strict=True)):
        gap = text[last : found.start()]
        after = small[at + 1] if small[at + 1 :] and text[found.end() : found.end() + 1] == " " else ""
        names = text[found.end() + 1 : found.end() + 2].isupper()  # such as "Friends call her Bibi"
        linked = linked or "," in gap
        word: str | None = found.group()
        if low == pronoun:
            word = "I" if is_first_person or aside or not at else None
            is_first_person = verb_next = True
        elif low in load_word_set("adverbs"):
            pass
        elif verb_next:
            word, verb_next, going_on, linked = _conjugate(low, found.group()), False, True, False
        elif low == _POSSESSIVES[pronoun] and (
            low != "her" or (after and not names and after not in load_word_set("not_owned"))
        ):
            word = "my" if at else "My"
        elif low == _OBJECT_PRONOUNS[pronoun] + "self" or (low == "themselves" and pronoun == "they"):
            word = "myself"
        elif low in (_OBJECT_PRONOUNS[pronoun], "they", "them", "their"):
            several = any(_PLURAL.match(each) and each not in _base_forms() for each in small[:at])
            if not (several and low in ("them", "their") and (is_first_person or pronoun != "they")):
                is_person = low == _OBJECT_PRONOUNS[pronoun] and not (
                    is_first_person or names or (several and low == "them")
                )
                word = "me" if is_person else None
        elif low in load_word_set("clauses"):
            going_on = False
        elif low in ("and", "but", "or"):
            linked = True
        elif linked:
            linked = False
            if going_on and (low in _base_forms() or low in ("are", "were") or after in load_word_set("determiners")):
                word = _convert_second_verb(low, after, small[at - 2 : at])
        if word is None:
            done += gap
            return load_pattern("hanging").sub("", done) if load_pattern("hanging").search(done) else ""
        done += gap + word
        last = found.end()
    return done


def _convert_second_verb(word: str, after: str, before: list[str]) -> str | None:
    """Return a sentence's second verb in the first person; `None` if it may be a noun, as in `crosswords and walks`."""
    sure = after in load_word_set("determiners") or before[-1] in load_word_set("adverbs") or before[0].isdigit()
    return _conjugate(word, word) if sure or word not in load_word_set("nounish_thirds") else None


@cache
def _base_forms() -> dict[str, str]:
    """Return the base form of each known verb by its third person."""
    return {third_person(verb): verb for verb in load_word_set("verbs")} | {"is": "am", "has": "have", "does": "do"}


def _conjugate(low: str, word: str) -> str:
    """Return the form of a verb that goes with "I"."""
    return str(ENGLISH.get("agreeing").get(low) or _base_forms().get(low) or re.sub(r"(?<=\w{3})(?<![su])s$", "", word))


_FORMS: Mapping[str, tuple[str, str, str, str]] = {
    "she": ("she", "her", "her", "herself"),
    "he": ("he", "his", "him", "himself"),
    "he/she": ("he/she", "his/her", "him/her", "himself/herself"),
}
_PLAIN_WORD = re.compile(r"[^\W_]+")


def find_known_pronoun(profile: str, lines: Iterable[str]) -> str:
    """Return the pronoun that somebody who knows only a person's lines uses for that person."""
    called_by, _ = find_speaker(profile)
    # Lines whose writer states that they are a woman or a man.
    stating = rf"{ENGLISH.get('patterns.about_oneself')}(?:{'|'.join(sorted(load_word_set('gendered')))})\b"
    is_known = any(re.search(stating, line.replace("’", "'"), re.IGNORECASE) for line in lines)
    return called_by if called_by in ("she", "he") and is_known else "he/she"


def replace_pronoun(text: str, whole: str, pronoun: str) -> str:
    """Return a description's sentence with another pronoun for its person."""
    old, _ = find_speaker(whole)
    if old not in _FORMS or old == pronoun:
        return text
    subject, own, object_, self_ = _FORMS[pronoun]

    def other(found: re.Match[str]) -> str:
        low, behind = found[0].lower(), text[found.end() :]
        after = re.match(r" ([^\W_]+)", behind)
        if low == _FORMS[old][0]:
            new = subject
        elif low == _FORMS[old][3]:
            new = self_
        elif low == _FORMS[old][1] and (old != "she" or (after and after[1].lower() not in load_word_set("not_owned"))):
            new = own
        elif low == _FORMS[old][2]:
            new = object_
        else:
            return found[0]
        return new if found[0].islower() else "/".join(part.capitalize() for part in new.split("/"))

    return _PLAIN_WORD.sub(other, text)


SUBJECTS = Words(DATA / "subjects.toml")
_MAX_STATEMENT_WORDS = 26


class Statement(NamedTuple):
    """A statement about oneself.

    The slots fill templates: `you`, the statement in the second person; `doing`, an activity of the speaker; `who` or
    `pet`, somebody in the speaker's life. A slot is missing if it could be wrong. Slots named `my_...` hold the same
    texts in the first person.
    """

    text: str  # in the first person, without an end mark
    subject: str  # the name of its subject
    words: frozenset[str]  # the stems of its content words
    slots: dict[str, str]


@lru_cache(maxsize=8192)
def build_statement(text: str) -> Statement:
    """Build a statement and its forms from a text in the first person."""
    text = re.sub(r"\s+", " ", text).strip().rstrip(".!;,")
    subject = find_subject(text)
    forms = {"fact": text, "inside": _embed(text)}
    if subject not in GRAVE:
        forms["doing"] = _find_activity(text)
        forms |= _find_somebody(text) if subject != "origin" else {}
    second_person = {"you" if name == "fact" else name: to_second_person(each) for name, each in forms.items() if each}
    if len(text.split()) > 15:
        second_person["you"] = to_second_person(
            re.split(r"(?<=\w{4})[,;:–—]| (?:because|but|although|which) ", text)[0]
        )
    if not forms["inside"]:
        second_person["you"] = ""
    return Statement(
        text, subject, extract_content_stems(text), second_person | {f"my_{name}": each for name, each in forms.items()}
    )


@lru_cache(maxsize=8192)
def find_statement(line: str) -> Statement | None:
    """Return a chat line's statement about its writer: the sentence with the most content; `None` if there is none."""
    best: tuple[float, str] = (0, "")
    for at, part in enumerate(sentences(line)):
        bare = load_pattern("lead").sub("", part)
        about_me = (
            load_pattern("own").search(bare)
            and not load_pattern("vague").match(bare)
            and not load_pattern("your").search(bare)
        )
        if about_me and not (part.endswith("?") and bare == part) and _embed(bare[:1].upper() + bare[1:]):
            # Earlier sentences are preferred, because they state what is new; later ones only comment on it.
            weight = len(extract_content_stems(bare)) - 3 * bool(find_shown_manners(part)) - 0.6 * at
            best = max(best, (weight, bare[:1].upper() + bare[1:]), key=lambda each: each[0])
    return build_statement(best[1].rstrip("? ")) if best[1] and len(best[1].split()) <= _MAX_STATEMENT_WORDS else None


def _embed(text: str) -> str:
    """Return a statement in the form in which it is embedded in a sentence; empty if it may begin with a name."""
    small = lower_first_letter(text)
    return small if re.match(r"I\b|[^A-Z]", small) else ""


@lru_cache(maxsize=4096)
def find_subject(text: str) -> str:
    """Return a text's subject: the first whose pattern matches, else the one that shares most words with the text."""
    for name, entry in SUBJECTS.table.items():
        if "patterns" in entry and compile_prefixes(tuple(entry["patterns"])).search(text):
            return name
    shared = {name: len(extract_content_stems(text) & words) for name, words in _load_subject_stems().items()}
    best = max(shared, key=shared.__getitem__)
    return best if shared[best] else "anything"


@cache
def _load_subject_stems() -> dict[str, frozenset[str]]:
    entries = SUBJECTS.table.items()
    return {name: frozenset(map(stem, entry["words"].split())) for name, entry in entries if "words" in entry}


def _find_activity(text: str) -> str:
    if (found := load_pattern("doing").match(text)) is None:
        return ""
    verb, rest = found.groups()
    rest = load_pattern("clause").split(rest)[0].strip()
    if verb not in ("like", "love", "enjoy") or not re.match(r"[a-z]{3,}ing\b", rest):
        rest = (
            f"{ing_form(verb)} {rest}" if verb in load_word_set("verbs") and verb not in load_word_set("states") else ""
        )
    return rest if 1 < len(rest.split()) <= 12 else ""


def _find_somebody(text: str) -> dict[str, str]:
    tried = ((each, re.search(each["pattern"], text)) for each in ENGLISH.get("somebody"))
    return next(({each["slot"]: each["say"].format(found[1])} for each, found in tried if found), {})
