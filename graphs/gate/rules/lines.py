"""Faults of single lines: empty, cut off, or in another language."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.gate.vocabulary import Vocabulary, commonest_words, script_of, vocabularies, words_of

_LETTERS = 2_000
"""The number of letters from which a line's script and language are derived."""

_SENTENCE_END = re.compile(r"[.!?…。！？][\"”'’»)\]*_]*(?=\s|$)")
_BARE_ITEM = re.compile(r"(?:^|\n)[^\S\n]*(?:[-*•]|\d{1,3}[.)])\s*\Z")
_OPEN = re.compile(r"[,;(\[{“«—–/&+-]\Z|(?<=\s)\"\Z")
_FEWEST_LEFT, _FEWEST_IN_ONE, _FEWEST_IN_ALL, _LONG = 3, 8, 20, 14


def empty_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines without a letter, a digit or a symbol such as an emoji."""
    for line in talk.looked_at():
        if not any(letter.isalnum() or unicodedata.category(letter) == "So" for letter in set(line.text)):
            yield line.fault("empty_line", line.shown())


def cut_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that are cut off, by the provider's finish reason or by their ending."""
    for line in talk.looked_at():
        if line.is_cut:
            yield line.fault("cut_line", "…" + line.shown(max(0, len(line.text) - 80)))
        elif sureness := _breaks_off(line.text.rstrip(), talk.vocabulary):
            yield line.fault("cut_line", "…" + line.shown(max(0, len(line.text.rstrip()) - 80)), sureness)


def foreign_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines in another language than the conversation's; names, titles and single words do not count."""
    if not talk.facts.languages:
        return
    ours = [each for code, each in vocabularies().items() if code in talk.facts.languages]
    for line in talk.looked_at() if ours else ():
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
