"""The rules about roles and prompts: words of a prompt in a line, and lines that only the other speaker would say."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from dialoom.graphs.gate.talk import (
    RUN,
    GateLine,
    PromptWords,
    Talk,
    headings_of,
    normal,
    parts_of,
    runs_of,
    sentences_of,
    spelt,
    stems,
    words_of,
)
from dialoom.graphs.outcome import DialogueFault, Judgement

_TAG = re.compile(r"(?:<|&lt;)\s{0,3}/?\s{0,3}([A-Za-z][\w-]{0,40})")
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
    "a b blockquote body br code div em h1 h2 h3 h4 hr html i img li mark ol p pre s small span strong sub sup table "
    "td th tr u ul".split()
)
_MADE_UP = re.compile(r"(?:^|\n)[ \t]*<([A-Za-z][\w-]{1,40})(?: [\w-]{1,40}){0,3}>|</([A-Za-z][\w-]{1,40})>")
_FEWEST_BESIDE = 2
_FEWEST_OF_INSTRUCTION, _LIKE_INSTRUCTION = 5, 0.65
"""Minimum number of content words, and minimum similarity (Dice's coefficient), of a sentence that repeats an
instruction.
"""

_FEWEST_OF_ALL, _LIKE_ALL = 7, 0.8
"""The same, with all words compared."""

_RETOLD = 5
"""Minimum number of consecutive words of the task in a sentence about the user as somebody else."""


def leaked_prompts(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that contain tags or instructions of prompts, chat-template markers, or unfilled placeholders.

    An instruction is recognised even if it is paraphrased. A line in which a speaker mentions the role that it plays is
    yielded, too.
    """
    stop, retold = stems(talk.vocabulary.stop), set(runs_of(tuple(words_of(talk.facts.task)), _RETOLD))
    instructions = [(each, each - stop) for each in talk.prompts.sentences]
    for line in talk.checked_lines():
        if (mark := _MARK.search(line.own)) is not None:
            yield line.fault("prompt_leak", mark[0])
        elif (tag := _tag(line, talk.prompts)) is not None:
            yield line.fault("prompt_leak", tag)
        elif (tag := _made_up_tag(line, talk.facts.end_markers)) is not None:
            yield line.fault("prompt_leak", tag, 0.8)
        elif heading := next((each for each in headings_of(line.own) if each in talk.prompts.headings), ""):
            yield line.fault("prompt_leak", heading, 0.9)
        elif (words := _instruction(line, talk.prompts)) is not None:
            yield line.fault("prompt_leak", words, 0.9)
        elif talk.is_spoken and (staging := _staging(line, talk)) is not None:
            yield line.fault("prompt_leak", staging[0], 0.8)
        elif talk.is_spoken and (_rephrases(line, instructions, stop) or _retells(line, retold, talk)):
            yield line.fault("prompt_leak", line.shown(), 0.7)


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


def _tag(line: GateLine, prompts: PromptWords) -> str | None:
    names = (found for found in _TAG.finditer(line.own) if found[1].lower() in prompts.tags)
    found = next(names, None)
    return None if found is None else line.own[found.start() : found.end() + 40].split("\n")[0]


def _made_up_tag(line: GateLine, end_markers: Collection[str]) -> str | None:
    """Return a line's first tag that is not HTML or an end marker, and begins a paragraph or is a closing tag."""
    found = (each for each in _MADE_UP.finditer(line.own) if (each[1] or each[2]).lower() not in _HTML)
    tag = next((each for each in found if (each[1] or each[2]) not in end_markers), None)
    return None if tag is None else tag[0].strip()


def _staging(line: GateLine, talk: Talk) -> re.Match[str] | None:
    """Return the phrase by which a line speaks of its speaker's role, or describes a user from outside."""
    words, text = talk.vocabulary, spelt(line.own)
    return words.staging.search(text) or (words.portraits.search(text) if line.role == talk.facts.user else None)


def _rephrases(
    line: GateLine, instructions: Sequence[tuple[frozenset[str], frozenset[str]]], stop: frozenset[str]
) -> bool:
    """Return whether a sentence of a line has nearly the words, or the content words, of an instruction.

    Each instruction is given by its words and its content words.
    """
    sentences = [(each, each - stop) for each in sentences_of(line.own) if len(each) >= _FEWEST_OF_INSTRUCTION]
    return any(
        _resembles(words, all_words, _FEWEST_OF_ALL, _LIKE_ALL)
        or _resembles(content, content_words, _FEWEST_OF_INSTRUCTION, _LIKE_INSTRUCTION)
        for words, content in sentences
        for all_words, content_words in instructions
    )


def _resembles(one: frozenset[str], other: frozenset[str], fewest: int, like: float) -> bool:
    """Return whether two sentences of at least `fewest` words have most words in common."""
    return min(len(one), len(other)) >= fewest and 2 * len(one & other) >= like * (len(one) + len(other))


def _retells(line: GateLine, retold: set[int], talk: Talk) -> bool:
    """Return whether a sentence of a user takes over words of the task and speaks of the user as of somebody else."""
    return line.role == talk.facts.user and any(
        talk.vocabulary.retelling.search(sentence)
        and not retold.isdisjoint(runs_of(tuple(words_of(sentence)), _RETOLD))
        for sentence in map(spelt, parts_of(line.own))
    )


def _instruction(line: GateLine, prompts: PromptWords) -> str | None:
    places = (place for place, run in enumerate(runs_of(line.words)) if run in prompts.runs)
    return next((" ".join(line.words[place : place + RUN]) for place in places), None)


_NAMED = re.compile(
    r"(?:^|\n)[ \t>*_]{0,4}([A-Z][\w'’-]{1,20}(?: [A-Z][\w'’-]{1,20})?)[*_]{0,3}:[*_]{0,3}[ \t]+([^\n]*)"
)
_LABEL = r"(?:user|human|customer|assistant|ai(?: assistant)?|bot|chatbot|system)"
_SPOKEN_BY = re.compile(
    rf"(?:^|\n|(?<=[.!?…\"”)])\s)[ \t>*_\-\[(]{{0,4}}({_LABEL})[\])*_]{{0,3}}\s?:[*_]{{0,3}}\s*([^\n]*)", re.IGNORECASE
)
_FEWEST_OF_LINE = 2


def glued_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines with words after a speaker's label, such as `User:`, or after a name that both use as a label."""
    both = _names_with_both(talk)
    for line in talk.checked_lines():
        for label in _SPOKEN_BY.finditer(line.prose):
            if len(label[2].split()) >= _FEWEST_OF_LINE:
                yield line.fault("glued_lines", " ".join(label[0].split()))
                break
        else:
            if (words := next((words for name, words in _named(line, talk) if name in both), None)) is not None:
                yield line.fault("glued_lines", words, 0.7)


def swapped_roles(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines of a user who offers help or claims to be a model, and of an assistant who asks for help as users do.

    Quoted text does not count.
    """
    for line in talk.checked_lines():
        words, text = talk.vocabulary, spelt(line.own)
        patterns = (words.offers, words.selves) if line.role == talk.facts.user else (words.requests,)
        if found := next(filter(None, (pattern.search(text) for pattern in patterns)), None):
            yield line.fault("swapped_role", found[0], 0.9)


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
