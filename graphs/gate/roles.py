"""The rules about roles and prompts: words of a prompt in a line, and lines that only the other speaker would say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from dialoom.graphs.gate.talk import (
    LONGEST,
    RUN,
    STEM,
    GateLine,
    PromptWords,
    Talk,
    clauses_of,
    headings_of,
    kinds_in,
    labels_of,
    normal,
    parts_of,
    runs_of,
    spelt,
    stems,
    terms_of,
    units_of,
    words_of,
)
from dialoom.graphs.outcome import DialogueFault, Judgement
from dialoom.grouping import grouped

_TAG = re.compile(r"(?:<|&lt;)\s{0,3}/?\s{0,3}([^\W\d_][\w-]{0,40})")
_MARK = re.compile(
    r"<\|[\w-]{1,30}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"  # chat templates
    r"|^#{2,}\s*(?:instruction|response|input|system)s?\b"
    r"|\{\{[^{}\n]{1,80}\}\}|\{%[^{}\n]{1,80}%\}"
    r"|\[\s*(?:insert|your|user'?s?|customer'?s?|assistant'?s?|name|date|time|city"
    r"|place|location|number)\b[^\[\]\n(]{0,60}\](?![(:]| :)"
    r"|<\s*(?:insert|your)\s[^<>\n]{1,60}>",
    re.IGNORECASE | re.MULTILINE,
)
_HTML = frozenset(
    "a article b blockquote body br button caption center cite code dd details div dl dt em figure font footer form h1 "
    "h2 h3 h4 h5 h6 head header hr html i iframe img input label li link main mark nav ol option p path pre q s script "
    "section select small span strong style sub summary sup svg table tbody td text textarea tfoot th thead title tr "
    "tt u ul video".split()
)
_MADE_UP = re.compile(r"(?:^|\n)[ \t]*<([A-Za-z][\w-]{1,40})(?: [\w-]{1,40}){0,3}>|</([A-Za-z][\w-]{1,40})>")
_FEWEST_BESIDE = 2
_FEWEST_SHARED = 2
"""Minimum number of content words that a clause shares with an instruction that it repeats."""

_LIKE_INSTRUCTION = ((3, 0.9), (4, 0.7), (5, 0.65))
"""Numbers of shared content words with the similarities (Dice's coefficient) that are enough."""

_LIKE_ROLE = _LIKE_INSTRUCTION[-1:]
"""The same for sentences that say who the reader is. A speaker may say so in other words."""

_FEWEST_OF_ALL, _LIKE_ALL = 7, 0.8
"""Minimum number of words, and minimum similarity, if all words are compared."""

_FEWEST_OF_MOST, _MOST, _PART = 5, 0.85, 0.4
"""Minimum number and share of an instruction's words in a clause that has nearly all of them, and minimum share of the
clause that these words are.
"""

_FEWEST_OF_DUTY, _OF_DUTY = 3, 0.6
"""Minimum number and share of an instruction's content words in a sentence in which speakers say what they must do."""

_PAIRS_OF_WORD = 2
"""The number of pairs of characters that counts as a word in languages without spaces."""

_ROLE = frozenset({"you", "are"})
"""Words of instructions that only say who the reader is."""

_Clause = tuple[frozenset[str], frozenset[str]]
"""A clause's words, and its content words."""

_FEWEST_RETOLD, _RETOLD, _ADDRESSED = 3, 5, 4
"""Minimum numbers of content words and of consecutive words of the task in a sentence about the user as somebody else,
and of consecutive words in a sentence that takes over how the task addresses the user.
"""

_FEWEST_DIRECTING = 3
"""Minimum number of kinds of phrases about messages, tasks and roles in a sentence that gives away a prompt."""

_FEWEST_OF_FORM = 3
"""Minimum number of different words for messages and for the rules of their form in a sentence about this form."""


def leaked_prompts(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that contain tags or instructions of prompts, chat-template markers, or unfilled placeholders.

    An instruction is recognised even if it is paraphrased. A line in which a speaker mentions the role that it plays,
    or the form that its messages should have, is yielded, too. A line that only repeats what the other speaker has
    leaked is an echo, and is not yielded.
    """
    find = _LeakFinder(talk)
    leaked: tuple[set[str], set[str]] = (set(), set())
    for place, line in enumerate(talk.lines):
        is_users = line.role == talk.facts.user
        known = leaked[not is_users] if talk.is_spoken else ()
        fresh = [leak for leak in find.leaks(place) if leak.key not in known]
        leaked[is_users].update(leak.key for leak in fresh)
        if fresh and place >= talk.since:
            yield line.fault("prompt_leak", fresh[0].words, fresh[0].sureness)


class _Leak(NamedTuple):
    """Words of a prompt in a line.

    Attributes:
        key: What is leaked, such as the name of a tag, by which leaks are compared.
        words: The words of the line that show it.
        sureness: How certain it is that they are a leak.
    """

    key: str
    words: str
    sureness: float


class _LeakFinder:
    """A search for leaks in a conversation's lines, with the prompts' features that it needs computed once."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._stop = stems(talk.vocabulary.stop)
        self._instructions, self._having = _indexed(talk.prompts.clauses, self._stop)
        markers = "|".join(map(re.escape, talk.facts.end_markers)) or r"(?!)"
        verbs = r"(?:[Ww]rit|[Ss]a[yi]|[Tt]yp|[Ww]ord|[Ee]nd)\w*"
        self._marker_talk = re.compile(rf"\b{verbs}[^\w\n]{{1,3}}(?:with )?(?:{markers})\b")
        task = tuple(terms_of(talk.facts.task))
        self._task = stems(task) - self._stop
        self._retold = set(runs_of(task, _RETOLD))
        self._addressed = {
            hash(task[place : place + _ADDRESSED])
            for place in range(len(task) - _ADDRESSED + 1)
            if not talk.vocabulary.addressee.isdisjoint(task[place : place + _ADDRESSED])
        }

    def leaks(self, place: int) -> Iterator[_Leak]:
        """Yield the leaks of a line, the most certain ones first."""
        talk, line = self._talk, self._talk.lines[place]
        for mark in _MARK.finditer(line.own):
            yield _Leak(mark[0].lower(), mark[0], 1.0)
        for tag in _TAG.finditer(line.own):
            if tag[1].lower() in talk.prompts.tags:
                yield _Leak(_tag_name(tag[0]), line.own[tag.start() : tag.end() + 40].split("\n")[0], 1.0)
        for tag in _MADE_UP.finditer(line.own):
            name = tag[1] or tag[2]
            if name.lower() not in _HTML and name not in talk.facts.end_markers:
                yield _Leak(_tag_name(tag[0]), tag[0].strip(), 0.8)
        for heading in headings_of(line.own):
            if heading in talk.prompts.headings:
                yield _Leak(heading, heading, 0.9)
        if is_users := talk.is_spoken and line.role == talk.facts.user:
            own = f" {normal(line.own)} "
            for lead in sorted(talk.prompts.leads):
                if f" {lead} " in own:
                    yield _Leak(lead, lead, 0.9)
        for label in labels_of(line.own):
            names = talk.prompts.tags | talk.prompts.headings if is_users else frozenset[str]()
            if label in talk.prompts.labels or label in names - talk.vocabulary.fillers:
                yield _Leak(label, label, 0.9)
        said = tuple(terms_of(line.text[:LONGEST]))
        for start, run in enumerate(runs_of(said)):
            if run in talk.prompts.runs:
                words = " ".join(said[start : start + RUN])
                yield _Leak(words, words, 0.9)
        if talk.is_spoken:
            yield from self._spoken_leaks(place)

    def _spoken_leaks(self, place: int) -> Iterator[_Leak]:
        """Yield the leaks of a line that only lines of a conversation can have."""
        words, line = self._talk.vocabulary, self._talk.lines[place]
        is_users = line.role == self._talk.facts.user
        if is_users and (said := self._marker_talk.search(line.own)):
            yield _Leak(normal(said[0]), said[0], 0.8)
        for phrases in (words.staging, words.portraits) if is_users else (words.staging,):
            for phrase in phrases.finditer(spelt(line.own)):
                yield _Leak(phrase[0], phrase[0], 0.8)
        for sentence in parts_of(line.own):
            text = spelt(sentence)
            is_of_prompt = self._rephrases(text) or self._is_about_form(text, place)
            if is_of_prompt or (
                is_users and (self._retells(text) or len(kinds_in(words.directing, text)) >= _FEWEST_DIRECTING)
            ):
                yield _Leak(normal(text), line.shown(), 0.7)

    def _rephrases(self, sentence: str) -> bool:
        """Return whether a sentence, or a clause of it, has nearly the words or the content words of an instruction."""
        per_word = 1 if self._talk.vocabulary.is_spaced else _PAIRS_OF_WORD
        is_duty = self._talk.vocabulary.duties.search(sentence) is not None
        for words in clauses_of(sentence):
            clause = (words, words - self._stop)
            for number, count in Counter(number for word in clause[1] for number in self._having.get(word, ())).items():
                instruction = self._instructions[number]
                if count >= _FEWEST_SHARED and _repeats(clause, instruction, count, per_word):
                    return True
                if is_duty and count >= max(per_word * _FEWEST_OF_DUTY, _OF_DUTY * len(instruction[1])):
                    return True
        return False

    def _retells(self, sentence: str) -> bool:
        """Return whether a user's sentence takes over words of the task and speaks of the user as of somebody else."""
        words, known = tuple(terms_of(sentence)), self._talk.vocabulary
        is_plain = "?" not in sentence and known.oneself.isdisjoint(words)
        if is_plain and not self._addressed.isdisjoint(runs_of(words, _ADDRESSED)):
            return True
        return known.retelling.search(sentence) is not None and (
            len(self._task & (stems(words) - self._stop)) >= _FEWEST_RETOLD
            or not self._retold.isdisjoint(runs_of(words, _RETOLD))
        )

    def _is_about_form(self, sentence: str, place: int) -> bool:
        """Return whether a sentence speaks of the form of messages with words that are new in the conversation.

        Words of the task or of the other speaker's earlier lines are not new.
        """
        words, talk = self._talk.vocabulary, self._talk
        rules, texts = (
            {found[0][:STEM] for found in pattern.finditer(sentence)} for pattern in (words.rules, words.texts)
        )
        if not rules or len(rules | texts) < _FEWEST_OF_FORM:
            return False
        role = talk.lines[place].role
        known = stems(word for line in talk.lines[:place] if line.role != role for word in line.words)
        known |= stems(words_of(talk.facts.task))
        if not words.is_spaced:
            said = spelt("\n".join([talk.facts.task, *(line.text for line in talk.lines[:place] if line.role != role)]))
            known |= {word for word in rules | texts if word in said}
        return bool(rules - known) and len((rules | texts) - known) >= _FEWEST_OF_FORM


@lru_cache(maxsize=8)
def _indexed(
    clauses: frozenset[frozenset[str]], stop: frozenset[str]
) -> tuple[Sequence[_Clause], Mapping[str, Sequence[int]]]:
    """Return instructions with their content words, and the numbers of the instructions that have each word."""
    instructions = [(each, each - stop) for each in clauses]
    return instructions, grouped((word, number) for number, (_, content) in enumerate(instructions) for word in content)


def _tag_name(tag: str) -> str:
    """Return a tag's name, with the slash of a closing tag."""
    return re.sub(r"[^\w/-]", "", tag.lower().replace("&lt;", ""))


def _repeats(clause: _Clause, instruction: _Clause, shared: int, per_word: int) -> bool:
    """Return whether a clause, or a sentence, repeats an instruction with which it shares some content words.

    So many pairs of characters count as one word.
    """
    (words, content), (all_words, content_words) = clause, instruction
    common, in_both = len(words & all_words), len(content) + len(content_words)
    if min(len(words), len(all_words)) >= per_word * _FEWEST_OF_ALL and 2 * common >= _LIKE_ALL * (
        len(words) + len(all_words)
    ):
        return True
    is_role = all_words >= _ROLE
    likes = _LIKE_ROLE if is_role else _LIKE_INSTRUCTION
    if any(shared >= per_word * fewest and 2 * shared >= like * in_both for fewest, like in likes):
        return True
    return not is_role and common >= max(per_word * _FEWEST_OF_MOST, _MOST * len(all_words), _PART * len(words))


def unfilled_blanks(talk: Talk) -> Iterator[DialogueFault]:
    """Yield texts that consist only of a placeholder from the reply form."""
    for line in talk.checked_lines():
        if _gives_back(normal(line.text[:400]), talk.prompts.forms):
            yield line.fault("prompt_leak", line.shown())


def copied_forms(judgements: Iterable[Judgement], prompts: PromptWords) -> Iterator[DialogueFault]:
    """Yield judgements whose explanation consists only of a placeholder from the reply form."""
    for each in judgements:
        if _gives_back(normal(each.explanation[:400]), prompts.forms):
            about = f"{each.metric} ({each.target})" + ("" if each.turn is None else f" of turn {each.turn}")
            yield DialogueFault(who="judge", kind="copied_form", words=f"{about}: {each.explanation:.80}")


def _gives_back(explanation: str, forms: Iterable[str]) -> bool:
    return any(form in explanation and len(explanation.split()) - len(form.split()) < _FEWEST_BESIDE for form in forms)


_NAMED = re.compile(
    r"(?:^|\n)[ \t>*_]{0,4}([A-Z][\w'’-]{1,20}(?: [A-Z][\w'’-]{1,20})?)[*_]{0,3}:[*_]{0,3}\s{1,3}([^\n]*)"
)
_LETTERED = re.compile(
    r"\A(?:\s*<[^<>\n]{1,40}>)?[ \t\n>*_]{0,4}([A-Z])[*_]{0,3}:[*_]{0,3}[ \t]+((?:\S+[ \t]+){4}\S[^\n]*)"
)
"""A label of one letter before several words at the beginning of a line. Elsewhere it may be an option."""

_LABEL = (
    r"(?:user|human|client|operator|system|bot|chatbot|assistant|ai(?: assistant)?|agent|representative"
    r"|(?:support|service) (?:agent|team)|customer(?: (?:service|support))?(?: (?:agent|representative|chatbot))?)"
)
_FEWEST_OF_LINE = 2
_FEWEST_SERVING = 2
"""Minimum number of kinds of phrases of somebody who serves others in a line of a user who acts as an assistant."""


def glued_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines with words after a speaker's label, such as `User:` or `A:`, or after a name that both have so."""
    both, spoken_by = _names_with_both(talk), _spoken_by(talk.vocabulary.speakers)
    for line in talk.checked_lines():
        for label in (*spoken_by.finditer(line.prose), *_LETTERED.finditer(line.prose)):
            is_split = talk.vocabulary.is_spaced or not units_of(label[2])
            if len(label[2].split() if is_split else units_of(label[2])) >= _FEWEST_OF_LINE:
                yield line.fault("glued_lines", " ".join(label[0].split()))
                break
        else:
            if (words := next((words for name, words in _named(line, talk) if name in both), None)) is not None:
                yield line.fault("glued_lines", words, 0.7)


@cache
def _spoken_by(speakers: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of a label of a speaker, in English or in words of another language, with what follows it."""
    labels = "|".join((_LABEL, *sorted(speakers, reverse=True)))
    before = r"(?:^|\n|(?<=[.!?…\"”)])\s|(?<=[。！？]))[ \t>*_\-\[(]{0,4}"
    return re.compile(rf"{before}({labels})[\])*_]{{0,3}}\s?[:：][*_]{{0,3}}\s*([^\n]*)", re.IGNORECASE)


def swapped_roles(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines of a user who offers help or claims to be a model, and of an assistant who asks for help as users do.

    Quoted text does not count. Neither do an assistant's words within a sentence that the user's last line contains,
    as in "About I need a refund: done".
    """
    said = ""  # by the user, in the last line
    for place, line in enumerate(talk.lines):
        words, text = talk.vocabulary, spelt(line.own)
        is_users = line.role == talk.facts.user
        quotable, said = ("", text) if is_users else (said, said)
        if place < talk.since:
            continue
        patterns = (words.offers, words.selves) if is_users else (words.requests,)
        matches = (match for pattern in patterns for match in pattern.finditer(text))
        if found := next((each for each in matches if each[0] not in quotable or _begins_sentence(each)), None):
            yield line.fault("swapped_role", found[0], 0.9)
        elif is_users and len(signs := kinds_in(words.serving, text)) >= _FEWEST_SERVING:
            yield line.fault("swapped_role", ", ".join(signs.values()), 0.7)


def _begins_sentence(match: re.Match[str]) -> bool:
    before = match.string[: match.start()].rstrip()
    return not before or before[-1] in ".!?"


def claimed_actions(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines of an assistant with tools that report an action although no tool was called before."""
    for line in talk.checked_lines() if talk.has_tools else ():
        found = talk.vocabulary.claims.search(spelt(line.own))
        if found and line.role != talk.facts.user and not line.is_acted:
            yield line.fault("claimed_action", found[0], 0.8)


def _named(line: GateLine, talk: Talk) -> Iterator[tuple[str, str]]:
    """Yield each name that labels a text in the first or second person, with the labelled text."""
    for found in _NAMED.finditer(line.prose):
        if talk.vocabulary.persons & set(words_of(found[2])):
            yield found[1], " ".join(found[0].split())


def _names_with_both(talk: Talk) -> set[str]:
    """Return the names that both speakers use as labels of text. Such a name belongs to a third person."""
    by_side: tuple[set[str], set[str]] = (set(), set())
    for line in talk.lines:
        by_side[line.role == talk.facts.user].update(name for name, _ in _named(line, talk))
    return by_side[0] & by_side[1]
