"""Rules for single lines, for texts of prompts in a conversation, and for a conversation's opening and end."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from dialoom.graphs.gate.talk import Said, Talk
from dialoom.graphs.gate.vocabulary import (
    RUN,
    PromptWords,
    Vocabulary,
    commonest_words,
    normal,
    runs_of,
    script_of,
    spelt,
    vocabularies,
    words_of,
)
from dialoom.graphs.outcome import DialogueFault, Judgement

_LETTERS = 2_000
"""The number of letters from which a line's script and language are derived."""

_SENTENCE_END = re.compile(r"[.!?…。！？][\"”'’»)\]*_]*(?=\s|$)")
_BARE_ITEM = re.compile(r"(?:^|\n)[^\S\n]*(?:[-*•]|\d{1,3}[.)])\s*\Z")
_OPEN = re.compile(r"[,;(\[{“«—–/&+-]\Z|(?<=\s)\"\Z")
_FEWEST_LEFT, _FEWEST_IN_ONE, _FEWEST_IN_ALL, _LONG = 3, 8, 20, 14


def empty_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines without a letter, a digit or a symbol such as an emoji."""
    for line in talk.checked_lines():
        if not any(letter.isalnum() or unicodedata.category(letter) == "So" for letter in set(line.text)):
            yield line.fault("empty_line", line.shown())


def cut_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that are cut off, by the provider's finish reason or by their ending."""
    for line in talk.checked_lines():
        if line.is_cut:
            yield line.fault("cut_line", "…" + line.shown(max(0, len(line.text) - 80)))
        elif sureness := _breaks_off(line.text.rstrip(), talk.vocabulary):
            yield line.fault("cut_line", "…" + line.shown(max(0, len(line.text.rstrip()) - 80)), sureness)


def foreign_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines in another language than the conversation's; names, titles and single words do not count."""
    if not talk.facts.languages:
        return
    ours = [each for code, each in vocabularies().items() if code in talk.facts.languages]
    for line in talk.checked_lines() if ours else ():
        text = line.own[:_LETTERS]
        if sureness := _is_foreign(text, ours):
            yield line.fault("other_language", line.shown(), sureness)


def _breaks_off(text: str, language: Vocabulary) -> float:
    """Return the confidence that a text is cut off."""
    if not any(map(str.isalnum, text[-2_000:])):
        return 0.0
    if text.count("```") % 2 or _BARE_ITEM.search(text[-40:]):
        return 0.9
    words = words_of(text[-60:])
    last_word = words[-1] if words and text[-1].isalpha() else ""
    if _OPEN.search(text[-3:]) or last_word in language.unfinished:
        return 0.9
    if last_word in language.trailing and text[0].isupper() and len(words) >= _FEWEST_IN_ONE:
        return 0.6
    return 0.6 if text[-1].isalpha() and _lacks_its_end(text[-2_000:]) else 0.0


def _lacks_its_end(text: str) -> bool:
    """Return whether a long text that uses full stops lacks the last one."""
    *before, left = _SENTENCE_END.split(text.rsplit("\n", 1)[-1])
    if before:
        return len(left.split()) >= _FEWEST_LEFT and len(text.split()) >= _FEWEST_IN_ALL
    return "\n" not in text and text[0].isupper() and "," in text and len(left.split()) >= _LONG


def _is_foreign(text: str, ours: list[Vocabulary]) -> float:
    if _is_of_another_script(text, ours):
        return 1.0
    words = words_of(text)
    hits = commonest_words(words)
    mine = {each.code for each in ours}
    own = max(hits[code] for code in mine)
    best = max((count for code, count in hits.items() if code not in mine), default=0)
    return 0.9 if best >= 3 and best >= 2 * own and best >= 0.2 * len(words) else 0.0


def _is_of_another_script(text: str, ours: list[Vocabulary]) -> bool:
    known = frozenset[str]().union(*(each.scripts for each in ours))
    if text.isascii() and "LATIN" in known:
        return False
    letters = [letter for letter in text if letter.isalpha()]
    scripts = Counter("LATIN" if letter < "ɐ" else script_of(letter) for letter in letters)
    other = sum(count for script, count in scripts.items() if script not in known)
    return other >= 4 and other > len(letters) / 2


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
_FEWEST_BESIDE = 2


def leaked_prompts(talk: Talk) -> Iterator[DialogueFault]:
    """Yield prompts' tags and instructions, marks of chat templates, and placeholders that were never filled in."""
    for line in talk.checked_lines():
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
    for line in talk.checked_lines():
        if (marker := next((each for each in patterns if patterns[each].search(line.prose)), None)) is not None:
            yield line.fault("end_marker", marker)


