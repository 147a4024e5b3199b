"""The rules about roles and prompts: words of a prompt in a line, and lines that only the other speaker would say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from dialoom.graphs.gate.talk import (
    MAX_COMPARED_CHARACTERS,
    RUN_LENGTH,
    STEM_LENGTH,
    GateLine,
    PromptWords,
    Talk,
    find_headings,
    find_kinds,
    find_labels,
    hash_runs,
    normalize,
    normalize_words,
    split_sentences,
    split_terms,
    split_units,
    split_words,
    stem_clauses,
    stem_words,
)
from dialoom.graphs.outcome import DialogueFault, Judgement
from dialoom.grouping import group_pairs

_TAG = re.compile(r"(?:<|&lt;)\s{0,3}/?\s{0,3}([^\W\d_][\w-]{0,40})")
_TEMPLATE_MARK = re.compile(
    r"<\|[\w-]{1,30}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"  # chat templates
    r"|^#{2,}\s*(?:instruction|response|input|system)s?\b"
    r"|\{\{[^{}\n]{1,80}\}\}|\{%[^{}\n]{1,80}%\}"
    r"|\[\s*(?:insert|your|user'?s?|customer'?s?|assistant'?s?|name|date|time|city"
    r"|place|location|number)\b[^\[\]\n(]{0,60}\](?![(:]| :)"
    r"|<\s*(?:insert|your)\s[^<>\n]{1,60}>",
    re.IGNORECASE | re.MULTILINE,
)
_HTML_TAGS = frozenset(
    "a article b blockquote body br button caption center cite code dd details div dl dt em figure font footer form h1 "
    "h2 h3 h4 h5 h6 head header hr html i iframe img input label li link main mark nav ol option p path pre q s script "
    "section select small span strong style sub summary sup svg table tbody td text textarea tfoot th thead title tr "
    "tt u ul video".split()
)
_INVENTED_TAG = re.compile(r"(?:^|\n)[ \t]*<([A-Za-z][\w-]{1,40})(?: [\w-]{1,40}){0,3}>|</([A-Za-z][\w-]{1,40})>")
_MIN_WORDS_BESIDES_FORM = 2
_MIN_SHARED_WORDS = 2
"""Minimum number of content words that a clause shares with an instruction that it repeats."""

_INSTRUCTION_SIMILARITIES = ((3, 0.9), (4, 0.7), (5, 0.65))
"""Numbers of shared content words with the similarities (Dice's coefficient) that are enough."""

_ROLE_SIMILARITIES = _INSTRUCTION_SIMILARITIES[-1:]
"""The same for sentences that say who the reader is. A speaker may say so in other words."""

_MIN_ALL_WORDS, _MIN_ALL_SIMILARITY = 7, 0.8
"""Minimum number of words, and minimum similarity, if all words are compared."""

_MIN_CONTAINED_WORDS, _MIN_CONTAINED_SHARE, _MIN_CLAUSE_SHARE = 5, 0.85, 0.4
"""Minimum number and share of an instruction's words in a clause that has nearly all of them, and minimum share of the
clause that these words are.
"""

_MIN_DUTY_WORDS, _MIN_DUTY_SHARE = 3, 0.6
"""Minimum number and share of an instruction's content words in a sentence in which speakers say what they must do."""

_PAIRS_PER_WORD = 2
"""The number of pairs of characters that counts as a word in languages without spaces."""

_ROLE_WORDS = frozenset({"you", "are"})
"""Words of instructions that only say who the reader is."""

_Clause = tuple[frozenset[str], frozenset[str]]
"""A clause's words, and its content words."""

_MIN_RETOLD_WORDS, _RETOLD_RUN_LENGTH, _ADDRESSED_RUN_LENGTH = 3, 5, 4
"""Minimum numbers of content words and of consecutive words of the task in a sentence about the user as somebody else,
and of consecutive words in a sentence that takes over how the task addresses the user.
"""

_MIN_DIRECTING_KINDS = 3
"""Minimum number of kinds of phrases about messages, tasks and roles in a sentence that gives away a prompt."""

_MIN_FORM_WORDS = 3
"""Minimum number of different words for messages and for the rules of their form in a sentence about this form."""


def find_leaked_prompts(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that contain tags or instructions of prompts, chat-template markers, or unfilled placeholders.

    An instruction is recognised even if it is paraphrased. A line in which a speaker mentions the role that it plays,
    or the form that its messages should have, is yielded, too. A line that only repeats what the other speaker has
    leaked is an echo, and is not yielded.
    """
    finder = _LeakFinder(talk)
    leaked_keys: tuple[set[str], set[str]] = (set(), set())
    for place, line in enumerate(talk.lines):
        is_from_user = line.role == talk.facts.user
        known_keys = leaked_keys[not is_from_user] if talk.is_spoken else ()
        new_leaks = [leak for leak in finder.find_leaks(place) if leak.key not in known_keys]
        leaked_keys[is_from_user].update(leak.key for leak in new_leaks)
        if new_leaks and place >= talk.since:
            yield line.fault("prompt_leak", new_leaks[0].words, new_leaks[0].confidence)


class _Leak(NamedTuple):
    """Words of a prompt in a line.

    Attributes:
        key: What is leaked, such as the name of a tag, by which leaks are compared.
        words: The words of the line that show it.
        confidence: How certain it is that they are a leak.
    """

    key: str
    words: str
    confidence: float


class _LeakFinder:
    """A search for leaks in a conversation's lines, with the prompts' features that it needs computed once."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._stop = stem_words(talk.vocabulary.stop)
        self._instructions, self._instruction_numbers = _index_instructions(talk.prompts.clauses, self._stop)
        markers = "|".join(map(re.escape, talk.facts.end_markers)) or r"(?!)"
        verbs = r"(?:[Ww]rit|[Ss]a[yi]|[Tt]yp|[Ww]ord|[Ee]nd)\w*"
        self._marker_mention = re.compile(rf"\b{verbs}[^\w\n]{{1,3}}(?:with )?(?:{markers})\b")
        task = tuple(split_terms(talk.facts.task))
        self._task_words = stem_words(task) - self._stop
        self._retold_runs = set(hash_runs(task, _RETOLD_RUN_LENGTH))
        self._addressed_runs = {
            hash(task[place : place + _ADDRESSED_RUN_LENGTH])
            for place in range(len(task) - _ADDRESSED_RUN_LENGTH + 1)
            if not talk.vocabulary.addressee.isdisjoint(task[place : place + _ADDRESSED_RUN_LENGTH])
        }

    def find_leaks(self, place: int) -> Iterator[_Leak]:
        """Yield the leaks of a line, the most certain ones first."""
        talk, line = self._talk, self._talk.lines[place]
        for mark in _TEMPLATE_MARK.finditer(line.own_text):
            yield _Leak(mark[0].lower(), mark[0], 1.0)
        for tag in _TAG.finditer(line.own_text):
            if tag[1].lower() in talk.prompts.tags:
                yield _Leak(_parse_tag_name(tag[0]), line.own_text[tag.start() : tag.end() + 40].split("\n")[0], 1.0)
        for tag in _INVENTED_TAG.finditer(line.own_text):
            name = tag[1] or tag[2]
            if name.lower() not in _HTML_TAGS and name not in talk.facts.end_markers:
                yield _Leak(_parse_tag_name(tag[0]), tag[0].strip(), 0.8)
        for heading in find_headings(line.own_text):
            if heading in talk.prompts.headings:
                yield _Leak(heading, heading, 0.9)
        if is_from_user := talk.is_spoken and line.role == talk.facts.user:
            own_words = f" {normalize_words(line.own_text)} "
            for lead in sorted(talk.prompts.leads):
                if f" {lead} " in own_words:
                    yield _Leak(lead, lead, 0.9)
        for label in find_labels(line.own_text):
            names = talk.prompts.tags | talk.prompts.headings if is_from_user else frozenset[str]()
            if label in talk.prompts.labels or label in names - talk.vocabulary.fillers:
                yield _Leak(label, label, 0.9)
        terms = tuple(split_terms(line.text[:MAX_COMPARED_CHARACTERS]))
        for start, run in enumerate(hash_runs(terms)):
            if run in talk.prompts.runs:
                words = " ".join(terms[start : start + RUN_LENGTH])
                yield _Leak(words, words, 0.9)
        if talk.is_spoken:
            yield from self._find_spoken_leaks(place)

    def _find_spoken_leaks(self, place: int) -> Iterator[_Leak]:
        """Yield the leaks of a line that only lines of a conversation can have."""
        words, line = self._talk.vocabulary, self._talk.lines[place]
        is_from_user = line.role == self._talk.facts.user
        if is_from_user and (mention := self._marker_mention.search(line.own_text)):
            yield _Leak(normalize_words(mention[0]), mention[0], 0.8)
        for phrases in (words.staging, words.portraits) if is_from_user else (words.staging,):
            for phrase in phrases.finditer(normalize(line.own_text)):
                yield _Leak(phrase[0], phrase[0], 0.8)
        for sentence in split_sentences(line.own_text):
            text = normalize(sentence)
            is_about_prompt = self._rephrases_instruction(text) or self._is_about_form(text, place)
            if is_about_prompt or (
                is_from_user
                and (self._retells_task(text) or len(find_kinds(words.directing, text)) >= _MIN_DIRECTING_KINDS)
            ):
                yield _Leak(normalize_words(text), line.excerpt(), 0.7)

    def _rephrases_instruction(self, sentence: str) -> bool:
        """Return whether a sentence, or a clause of it, has nearly the words or the content words of an instruction."""
        per_word = 1 if self._talk.vocabulary.is_spaced else _PAIRS_PER_WORD
        is_duty = self._talk.vocabulary.duties.search(sentence) is not None
        for words in stem_clauses(sentence):
            clause = (words, words - self._stop)
            for number, count in Counter(
                number for word in clause[1] for number in self._instruction_numbers.get(word, ())
            ).items():
                instruction = self._instructions[number]
                if count >= _MIN_SHARED_WORDS and _is_repetition(clause, instruction, count, per_word):
                    return True
                if is_duty and count >= max(per_word * _MIN_DUTY_WORDS, _MIN_DUTY_SHARE * len(instruction[1])):
                    return True
        return False

    def _retells_task(self, sentence: str) -> bool:
        """Return whether a user's sentence takes over words of the task and speaks of the user as of somebody else."""
        words, vocabulary = tuple(split_terms(sentence)), self._talk.vocabulary
        is_plain = "?" not in sentence and vocabulary.oneself.isdisjoint(words)
        if is_plain and not self._addressed_runs.isdisjoint(hash_runs(words, _ADDRESSED_RUN_LENGTH)):
            return True
        return vocabulary.retelling.search(sentence) is not None and (
            len(self._task_words & (stem_words(words) - self._stop)) >= _MIN_RETOLD_WORDS
            or not self._retold_runs.isdisjoint(hash_runs(words, _RETOLD_RUN_LENGTH))
        )

    def _is_about_form(self, sentence: str, place: int) -> bool:
        """Return whether a sentence speaks of the form of messages with words that are new in the conversation.

        Words of the task or of the other speaker's earlier lines are not new.
        """
        vocabulary, talk = self._talk.vocabulary, self._talk
        rule_words, message_words = (
            {found[0][:STEM_LENGTH] for found in pattern.finditer(sentence)}
            for pattern in (vocabulary.rules, vocabulary.texts)
        )
        if not rule_words or len(rule_words | message_words) < _MIN_FORM_WORDS:
            return False
        role = talk.lines[place].role
        known_words = stem_words(word for line in talk.lines[:place] if line.role != role for word in line.words)
        known_words |= stem_words(split_words(talk.facts.task))
        if not vocabulary.is_spaced:
            earlier_text = normalize(
                "\n".join([talk.facts.task, *(line.text for line in talk.lines[:place] if line.role != role)])
            )
            known_words |= {word for word in rule_words | message_words if word in earlier_text}
        return bool(rule_words - known_words) and len((rule_words | message_words) - known_words) >= _MIN_FORM_WORDS


@lru_cache(maxsize=8)
def _index_instructions(
    clauses: frozenset[frozenset[str]], stop: frozenset[str]
) -> tuple[Sequence[_Clause], Mapping[str, Sequence[int]]]:
    """Return instructions with their content words, and the numbers of the instructions that have each word."""
    instructions = [(each, each - stop) for each in clauses]
    return instructions, group_pairs(
        (word, number) for number, (_, content) in enumerate(instructions) for word in content
    )


def _parse_tag_name(tag: str) -> str:
    """Return a tag's name, with the slash of a closing tag."""
    return re.sub(r"[^\w/-]", "", tag.lower().replace("&lt;", ""))


def _is_repetition(clause: _Clause, instruction: _Clause, shared: int, per_word: int) -> bool:
    """Return whether a clause, or a sentence, repeats an instruction with which it shares some content words.

    So many pairs of characters count as one word.
    """
    (words, content), (instruction_words, instruction_content) = clause, instruction
    common_count, total_count = len(words & instruction_words), len(content) + len(instruction_content)
    if min(
        len(words), len(instruction_words)
    ) >= per_word * _MIN_ALL_WORDS and 2 * common_count >= _MIN_ALL_SIMILARITY * (len(words) + len(instruction_words)):
        return True
    is_role = instruction_words >= _ROLE_WORDS
    similarities = _ROLE_SIMILARITIES if is_role else _INSTRUCTION_SIMILARITIES
    if any(
        shared >= per_word * minimum and 2 * shared >= similarity * total_count for minimum, similarity in similarities
    ):
        return True
    return not is_role and common_count >= max(
        per_word * _MIN_CONTAINED_WORDS, _MIN_CONTAINED_SHARE * len(instruction_words), _MIN_CLAUSE_SHARE * len(words)
    )


def find_unfilled_blanks(talk: Talk) -> Iterator[DialogueFault]:
    """Yield texts that consist only of a placeholder from the reply form."""
    for line in talk.checked_lines():
        if _is_copied_form(normalize_words(line.text[:400]), talk.prompts.forms):
            yield line.fault("prompt_leak", line.excerpt())


def find_copied_forms(judgements: Iterable[Judgement], prompts: PromptWords) -> Iterator[DialogueFault]:
    """Yield judgements whose explanation consists only of a placeholder from the reply form."""
    for each in judgements:
        if _is_copied_form(normalize_words(each.explanation[:400]), prompts.forms):
            about = f"{each.metric} ({each.target})" + ("" if each.turn is None else f" of turn {each.turn}")
            yield DialogueFault(role="judge", kind="copied_form", excerpt=f"{about}: {each.explanation:.80}")


def _is_copied_form(explanation: str, forms: Iterable[str]) -> bool:
    return any(
        form in explanation and len(explanation.split()) - len(form.split()) < _MIN_WORDS_BESIDES_FORM for form in forms
    )


_NAME_LABEL = re.compile(
    r"(?:^|\n)[ \t>*_]{0,4}([A-Z][\w'’-]{1,20}(?: [A-Z][\w'’-]{1,20})?)[*_]{0,3}:[*_]{0,3}\s{1,3}([^\n]*)"
)
_LETTER_LABEL = re.compile(
    r"\A(?:\s*<[^<>\n]{1,40}>)?[ \t\n>*_]{0,4}([A-Z])[*_]{0,3}:[*_]{0,3}[ \t]+((?:\S+[ \t]+){4}\S[^\n]*)"
)
"""A label of one letter before several words at the beginning of a line. Elsewhere it may be an option."""

_SPEAKER_LABEL = (
    r"(?:user|human|client|operator|system|bot|chatbot|assistant|ai(?: assistant)?|agent|representative"
    r"|(?:support|service) (?:agent|team)|customer(?: (?:service|support))?(?: (?:agent|representative|chatbot))?)"
)
_MIN_LABELLED_WORDS = 2
_MIN_SERVING_KINDS = 2
"""Minimum number of kinds of phrases of somebody who serves others in a line of a user who acts as an assistant."""


def find_glued_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines with words after a speaker's label, such as `User:` or `A:`, or after a name that both have so."""
    shared_names, speaker_label = _find_shared_names(talk), _compile_speaker_label(talk.vocabulary.speakers)
    for line in talk.checked_lines():
        for label in (*speaker_label.finditer(line.prose), *_LETTER_LABEL.finditer(line.prose)):
            is_spaced = talk.vocabulary.is_spaced or not split_units(label[2])
            if len(label[2].split() if is_spaced else split_units(label[2])) >= _MIN_LABELLED_WORDS:
                yield line.fault("glued_lines", " ".join(label[0].split()))
                break
        else:
            if (
                words := next((words for name, words in _find_named_texts(line, talk) if name in shared_names), None)
            ) is not None:
                yield line.fault("glued_lines", words, 0.7)


@cache
def _compile_speaker_label(speakers: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of a label of a speaker, in English or in words of another language, with what follows it."""
    labels = "|".join((_SPEAKER_LABEL, *sorted(speakers, reverse=True)))
    before = r"(?:^|\n|(?<=[.!?…\"”)])\s|(?<=[。！？]))[ \t>*_\-\[(]{0,4}"
    return re.compile(rf"{before}({labels})[\])*_]{{0,3}}\s?[:：][*_]{{0,3}}\s*([^\n]*)", re.IGNORECASE)


def find_swapped_roles(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines of a user who offers help or claims to be a model, and of an assistant who asks for help as users do.

    Quoted text does not count. Neither do an assistant's words within a sentence that the user's last line contains,
    as in "About I need a refund: done".
    """
    user_text = ""  # by the user, in the last line
    for place, line in enumerate(talk.lines):
        words, text = talk.vocabulary, normalize(line.own_text)
        is_from_user = line.role == talk.facts.user
        quotable, user_text = ("", text) if is_from_user else (user_text, user_text)
        if place < talk.since:
            continue
        patterns = (words.offers, words.selves) if is_from_user else (words.requests,)
        matches = (match for pattern in patterns for match in pattern.finditer(text))
        if found := next((each for each in matches if each[0] not in quotable or _is_at_sentence_start(each)), None):
            yield line.fault("swapped_role", found[0], 0.9)
        elif is_from_user and len(signs := find_kinds(words.serving, text)) >= _MIN_SERVING_KINDS:
            yield line.fault("swapped_role", ", ".join(signs.values()), 0.7)


def _is_at_sentence_start(match: re.Match[str]) -> bool:
    before = match.string[: match.start()].rstrip()
    return not before or before[-1] in ".!?"


def find_claimed_actions(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines of an assistant with tools that report an action although no tool was called before."""
    for line in talk.checked_lines() if talk.has_tools else ():
        found = talk.vocabulary.claims.search(normalize(line.own_text))
        if found and line.role != talk.facts.user and not line.is_acted:
            yield line.fault("claimed_action", found[0], 0.8)


def _find_named_texts(line: GateLine, talk: Talk) -> Iterator[tuple[str, str]]:
    """Yield each name that labels a text in the first or second person, with the labelled text."""
    for found in _NAME_LABEL.finditer(line.prose):
        if talk.vocabulary.persons & set(split_words(found[2])):
            yield found[1], " ".join(found[0].split())


def _find_shared_names(talk: Talk) -> set[str]:
    """Return the names that both speakers use as labels of text. Such a name belongs to a third person."""
    names_by_side: tuple[set[str], set[str]] = (set(), set())
    for line in talk.lines:
        names_by_side[line.role == talk.facts.user].update(name for name, _ in _find_named_texts(line, talk))
    return names_by_side[0] & names_by_side[1]
