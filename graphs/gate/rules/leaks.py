"""Texts of the prompts that appear in a conversation."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.gate.prompt_words import RUN, PromptWords, normal, runs_of
from dialoom.graphs.gate.talk import Said, Talk
from dialoom.graphs.outcome import Judgement

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
_MADE_UP = re.compile(r"(?:^|\n)[ \t]*<([A-Za-z][\w-]{1,40})>|</([A-Za-z][\w-]{1,40})>")
_FEWEST_WORDS = 2


def leaked_prompts(talk: Talk) -> Iterator[DialogueFault]:
    """Yield prompts' tags and instructions, marks of chat templates, and placeholders that were never filled in."""
    for line in talk.looked_at():
        if (mark := _MARK.search(line.own)) is not None:
            yield line.fault("prompt_leak", mark[0])
        elif (tag := _tag(line, talk.prompts)) is not None:
            yield line.fault("prompt_leak", tag)
        elif (tag := _made_up_tag(line, talk.facts.end_markers)) is not None:
            yield line.fault("prompt_leak", tag, 0.8)
        elif (words := _instruction(line, talk.prompts)) is not None:
            yield line.fault("prompt_leak", words, 0.9)


def stray_markers(talk: Talk) -> Iterator[DialogueFault]:
    """Yield end markers left in a message; the marker of a proper ending is removed."""
    patterns = {
        marker: re.compile(rf"(?<![A-Za-z]){re.escape(marker)}(?![A-Za-z])") for marker in talk.facts.end_markers
    }
    for line in talk.looked_at():
        if (marker := next((each for each in patterns if patterns[each].search(line.prose)), None)) is not None:
            yield line.fault("end_marker", marker)


def unfilled_blanks(talk: Talk) -> Iterator[DialogueFault]:
    """Yield texts that are only the placeholder of the reply's form."""
    for line in talk.looked_at():
        if _gives_back(normal(line.text[:400]), talk.prompts.forms):
            yield line.fault("prompt_leak", line.shown())


def copied_forms(judgements: Iterable[Judgement], prompts: PromptWords) -> Iterator[DialogueFault]:
    """Yield judgements whose explanation is only the placeholder of the reply's form."""
    for each in judgements:
        if _gives_back(normal(each.explanation[:400]), prompts.forms):
            about = f"{each.metric} ({each.target})" + ("" if each.turn is None else f" of turn {each.turn}")
            yield DialogueFault(who="judge", kind="copied_form", words=f"{about}: {each.explanation:.80}")


def _gives_back(explanation: str, forms: Iterable[str]) -> bool:
    return any(form in explanation and len(explanation.split()) - len(form.split()) < _FEWEST_WORDS for form in forms)


def _tag(line: Said, prompts: PromptWords) -> str | None:
    names = (found for found in _TAG.finditer(line.own) if found[1].lower() in prompts.tags)
    found = next(names, None)
    return None if found is None else line.own[found.start() : found.end() + 40].split("\n")[0]


def _made_up_tag(line: Said, end_markers: Collection[str]) -> str | None:
    """Return a tag that no prompt uses, if it begins a line or is a closing tag."""
    found = (each for each in _MADE_UP.finditer(line.own) if (each[1] or each[2]).lower() not in _HTML)
    tag = next((each for each in found if (each[1] or each[2]) not in end_markers), None)
    return None if tag is None else tag[0].strip()


def _instruction(line: Said, prompts: PromptWords) -> str | None:
    places = (place for place, run in enumerate(runs_of(line.words)) if run in prompts.runs)
    return next((" ".join(line.words[place : place + RUN]) for place in places), None)
