"""Find preferences in prose about a person and in what the person says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from .lazy import Lazy
from .matching import words_of
from .model import Domain, Facet
from .names import WHOLE, mentioned, names_after
from .prose import sentences

Facts = dict[str, list[str]]

_CLOCK = Lazy(r"\b\d{1,2}(?::\d\d)?\s?(?:[AaPp]\.[Mm]\.|[AaPp][Mm]\b)|\b\d{1,2}:\d\d\b")
_OPEN = frozenset(
    [
        "service",
        "quality",
        "delivery",
        "size",
        "gearbox",
        "exercise",
        "habit",
        "language",
        "moment",
        "style",
        "goal",
        "alert",
        "snooze",
        "hours",
        "genre",
        "cuisine",
        "kind",
        "category",
        "sector",
        "sport",
        "sound",
        "playlist",
        "tone",
        "extras",
        "amenities",
        "place",
        "area",
        "days",
        "ambiance",
        "diet",
    ]
)
SINGLE = frozenset(
    [
        "time",
        "sound",
        "repeat",
        "notice",
        "zone",
        "quality",
        "fuel",
        "gender",
        "medium",
        "stops_",
        "days",
        "length",
        "pace",
        "season",
    ]
)


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
        if facet.heads and len(values) < 2:
            values = [*_headed(facet, text), *values]
        if facet.key == "time" and domain.name == "Alarm":
            values = [match.group() for match in _CLOCK.finditer(text)][:1]
        if facet.cue:
            for part in parts:
                values += [name for name in names_after(part, facet) if name not in values]
        if values:
            found[facet.key] = _widest(values)[: 1 if facet.key in SINGLE else 4]
    main = _MAIN_NAMES.get(domain.name, "")
    if main and not any(found.get(facet.key) for facet in domain.facets if facet.proper):
        names = mentioned(text)
        if names:
            found[main] = names[:3]
    return found


# The facet that names without any cue most likely belong to.
_MAIN_NAMES = {
    "Buses": "company",
    "Train": "company",
    "Finance": "bank",
    "Shopping": "store",
    "Events": "venue",
    "Rental Cars": "company",
    "Media": "platform",
    "Travel": "list",
    "Flights": "airline",
    "Movies": "people",
    "Sports": "team",
    "Music": "artist",
    "Games": "favorite",
    "Books": "mention",
}
_MODIFIES_NOTHING = Lazy(
    r"^(?:(?:the|a|an|his|her|their|its|of|and|or|with|for|in|on|to|by|from|as|at|is|are|was|were|has|had|that|this|"
    r"these|new|"
    r"some|any|all|more|most|other|such|reading|browsing|personal|past|purchase|user's|every|each|only|into|like|"
    r"than|but|who|"
    r"which|when|while|one|two|three|first|last|best|same|own|over|about|wants?|likes?|loves?|prefers?|follows?|"
    r"watches|reads|"
    r"hates|never|always|also|then|so|if|no) )+",
    re.IGNORECASE,
)


# Words that keep their capital: peoples, languages, places, abbreviations.
_ORIGIN = Lazy(r"[A-ZÀ-Þ]\w*(?:an|ese|ish|lsh|kh|bo|ker|ic|iac)\b|[A-Z]{2}|[A-Z]-")


def _headed(facet: Facet, text: str) -> list[str]:
    """Find phrases that end in one of a facet's nouns, with the word that describes it."""
    found: list[str] = []
    for match in re.finditer(
        r"\b(?:" + facet.heads.replace(r"(?:\w+ )?", r"(?:[\w'-]+ )?") + r")\b", text, re.IGNORECASE
    ):
        phrase = match.group() if facet.key in ("diet", "notice") else _MODIFIES_NOTHING.sub("", match.group())
        starts = match.start() == 0 or text[: match.start()].rstrip().endswith((".", "?", "!", ":"))
        if starts and not _ORIGIN.match(phrase):
            phrase = phrase[:1].lower() + phrase[1:]
        if phrase and not any(_covers(known, phrase) for known in found):
            found = [known for known in found if not _covers(phrase, known)] + [phrase]
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


def _widest(values: list[str]) -> list[str]:
    """Drop values that a longer one says as well."""
    unique = list(dict.fromkeys(values))
    return [value for value in unique if not any(value != other and _covers(other, value) for other in unique)]


def _covers(longer: str, shorter: str) -> bool:
    return set(words_of(shorter)) <= set(words_of(longer))


_FREELY = Lazy(
    r"^(?:as for|about|when it comes to) "
    r"(?P<noun>(?:the|what) [\w' -]+?)(?:,|:) (?P<v>.+?)(?:, please| is best)?[.!]?$",
    re.IGNORECASE,
)
_LEAD_IN = Lazy(
    r"^(?:And just so you know,|Oh, and|Also,|Besides,|And|As I said,|Like I said,|I mentioned it already:|"
    r"Once more:|Maybe you missed it:|"
    r"Actually,|Well,|I should have said:|One more thing, if it can still be changed:|Sorry, I forgot to say:|"
    r"Before I forget:|I ought to have told you:)\s+",
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
            free = _FREELY.search(part)
            if free and free.group("noun").lower() == (facet.noun or f"the {facet.key}"):
                best = (99, facet.key, [free.group("v")])
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


_OPENS = Lazy(r"(?:An?|The|At|In|On|With|After|Before|While|During|Under|Up|No|Any|One|Two|Three|Near|Around|By)\b")


def _values_in(facet: Facet, text: str) -> list[str]:
    """Take the values out of a phrase; nothing when the phrase cannot be of this facet."""
    text = text.strip(" .,!")
    if _OPENS.match(text):  # at the start of a sentence
        text = text[0].lower() + text[1:]
    if len(text) > 90 or re.search(
        r"\b(?:I|you|it's|that's)\b|^(?:to|that|it|this|them|some help|something|[Nn]ext)\b", text
    ):
        return []
    back = {phrase.lower(): value for value, phrase in facet.say.items()}
    whole = facet.key in WHOLE or (facet.shape and not _all_known(facet, text))
    pieces = [text] if whole else [piece for piece in re.split(r",\s+|\s+(?:and|or)\s+", text) if piece]
    known = {entry.lower(): entry for entry in facet.lexicon}
    before, _, after = facet.frame.partition("{v}")
    values = []
    for piece in pieces:
        value = back.get(piece.lower(), piece)
        value = value.removeprefix(before).removesuffix(after)
        value = re.sub(r"^(?:an? |the )", "", value) if before.strip() in ("a", "an") else value
        value = re.sub(r"^my ", "your ", value)
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
    return values if any(fits) or facet.key in _OPEN or facet.shape else []


def _all_known(facet: Facet, text: str) -> bool:
    """Tell whether a phrase lists nothing but common values, so that it may be taken apart."""
    pieces = [piece for piece in re.split(r",\s+|\s+(?:and|or)\s+", text) if piece]
    before, _, after = facet.frame.partition("{v}")
    back = {phrase.lower() for phrase in facet.say.values()}
    bare = [piece.removeprefix(before).removesuffix(after).lower() for piece in pieces]
    return all(piece in facet.entries or piece in facet.say or piece in back for piece in bare)


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
