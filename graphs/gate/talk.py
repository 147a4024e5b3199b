"""The inputs of the rules: a conversation's lines or an author's texts, facts about them, and the word lists."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Any

from dialoom.graphs.outcome import DialogueFault, Line
from dialoom.grouping import group_pairs
from dialoom.prompts import Prompt
from dialoom.text import UNIT, WORD

_NEVER_MATCHES = re.compile(r"(?!)")
_PART_NAME = re.compile(r"(?<!\(\?)<(\w+)>")

UNDETERMINED = "und"
"""The ISO 639 code for a language that is neither declared nor detected."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The word lists of a language that the rules use. Patterns match text that `normalize` has normalised.

    Attributes:
        code: The ISO 639 code.
        sizes: The number of entries of each word list below.
        is_spaced: Whether spaces separate its words.
        is_split: Whether `split_units` separates its words or characters.
        is_dropping: Whether words such as `I` are mostly left out, so that they do not tell who is spoken of.
        scripts: Its scripts, as in the Unicode names of their letters.
        stop: Its most common words, which carry no content.
        unfinished: Words that never end a sentence.
        trailing: Words that rarely end a long sentence.
        fillers: Words of greetings and of waiting, without content.
        persons: Words, such as `my` and `your`, for the speaker and for the person addressed.
        oneself: Words, such as `I`, for the speaker as the subject of an action.
        vague: Words that name no subject of a task.
        numerals: Words for numbers.
        addressing: Words to the other speaker, outside questions.
        subjects: Words that name the subject of a task, in a group of the pattern for each subject.
        trade: Words that every shop uses, so that they tell no subject if they are named in passing.
        offers: Phrases that offer help. Users do not say them.
        selves: Phrases with which an assistant describes itself.
        serving: Phrases of somebody who serves others, in a group of the pattern for each kind. One kind alone is no
            sign of it.
        staging: Phrases about the role that somebody was told to play.
        portraits: Phrases by which users describe themselves as their prompts do.
        directing: Phrases about messages, tasks and roles, in a group of the pattern for each kind. One or two kinds
            are no sign of a prompt.
        imperatives: Verbs with which instructions begin.
        rules: Words for the rules that a prompt gives for messages.
        texts: Words for messages and for those who write them.
        retelling: Phrases that speak of the user as of somebody else, in sentences about the user's task.
        claims: Phrases that report an action as done.
        requests: Phrases that ask for service. Assistants do not say them.
        needs: Phrases that state what somebody needs, or wants to know or have, besides requests.
        likes: Phrases that state a preference.
        closings: Phrases that express satisfaction and say goodbye.
        dealt: Phrases that state that something is done, or cannot be done.
        asks: Words that begin an open question.
        reminders: Phrases that state that something is repeated.
        reader: Words with which a prompt addresses its reader.
        addressee: Words with which a task addresses the user.
        duties: Phrases by which speakers say what they must do, or must not do.
        speakers: Words that label what a speaker says, besides the English ones.
    """

    code: str
    sizes: Mapping[str, int]
    is_spaced: bool = True
    is_split: bool = True
    is_dropping: bool = False
    scripts: frozenset[str] = frozenset({"LATIN"})
    stop: frozenset[str] = frozenset()
    unfinished: frozenset[str] = frozenset()
    trailing: frozenset[str] = frozenset()
    fillers: frozenset[str] = frozenset()
    imperatives: frozenset[str] = frozenset()
    persons: frozenset[str] = frozenset()
    oneself: frozenset[str] = frozenset()
    vague: frozenset[str] = frozenset()
    reader: frozenset[str] = frozenset()
    addressee: frozenset[str] = frozenset()
    speakers: frozenset[str] = frozenset()
    numerals: frozenset[str] = frozenset()
    addressing: re.Pattern[str] = _NEVER_MATCHES
    subjects: re.Pattern[str] = _NEVER_MATCHES
    trade: re.Pattern[str] = _NEVER_MATCHES
    offers: re.Pattern[str] = _NEVER_MATCHES
    selves: re.Pattern[str] = _NEVER_MATCHES
    serving: re.Pattern[str] = _NEVER_MATCHES
    staging: re.Pattern[str] = _NEVER_MATCHES
    portraits: re.Pattern[str] = _NEVER_MATCHES
    directing: re.Pattern[str] = _NEVER_MATCHES
    rules: re.Pattern[str] = _NEVER_MATCHES
    texts: re.Pattern[str] = _NEVER_MATCHES
    retelling: re.Pattern[str] = _NEVER_MATCHES
    claims: re.Pattern[str] = _NEVER_MATCHES
    requests: re.Pattern[str] = _NEVER_MATCHES
    needs: re.Pattern[str] = _NEVER_MATCHES
    likes: re.Pattern[str] = _NEVER_MATCHES
    closings: re.Pattern[str] = _NEVER_MATCHES
    dealt: re.Pattern[str] = _NEVER_MATCHES
    asks: re.Pattern[str] = _NEVER_MATCHES
    reminders: re.Pattern[str] = _NEVER_MATCHES
    duties: re.Pattern[str] = _NEVER_MATCHES


def split_words(text: str) -> list[str]:
    """Return the words of a text, in lower case, with normalised apostrophes."""
    return [word.replace("’", "'") for word in WORD.findall(text.lower())]


def split_units(text: str) -> list[str]:
    """Return the words of a text as `split_words` does, but each character of Chinese or Japanese as a word."""
    return [word.replace("’", "'") for word in UNIT.findall(text.lower())]


def split_terms(text: str) -> list[str]:
    """Return the words of a text as `split_words` does, but each pair of adjacent characters of Chinese or Japanese."""
    terms = []
    for word in split_words(text):
        units = UNIT.findall(word)
        if len(units) > 1:
            terms += [one + other for one, other in pairwise(units)]
        else:
            terms.append(word)
    return terms


def normalize(text: str) -> str:
    """Return a text in the form that a vocabulary's patterns expect: lower case, normalised apostrophes and spaces."""
    return " ".join(text.lower().replace("’", "'").split())