def unfilled_blanks(talk: Talk) -> Iterator[DialogueFault]:
    """Yield texts that are only the placeholder of the reply's form."""
    for line in talk.checked_lines():
        if _gives_back(normal(line.text[:400]), talk.prompts.forms):
            yield line.fault("prompt_leak", line.shown())


def copied_forms(judgements: Iterable[Judgement], prompts: PromptWords) -> Iterator[DialogueFault]:
    """Yield judgements whose explanation is only the placeholder of the reply's form."""
    for each in judgements:
        if _gives_back(normal(each.explanation[:400]), prompts.forms):
            about = f"{each.metric} ({each.target})" + ("" if each.turn is None else f" of turn {each.turn}")
            yield DialogueFault(who="judge", kind="copied_form", words=f"{about}: {each.explanation:.80}")


def _gives_back(explanation: str, forms: Iterable[str]) -> bool:
    return any(form in explanation and len(explanation.split()) - len(form.split()) < _FEWEST_BESIDE for form in forms)


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


_STEM = 5
"""Words that share this many first letters are treated as forms of one word."""

_LAST, _FAREWELLS = 6, 2
_FEW = 3
_EARLY = 2
"""An end after at most this many lines of the user is early."""


def early_preferences(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the opening reveals what it must keep back, beyond the task itself."""
    facts = talk.facts
    if talk.since or not talk.lines or not facts.kept_back:
        return
    opening, stop = talk.lines[0], talk.vocabulary.stop
    if opening.role != facts.user:
        return
    told = _stems(opening.words) - _stems(words_of(facts.task))
    kept = [item for text in facts.kept_back for item in text.split(",")]
    shown = [item.strip() for item in kept if _is_told(_stems(words_of(item)) - _stems(stop), told)]
    stated = talk.vocabulary.likes.search(spelt(opening.own))
    if stated is not None and not talk.vocabulary.likes.search(spelt(facts.task)):
        yield opening.fault("early_preferences", stated[0], 0.9 if shown else 0.7)
    elif any(len(words_of(item)) > 1 for item in shown) or len(shown) > 1:
        yield opening.fault("early_preferences", ", ".join(shown), 0.8)


def early_ends(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the user ends a conversation before anything of the task was answered, asked about or done."""
    facts = talk.facts
    if not facts.user_ends or talk.ended_by != facts.user_ends:
        return
    users = [place for place, line in enumerate(talk.lines) if line.role == facts.user]
    if not users or len(users) > _EARLY:
        return
    last = talk.lines[users[-1]]
    before = [line for line in talk.lines[: users[-1]] if line.role != facts.user]
    if not any(_touches(line, talk) for line in before) or _leaves_unanswered(before, last, talk):
        yield last.fault("early_end", last.shown(), 0.8)


def endless_goodbyes(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the user says goodbye repeatedly until the limit ends the conversation."""
    facts = talk.facts
    if not facts.limit or talk.ended_by != facts.limit:
        return
    lines = [line for line in talk.lines if line.role == facts.user][-_LAST:]
    farewells = [line for line in lines if _is_farewell(line, talk)]
    if len(farewells) >= _FAREWELLS:
        yield farewells[0].fault("no_end", farewells[0].shown(), 0.9)


def _is_farewell(line: Said, talk: Talk) -> bool:
    """Return whether a line is a goodbye with hardly any other content."""
    words, text = talk.vocabulary, spelt(line.own)
    rest = set(words_of(words.closings.sub(" ", text))) - words.stop
    return words.closings.search(text) is not None and "?" not in text and len(rest) < _FEW


def _touches(line: Said, talk: Talk) -> bool:
    """Return whether a line is more than a greeting: it has content, or says that something was done."""
    words = talk.vocabulary
    return bool(set(line.words) - words.stop - words.fillers) or words.dealt.search(spelt(line.own)) is not None


def _leaves_unanswered(before: list[Said], last: Said, talk: Talk) -> bool:
    """Return whether the user ends the conversation instead of answering a question that blocks the task."""
    words = talk.vocabulary
    if any(words.dealt.search(spelt(line.own)) for line in before):
        return False
    question = spelt(before[-1].own[-300:])
    asked = question.rstrip("\"'”) ").endswith("?") and words.asks.search(_last_sentence(question)) is not None
    return asked and _is_farewell(last, talk)


def _last_sentence(text: str) -> str:
    return text.rstrip("?!. \"'”)").replace("!", ".").replace("?", ".").rpartition(". ")[2]


def _is_told(item: set[str], told: set[str]) -> bool:
    return bool(item) and item <= told


def _stems(words: Iterable[str]) -> set[str]:
    return {word[:_STEM] for word in words}
