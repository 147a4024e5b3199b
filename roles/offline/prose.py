"""Clean English: lists, articles, capitals and punctuation of sentences put together from parts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .lazy import Lazy

_VOWEL_SOUND = (
    r"(?:[aeioAEIO]|u(?!ni|se|su|k)|U(?!n?i|se|K)|(?:RPG|SUV|FPS|MMO|SMS|NBA|R&B|HBO|X)|8|11\b|11:|18\b|hour|honest)"
)
_CONSONANT_SOUND = r"(?:one|once|eu|Eu|uni|use|usu|UK)"
_AN = Lazy(rf"\b(a|A) (?={_VOWEL_SOUND})(?!{_CONSONANT_SOUND})")
_A = Lazy(rf"\b(a|A)n (?!{_VOWEL_SOUND})(?=[\w\"“])|\b(a|A)n (?={_CONSONANT_SOUND})")


def joined(items: Sequence[str], last: str = "and") -> str:
    """Join items as one says them: `a, b and c`."""
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def capitalised(text: str) -> str:
    """Raise the first letter and leave the rest alone."""
    return text[:1].upper() + text[1:]


def uncapitalised(text: str) -> str:
    """Lower the first letter of a sentence, unless it opens with `I`, a name or an abbreviation."""
    if re.match(r"(?:I\b|I['’]|[A-Z]{2}|[A-Z]\w*\.[A-Z])", text):
        return text
    return text[:1].lower() + text[1:]


def tidy(text: str) -> str:
    """Repair the seams: spaces, doubled marks, `a`/`an`, capitals after a full stop."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s+([,.;:!?])", r"\1", text)
    text = re.sub(r",\s*,+", ",", text)
    text = re.sub(r",\s*([.!?])", r"\1", text)
    text = re.sub(r"([!?])\.(?=\s|$)", r"\1", text)
    text = re.sub(r"(?<!\.)\.\.(?=\s|$)", ".", text)
    text = re.sub(r"([.!?][\"”])\.", r"\1", text)
    text = _AN.sub(r"\1n ", text)
    text = _A.sub(lambda found: f"{found.group(1) or found.group(2)} ", text)
    return re.sub(
        r"(^|(?<![A-Z])(?<!\bSt)(?<!\bMr)(?<!\bDr)[.!?]\s+)([a-z])",
        lambda found: found.group(1) + found.group(2).upper(),
        text,
    )


def sentence(text: str, mark: str = ".") -> str:
    """Make one clause a sentence: capital first, one mark at the end."""
    text = text.strip().rstrip(",;:")
    return capitalised(text) + ("" if not text or text[-1] in ".!?" else mark)


def sentences(text: str) -> list[str]:
    """Split prose into sentences; initials and usual abbreviations do not end one."""
    pieces = re.split(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!Mr\.)(?<!St\.)(?<!Dr\.)(?<!vs\.)(?<!e\.g\.)[\"”]?\s+", text.strip())
    return [piece.strip() for piece in pieces if piece.strip()]
