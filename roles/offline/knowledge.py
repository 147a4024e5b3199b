"""Find preferences in prose about a person and in what the person says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from .matching import words_of
from .model import Domain, Facet
from .prose import sentences

Facts = dict[str, list[str]]

_CLOCK = re.compile(r"\b\d{1,2}(?::\d\d)?\s?(?:[AaPp]\.[Mm]\.|[AaPp][Mm]\b)|\b\d{1,2}:\d\d\b")
_WORD = r"[A-ZÀ-ÞŁŚŻ0-9][\w'’.&+-]*"
_LINK = r"(?:of|the|and|de|la|le|van|von|der|du|in|for|to|a|at|on|with|&)"
_NAME = re.compile(
    rf"[\"“]([^\"”]{{2,60}})[\"”]|((?:[A-ZÀ-ÞŁŚŻ][\w'’.&+-]*)(?:,? {_LINK}(?: {_LINK})? {_WORD}| {_WORD}|: "
    rf"{_WORD})*)"
)
_NO_NAMES = frozenset(
    ["The", "User", "They", "He", "She", "It", "In", "On", "At", "Over", "Past", "Early", "Initially", "Recently", "Additionally", "Furthermore", "Whether", "During", "When", "While", "As", "For", "Her", "His", "Their", "This", "These", "Those", "From", "With", "And", "But", "Also", "I", "If", "After", "Before", "One", "Another", "Overall", "Frequently", "Often", "Christian", "English", "TV", "PC", "AI", "UK", "US", "USA", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December", "Spring", "Summer", "Fall", "Winter", "AM", "PM", "Wi-Fi", "WiFi"]
)  # fmt: skip
_OPEN = frozenset(
    ["genre", "cuisine", "kind", "category", "sector", "sport", "sound", "playlist", "tone", "extras", "amenities", "place", "area", "days", "ambiance", "diet"]
)
_WHOLE = frozenset(["book", "series", "favorite", "album"])  # titles: an "and" may belong to them
SINGLE = frozenset(["time", "sound", "repeat", "notice", "zone", "quality", "fuel", "gender", "medium", "stops_", "days", "length", "pace", "season"])
_NOUNS = r"authors?|writers?|series|books?|titles?|novels?|actors?|directors?|artists?|bands?|albums?|teams?|brands?|compan(?:y|ies)|genres?"


def from_summary(domain: Domain, text: str) -> Facts:
    """Find what a summary of past interactions tells about a person, by facet; at most four values each."""
    found: Facts = {}
    text = re.sub(
        r"\b(?:her|his|their|the user's|a) (home|work|office|campus|residence|5 ?km)\b",
        r"\1",
        text.replace("5km", "5 km"),
    )
    text = re.sub(r"\bmoderately[- ]priced\b", "moderate", text)
    parts = sentences(text)
    for facet in domain.facets:
        values = _listed(facet, text)
        if facet.key == "time" and domain.name == "Alarm":
            values = [match.group() for match in _CLOCK.finditer(text)][:1]
        if facet.cue:
            for part in parts:
                values += [name for name in _names_after(part, facet) if name not in values]
        if values:
            found[facet.key] = values[: 1 if facet.key in SINGLE else 4]
    return found


def _listed(facet: Facet, text: str) -> list[str]:
    pattern = facet.lexicon_pattern
    if pattern is None:
        return []
    entries = {entry.lower(): entry for entry in facet.lexicon}
    found: list[str] = []
    for match in pattern.finditer(text):
        entry = entries[match.group().lower()]
        if facet.proper and not match.group()[0].isupper():
            continue
        singular = entry[:-1] if entry.endswith("s") and entry[:-1].lower() in entries else entry
        value = entries.get(singular.lower(), singular)
        if not any(_covers(known, value) for known in found):
            found = [known for known in found if not _covers(value, known)] + [value]
    return found


def _covers(longer: str, shorter: str) -> bool:
    return set(words_of(shorter)) <= set(words_of(longer))


def _names_after(part: str, facet: Facet) -> list[str]:
    cue = re.search(rf"\b(?:{facet.cue})\b", part)
    if not cue:
        return []
    rest = part[cue.end() :]
    other = re.search(rf"\b(?:{_NOUNS})\b", rest)
    if other and not re.fullmatch(facet.cue, other.group()):
        rest = rest[: other.start()]
    return _names(rest, whole=facet.key in _WHOLE)


def _names(text: str, whole: bool) -> list[str]:
    found: list[str] = []
    for match in _NAME.finditer(text):
        quoted, plain = match.groups()
        pieces = [quoted.strip(" ,.")] if quoted else _split_names(plain, whole)
        for piece in pieces:
            name = re.sub(r"['’]s?$", "", piece.strip(" ,.")) if not re.search(r"\b[A-Z]\.$", piece) else piece
            if (
                len(name) > 2
                and name.split()[0] not in _NO_NAMES | {"The user"}
                and not name.isdigit()
                and name not in found
            ):
                found.append(name)
    return found


def _split_names(text: str, whole: bool) -> list[str]:
    text = re.sub(r",\s+and\s+", ", ", text)
    pieces = [piece for piece in re.split(r",\s+", text) if piece]
    if not whole:
        pieces = [name for piece in pieces for name in re.split(r"\s+and\s+", piece)]
    return [piece for piece in pieces if piece[:1].isupper() or piece[:1].isdigit()]


_LEAD_IN = re.compile(
    r"^(?:And just so you know,|Oh, and|Also,|Besides,|And|As I said,|Like I said,|I mentioned it already:|"
    r"Once more:|Maybe you missed it:|"
    r"Actually,|Well,)\s+",
    re.IGNORECASE,
)


def from_line(domain: Domain, line: str) -> Facts:
    """Find what a person says about their preferences in one line, by facet."""
    found: Facts = {}
    for part in sentences(line.replace("TERMINATE", "")):
        if part.endswith("?"):
            continue
        part = _LEAD_IN.sub("", part)
        best: tuple[int, str, list[str]] | None = None
        for facet in domain.facets:
            for pattern, literal in _said_patterns(facet):
                match = pattern.search(part)
                values = _values_in(facet, match.group("v")) if match else []
                if values and (best is None or literal > best[0]):
                    best = (literal, facet.key, values)
        if best:
            found.setdefault(best[1], []).extend(best[2])
            continue
        for facet in domain.facets:
            values = _listed(facet, part)
            if facet.key == "time" and domain.name == "Alarm":
                values = [match.group() for match in _CLOCK.finditer(part)][:1]
            if values:
                found.setdefault(facet.key, []).extend(values)
    return found


@lru_cache(maxsize=512)
def _said_patterns_of(reveal: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], int], ...]:
    patterns = []
    for template in reveal:
        text = re.escape(template.replace("[", "<").replace("]", "|>"))
        text = text.replace("<", "(?:").replace(">", ")").replace(r"\|", "|")
        text = re.sub(r"\\\{(?:v1?|p)\\\}", "(?P<v>.+?)", text, count=1)
        literal = len(re.sub(r"\{\w+\}|<[^>]*>", "", template))
        patterns.append(
            (
                re.compile(
                    rf"(?:^|[,:] |\b(?:and|but|also|so) ){text}(?:, (?:please|though|too|if you can))?[.!]?$",
                    re.IGNORECASE,
                ),
                literal,
            )
        )
    return tuple(patterns)


def _said_patterns(facet: Facet) -> tuple[tuple[re.Pattern[str], int], ...]:
    return _said_patterns_of(facet.reveal)


def _values_in(facet: Facet, text: str) -> list[str]:
    """Take the values out of a phrase; nothing when the phrase cannot be of this facet."""
    text = text.strip(" .,!")
    if len(text) > 90 or re.search(r"\b(?:I|you|it's|that's)\b|^(?:to|that|it|this|them|some help|something)\b", text):
        return []
    back = {phrase.lower(): value for value, phrase in facet.say.items()}
    pieces = [text] if facet.key in _WHOLE else [piece for piece in re.split(r",\s+|\s+(?:and|or)\s+", text) if piece]
    known = {entry.lower(): entry for entry in facet.lexicon}
    before, _, after = facet.frame.partition("{v}")
    values = []
    for piece in pieces:
        value = back.get(piece.lower(), piece)
        value = value.removeprefix(before).removesuffix(after)
        value = re.sub(r"^(?:an? |the )", "", value) if before.strip() in ("a", "an") else value
        values.append(known.get(value.lower(), value))
    if facet.proper:
        return (
            values
            if all(
                value[:1].isupper() or value[:1].isdigit() or value.lower() in known or _common(facet, value)
                for value in values
            )
            else []
        )
    fits = [value.lower() in known or value.lower() in facet.say for value in values]
    if any(
        value[:1].isupper() and not ok and facet.key not in ("cuisine", "playlist")
        for value, ok in zip(values, fits, strict=True)
    ):
        return []
    return values if any(fits) or facet.key in _OPEN else []


def _common(facet: Facet, value: str) -> bool:
    """Tell whether a value is a kind of company or brand ("local artisans") rather than a name."""
    return facet.key in ("company", "brand", "chain") and " " in value


def merged(said: Mapping[str, list[str]], remembered: Mapping[str, list[str]]) -> Facts:
    """Join what was said with what is remembered; what was said stands first and replaces single choices."""
    both: Facts = {}
    for key in [*said, *(key for key in remembered if key not in said)]:
        values = list(said.get(key) or remembered.get(key) or [])
        both[key] = list(dict.fromkeys(values))[:3]
    return both