def find_kinds(pattern: re.Pattern[str], text: str) -> dict[int | None, str]:
    """Return the first phrase of each kind in a text, by the number of the kind's group in a pattern."""
    return {found.lastindex: found[0] for found in reversed(list(pattern.finditer(text)))}


@cache
def load_vocabularies() -> Mapping[str, Vocabulary]:
    """Return the vocabularies of all languages, by language code."""
    by_code = {}
    for file in (resources.files(__package__) / "data").iterdir():
        if file.name.endswith(".toml"):
            code = file.name.removesuffix(".toml")
            by_code[code] = _parse_vocabulary(code, tomllib.loads(file.read_text(encoding="utf-8")))
    return dict(sorted(by_code.items()))


def select_vocabulary(languages: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of the first of these languages that has one; otherwise the English vocabulary."""
    known = load_vocabularies()
    return next((known[code] for code in languages if code in known), known["en"])


def count_common_words(words: Sequence[str]) -> Counter[str]:
    """Return, by language, how many of the words are among the language's most common ones, except one-letter words."""
    languages = _index_common_words()
    return Counter(code for word in words for code in languages.get(word, ()))


def detect_language(text: str) -> str | None:
    """Return the code of the language whose most common words occur most often in a text; `None` if it is unknown.

    If fewer than three such words occur, the language is the one whose scripts are most like the text's; for the Latin
    script, it is unknown.
    """
    for code, count in count_common_words(split_words(text)).most_common(1):
        if count >= 3:
            return code
    if text.isascii():
        return None
    scripts = Counter(get_script(letter) for letter in text if letter.isalpha() and not letter.isascii())
    script = scripts.most_common(1)[0][0] if scripts else "LATIN"
    differences = {
        code: len(each.scripts ^ scripts.keys()) for code, each in load_vocabularies().items() if script in each.scripts
    }
    return min(differences, key=differences.__getitem__) if differences and script != "LATIN" else None


UNSPLIT_SCRIPTS = frozenset({"KHMER", "LAO", "MYANMAR", "THAI"})
"""The scripts whose words neither spaces nor `split_units` separate, as in the Unicode names of their letters."""

_MIN_SCRIPT_SHARE = 0.2
_MIN_ASCII_SHARE = 0.9
"""The share of ASCII letters from which a text of unknown language may be English."""
_MAX_SHORT_TEXT_WORDS, _BORROWED_LETTERS = 5, frozenset("àâäçèéêëîïñóôöûü")
"""The number of words up to which one word can decide a text's language, and the letters of English words such as
`café` and `naïve`, which do not decide it.
"""


def is_written_in(scripts: Collection[str], text: str) -> bool:
    """Return whether more than a fifth of the letters of a text are of one of these scripts.

    In Japanese, more than a fifth are kana, despite its Chinese characters.
    """
    letters = [get_script(letter) in scripts for letter in text if letter.isalpha()]
    return sum(letters) > _MIN_SCRIPT_SHARE * len(letters)


def may_be_english(text: str) -> bool:
    """Return whether a text is English, or of unknown language and with English letters.

    At least nine of ten letters are then without accents; in short texts, the others may be those of words such as
    `café`.
    """
    text = unicodedata.normalize("NFC", text)
    if (code := detect_language(text)) is not None:
        return code == "en"
    borrowed = _BORROWED_LETTERS if len(split_words(text)) <= _MAX_SHORT_TEXT_WORDS else frozenset()
    letters = [letter.isascii() or letter in borrowed for letter in text.lower() if letter.isalpha()]
    return sum(letters) >= _MIN_ASCII_SHARE * len(letters)


@cache
def _index_common_words() -> Mapping[str, Sequence[str]]:
    return group_pairs(
        (word, code) for code, each in load_vocabularies().items() for word in each.stop if len(word) > 1
    )


@cache
def get_script(letter: str) -> str:
    """Return the script of a letter, i.e. the first word of its Unicode name: `LATIN`, `CYRILLIC`, `CJK`, ..."""
    return unicodedata.name(letter, "UNKNOWN").split(maxsplit=1)[0].split("-")[0]


def _parse_vocabulary(code: str, data: dict[str, Any]) -> Vocabulary:
    """Return the vocabulary in a file. In a pattern, `<name>` stands for any of the file's `parts` of that name."""
    attributes: dict[str, object] = {}
    sizes = {"scripts": 1, "is_spaced": 1, "is_split": 1}
    before, after = (r"(?<!\w)", r"(?!\w)") if data.get("is_spaced", True) else ("", "")
    parts = {name: f"(?:{'|'.join(value)})" for name, value in data.pop("parts", {}).items()}
    for key, value in data.items():
        if isinstance(value, bool):
            attributes[key], sizes[key] = value, int(value)
            continue
        sizes[key] = len(value.split() if isinstance(value, str) else value)
        if isinstance(value, str):
            attributes[key] = frozenset(value.split())
        else:
            pattern = _PART_NAME.sub(lambda part: parts[part[1]], "|".join(value))
            attributes[key] = re.compile(f"{before}(?:{pattern}){after}")
    return Vocabulary(code, sizes, **attributes)  # type: ignore[arg-type]


RUN_LENGTH = 8
"""Minimum number of consecutive words shared with a prompt that counts as a leak."""

STEM_LENGTH = 5
"""Words that share this many first letters are treated as forms of one word."""

_SENTENCES = re.compile(r"(?<=[.!?:;])\s+|(?<=[。！？：；])|\n\s*[-*\d]?")
_CLAUSES = re.compile(r"[,;:]\s+|，|\s+and\s+")
_LABEL_LINE = re.compile(r"^[^\w\n]{0,6}([^:\n]{3,50}):", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t][^\n]{1,80}$", re.MULTILINE)
_LEAD = re.compile(r"([^.;!?,(:{}%\n]+)\s\{\{")
_MIN_LEAD_WORDS = 3
_MIN_INSTRUCTION_WORDS = 4
"""Minimum number of words of an instruction that does not address the reader."""

_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_TAG = re.compile(r"<\s*/?\s*([^\W\d_][\w-]*)")
_FORM = re.compile(r"\{\s*\"\w+\"\s*:.*?\}", re.DOTALL)
_VALUE = re.compile(r":\s*\"([^\"]+)\"")


@dataclass(frozen=True, slots=True)
class PromptWords:
    """An index of the words of some prompts.

    Attributes:
        runs: The hashes of every `RUN_LENGTH` consecutive words of the prompts.
        tags: The names of the prompts' tags.
        forms: The placeholders in the reply forms of the prompts, if they have several words.
        headings: The prompts' Markdown headings.
        labels: The beginnings of lines that address the reader, up to a colon.
        leads: The words in a line before what is filled in, if they address the reader.
        clauses: The stems of the words of each sentence and clause that addresses the reader or, in prompts for others
            than judges, begins with a verb that tells the reader what to do. In languages without a list of such verbs,
            each sentence and clause of such prompts.
    """

    runs: frozenset[int] = frozenset()
    tags: frozenset[str] = frozenset()
    forms: frozenset[str] = frozenset()
    headings: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    leads: frozenset[str] = frozenset()
    clauses: frozenset[frozenset[str]] = frozenset()

    @classmethod
    def of(cls, prompts: Iterable[Prompt]) -> PromptWords:
        """Return an index of the words of these prompts, without their inputs."""
        indexes = [_index_prompt(each.front.role, tuple(part.text for part in each.sections)) for each in prompts]
        return cls(
            **{each.name: frozenset().union(*(getattr(index, each.name) for index in indexes)) for each in fields(cls)}
        )


@lru_cache(maxsize=512)
def _index_prompt(role: str, sections: tuple[str, ...]) -> PromptWords:
    """Return an index of the words of one prompt."""
    runs: set[int] = set()
    clauses: set[frozenset[str]] = set()
    vocabulary = select_vocabulary((detect_language("\n".join(sections)) or "en",))
    for part in (part for text in sections for part in _TEMPLATE.sub("\0", text).split("\0")):
        runs.update(hash_runs(tuple(split_terms(part))))
        for clause in split_clauses(part):
            words = split_terms(clause)
            is_instruction = len(words) >= _MIN_INSTRUCTION_WORDS and (
                not vocabulary.imperatives or words[0] in vocabulary.imperatives
            )
            if (role != "judge" and is_instruction) or vocabulary.reader & set(words):
                clauses.add(stem_words(words))
    forms = {
        normalize_words(value) for text in sections for form in _FORM.findall(text) for value in _VALUE.findall(form)
    }
    labels = {each for text in sections for each in find_labels(text)}
    leads = {normalize_words(each) for text in sections for each in _LEAD.findall(text)}
    return PromptWords(
        runs=frozenset(runs),
        tags=frozenset(name.lower() for text in sections for name in _TAG.findall(text)),
        forms=frozenset(form for form in forms if " " in form),
        headings=frozenset(each for text in sections for each in find_headings(text)),
        labels=frozenset(each for each in labels if vocabulary.reader & set(each.split())),
        leads=frozenset(each for each in leads if _is_lead(each.split(), vocabulary)),
        clauses=frozenset(clauses),
    )


def _is_lead(words: Sequence[str], vocabulary: Vocabulary) -> bool:
    return not vocabulary.reader.isdisjoint(words) and _MIN_LEAD_WORDS <= len(words) <= RUN_LENGTH


def hash_runs(words: tuple[str, ...], length: int = RUN_LENGTH) -> list[int]:
    """Return the hashes of every `length` consecutive words, in the order of their first words."""
    return [hash(words[place : place + length]) for place in range(len(words) - length + 1)]


def stem_words(words: Iterable[str]) -> frozenset[str]:
    """Return the stems of words."""
    return frozenset(word[:STEM_LENGTH] for word in words)


def stem_clauses(text: str) -> Iterator[frozenset[str]]:
    """Yield the stems of the words of each sentence of a text and, if it has several clauses, of each clause."""
    for clause in split_clauses(text):
        yield stem_words(split_terms(clause))


def split_clauses(text: str) -> Iterator[str]:
    """Yield each sentence of a text and, if it has several clauses, each clause."""
    for sentence in split_sentences(text):
        yield sentence
        if len(clauses := _CLAUSES.split(sentence)) > 1:
            yield from clauses


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return _SENTENCES.split(text)


def find_headings(text: str) -> Iterator[str]:
    """Yield the Markdown headings of a text, without their levels."""
    for heading in _HEADING.findall(text):
        yield normalize_words(heading)


def find_labels(text: str) -> Iterator[str]:
    """Yield the beginnings of lines, up to a colon, with `you're` written as `you are`."""
    for label in _LABEL_LINE.findall(text):
        yield normalize_words(label).replace("you're", "you are")


def normalize_words(text: str) -> str:
    """Return a text's words as one normalised text for comparison."""
    return " ".join(split_words(text))


MAX_COMPARED_CHARACTERS = 20_000
"""Maximum number of characters of a line that are compared word by word.

Lines without faults are shorter, and comparing longer lines would be too slow.
"""

PASSAGE_LENGTH = 3
"""Minimum number of consecutive words that lines share in a passage that one takes over from the other."""

_MAX_EXCERPT_CHARACTERS = 120
MAX_DETECTION_CHARACTERS = 2_000
"""Maximum number of characters of a line that are read to recognise its script and language."""

_CODE = re.compile(r"```(?:.*?```|(?<!\A```).*\Z|\w.*\Z)|`[^`\n]*`", re.DOTALL)
"""Code in a text. Marks at the beginning that are never closed, and without a language, do not mark any."""

_QUOTED = re.compile(r"“[^“”]*”|«[^«»]*»|„[^„“”]*[“”]|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|(?<!\w)‘[^‘’\n]*’(?!\w)")

_UNCLOSED = re.compile(r"\A\s*\"(?=[^\"\n]*(?:\"[^\"\n]*\"[^\"\n]*)*(?:\n|\Z))")
_WRAPPED = re.compile(r"\s*[\"“]([^\"“”]*)[\"”]\s*")


@dataclass(frozen=True)
class GateLine:
    """A line with the features that rules use, each computed once.

    Attributes:
        role: The speaker.
        text: The text.
        message: The line's index among the outcome's messages, from 0; `None` if it is not one of them.
        where: The line's location, as defined by the recipe.
        is_cut: Whether the provider reported that the line was cut off.
        is_acted: Whether a tool was called before the line, or with it.
    """

    role: str
    text: str
    message: int | None = None
    where: str = ""
    is_cut: bool = False
    is_acted: bool = False

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words, in lower case; each character of Chinese or Japanese is one."""
        return tuple(split_units(self.text[:MAX_COMPARED_CHARACTERS]))

    @cached_property
    def word_counts(self) -> Counter[str]:
        """The number of occurrences of each word."""
        return Counter(self.words)

    @cached_property
    def pair_counts(self) -> Counter[tuple[str, str]]:
        """The number of occurrences of each pair of adjacent words."""
        return Counter(zip(self.words, self.words[1:], strict=False))

    @cached_property
    def passage_hashes(self) -> list[int]:
        """The hashes of every `PASSAGE_LENGTH` consecutive own words, in the order of their first words."""
        return hash_runs(self.own_words, PASSAGE_LENGTH)

    @cached_property
    def own_words(self) -> tuple[str, ...]:
        """The words of the speaker's own; each character of Chinese or Japanese is one."""
        return tuple(split_units(self.own_text))

    @cached_property
    def prose(self) -> str:
        """The beginning of the text, without code."""
        return _CODE.sub(" ", self.text[:MAX_COMPARED_CHARACTERS])

    @cached_property
    def own_text(self) -> str:
        """The speaker's own words: the beginning of the text, without code and quotations.

        Quotation marks around the whole text do not mark a quotation, and neither does one that is never closed.
        """
        whole = _WRAPPED.fullmatch(self.prose)
        return whole[1] if whole else _QUOTED.sub(" “…” ", _UNCLOSED.sub("", self.prose))

    def excerpt(self, start: int = 0, end: int | None = None) -> str:
        """Return an excerpt of the line as a single line."""
        text = " ".join(self.text[start : (start + _MAX_EXCERPT_CHARACTERS * 2) if end is None else end].split())
        return text if len(text) <= _MAX_EXCERPT_CHARACTERS else text[: _MAX_EXCERPT_CHARACTERS - 1] + "…"

    def fault(self, kind: str, words: str, confidence: float = 1.0) -> DialogueFault:
        """Return a fault of the speaker in this line."""
        return DialogueFault(
            role=self.role,
            kind=kind,
            message=self.message,
            where=self.where,
            excerpt=words[:_MAX_EXCERPT_CHARACTERS],
            confidence=confidence,
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """A recipe's facts about a scenario's conversation. A rule skips each check for which facts are missing.

    Attributes:
        user: The role that has a task or talks about itself.
        languages: The languages, as ISO 639 codes. If there are none, the language is detected from the words.
        task: The user's task, as text.
        kept_back: Texts that the user must not reveal in the opening, such as their preferences.
        end_markers: The words with which the user ends the conversation. No message should contain them.
        user_ends: The value of `Outcome.ended_by` if the user ended the conversation.
        limit: The value of `Outcome.ended_by` if the limit ended the conversation.
    """

    user: str = "user"
    languages: tuple[str, ...] = ()
    task: str = ""
    kept_back: tuple[str, ...] = ()
    end_markers: tuple[str, ...] = ()
    user_ends: str | None = None
    limit: str | None = None


@dataclass(frozen=True)
class Talk:
    """A conversation in the form that the rules read.

    Attributes:
        lines: The lines in order.
        facts: The recipe's facts.
        ended_by: The reason why the conversation ended; empty while it goes on.
        since: The index of the first line to check. Earlier lines are context only.
        prompts: The index of the prompts' words, which lines should not repeat.
        author: The role that wrote all lines and is at fault in all of them; empty for an actual conversation.
        has_tools: Whether the assistant was offered tools.
    """

    lines: Sequence[GateLine]
    facts: Facts = field(default_factory=Facts)
    ended_by: str = ""
    since: int = 0
    prompts: PromptWords = PromptWords()
    author: str = ""
    has_tools: bool = False

    @classmethod
    def of_texts(cls, author: str, texts: Mapping[str, str], facts: Facts, since: int = 0) -> Talk:
        """Return texts that a role wrote outside a conversation, such as a pool, with locations in the outcome."""
        return cls(
            [GateLine(author, text, where=where) for where, text in texts.items()], facts, since=since, author=author
        )

    @classmethod
    def of(cls, lines: Sequence[Line], facts: Facts, ended_by: str = "", has_tools: bool = False) -> Talk:
        """Return an outcome's conversation, without tool results and without messages that hold only tool calls."""
        first_call = next((message for message, line in enumerate(lines) if line.tool_calls), len(lines))
        texts = [
            GateLine(
                line.role,
                line.content,
                message,
                is_cut=line.finish_reason == "length",
                is_acted=message >= first_call,
            )
            for message, line in enumerate(lines)
            if line.tool_call_id is None and (line.content or not line.tool_calls)
        ]
        return cls(texts, facts, ended_by, has_tools=has_tools)

    @property
    def is_spoken(self) -> bool:
        """Return whether the lines form a conversation, even one written by a single author."""
        return not self.author or any(line.role != self.author for line in self.lines)

    def checked_lines(self) -> Sequence[GateLine]:
        """Return the lines to check."""
        return self.lines[self.since :]

    @cached_property
    def language(self) -> str:
        """The language, as an ISO 639 code: the declared language if there is only one, otherwise that of most lines.

        If several languages are declared, only they are considered. If no line's language can be detected, it is the
        first declared language, or `und` if there is none.
        """
        declared = self.facts.languages
        if len(declared) == 1:
            return declared[0]
        languages = Counter(detect_language(line.text[:MAX_DETECTION_CHARACTERS]) for line in self.lines)
        found = [code for code, _ in languages.most_common() if code is not None and (not declared or code in declared)]
        return (*found, *declared, UNDETERMINED)[0]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the conversation's language; if it has none, that of a declared language, or of English."""
        return select_vocabulary((self.language, *self.facts.languages))
