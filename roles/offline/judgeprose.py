"""Naturalness and coherence, from lengths, repetition, stock phrases and how lines answer each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from .evidence import quoted
from .lazy import Lazy
from .matching import content_words, overlap
from .prose import sentences
from .tags import Line

_STOCK = Lazy(
    r"There are (?:many|several|plenty|lots)|It depends on|I can (?:help|assist) you|Thank you for (?:your "
    r"request|the information|chatting)|"
    r"feel free to ask|I hope this helps|important to|is always a|Please let me know|more information "
    r"online|Noted\.|Here is some information",
    re.IGNORECASE,
)
_LIVELY = Lazy(r"['’](?:ve|d|ll|m|re|s)\b|\b(?:oh|hm|well|hey|lovely|great|gladly|love|nice)\b|!", re.IGNORECASE)


def _mine(lines: Sequence[Line], target: str) -> list[str]:
    return [line.text for line in lines if line.speaker == target]


def _repeated(texts: Sequence[str]) -> str:
    seen: set[str] = set()
    for text in texts:
        for part in sentences(text):
            key = part.lower().strip(" .!")
            if len(key.split()) > 3 and key in seen:
                return part
            seen.add(key)
    return ""


def naturalness(lines: Sequence[Line], target: str, crude: bool) -> tuple[int, str]:
    """Score how human one side sounds, 1 to 5."""
    texts = _mine(lines, target)
    if not texts:
        return 3, f"The {target} says nothing, so there is little to hear."
    stock = [found.group() for text in texts for found in _STOCK.finditer(text)]
    repeated = _repeated(texts)
    if crude:
        rough = 4 - (len(stock) > 1) - bool(repeated) + (not stock and len(texts) > 2)
        return max(1, rough), f"{len(stock)} stock phrases, {'a' if repeated else 'no'} repeated sentence."
    lengths = [len(text.split()) for text in texts]
    lively = sum(bool(_LIVELY.search(text)) for text in texts) / len(texts)
    value = 5.0
    notes: list[str] = []
    if stock:
        value -= min(1.6, 0.5 * len(stock))
        notes.append(f"stock phrases such as {quoted(stock[0])}")
    if repeated:
        value -= 0.8
        notes.append(f"it repeats {quoted(repeated, 8)}")
    if lively < 0.7:
        value -= 0.6
        notes.append("some lines are stiff")
    if max(lengths) > 60 or (len(lengths) > 2 and max(lengths) - min(lengths) < 3):
        value -= 0.6
        notes.append("the rhythm of the lines is uneven or mechanical")
    if sum(text.count(": ") for text in texts) > len(texts):
        value -= 0.5
        notes.append(f"lists and colons make it sound written, as in {quoted(texts[0], 8)}")
    why = "; ".join(notes) if notes else f"it talks like a person, as in {quoted(texts[-1], 9)}"
    return max(1, min(5, round(value))), f"For the {target}: {why}."


def coherence(lines: Sequence[Line], target: str, crude: bool) -> tuple[int, str]:
    """Score how well one side's lines follow from what came before, 1 to 5."""
    texts = _mine(lines, target)
    if not texts:
        return 3, f"The {target} says nothing to judge."
    repeated = _repeated(texts)
    loose: list[str] = []
    questions = answered = 0
    for before, line in pairwise(lines):
        if line.speaker != target:
            continue
        earlier = before.text
        last = line is lines[-1] or line is lines[-2]
        if (
            not last
            and len(content_words(earlier)) > 4
            and overlap(earlier, line.text) == 0.0
            and len(content_words(line.text)) > 5
        ):
            loose.append(line.text)
        if "?" in earlier:
            questions += 1
            answered += bool(overlap(earlier, line.text)) or bool(
                re.match(r"(?:yes|no|sure|yep|to |i)", line.text, re.IGNORECASE)
            )
    if crude:
        rough = 5 - bool(repeated) - (len(loose) > 1) - (len(texts) < 2)
        return max(1, rough), f"{len(loose)} lines share no word with the line before."
    value = 5.0 - (1.2 if repeated else 0) - min(2.0, 2.0 * len(loose) / max(1, len(texts) - 1))
    notes = [f"it repeats {quoted(repeated, 8)}"] if repeated else []
    if loose:
        notes.append(f"{quoted(loose[0], 9)} does not pick up what came before")
    if questions and answered < questions / 2:
        value -= 0.7
        notes.append("a question goes unanswered")
    if lines and lines[-1].speaker == target and lines[-1].text.endswith("?"):
        value -= 0.5
        notes.append("it ends on an open question")
    why = "; ".join(notes) if notes else f"each line follows from the last, up to {quoted(texts[-1], 9)}"
    return max(1, min(5, round(value))), f"For the {target}: {why}."
