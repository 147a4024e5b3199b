"""Find names in prose: of authors, titles, firms and places."""

from __future__ import annotations

import re

from .lazy import Lazy
from .model import Facet
from .prose import sentences

_WORD = r"[A-ZÀ-ÞŁŚŻ0-9][\w'’.&+-]*"


_LINK = r"(?:of|the|and|de|la|le|van|von|der|du|in|a|&)"


_NAME = Lazy(
    rf"[\"“]([^\"”]{{2,60}})[\"”]|((?:[A-ZÀ-ÞŁŚŻ][\w'’.&+-]*)(?:,? {_LINK}(?: {_LINK})? {_WORD}| {_WORD}|: "
    rf"{_WORD})*)"
)


_NO_NAME = Lazy(
    r"The|User|They|He|She|It|In|On|At|Over|Past|Early|Initially|Recently|Additionally|Furthermore|Whether|During|"
    r"When|"
    r"While|As|For|Her|His|Their|This|These|Those|From|With|And|But|Also|I|If|After|Before|One|Another|Overall|"
    r"Frequently|Often|Since|Until|By|Every|Each|Before|Between|Through|Under|Among|Now|Then|Once|Only|Most|Some|"
    r"(?:EU|UK|US)(?: ?\d+)?|"
    r"Christian|English|TV|PC|AI|UK|USA?|[MTWFS][a-z]+days?|January|February|March|April|May|June|July|August|"
    r"September|October|"
    r"November|December|Spring|Summer|Fall|Autumn|Winter|[AP]M|Wi-?Fi"
)


WHOLE = frozenset(["book", "series", "favorite", "album"])  # titles: an "and" may belong to them


_NOUNS = (
    r"authors?|writers?|series|books?|titles?|novels?|actors?|directors?|artists?|bands?|albums?|teams?|brands?|"
    r"compan(?:y|ies)|genres?"
)


def mentioned(text: str) -> list[str]:
    """Find names of things in prose without cues; names of people about the house are left out as well as can be."""
    found: list[str] = []
    for part in sentences(text):
        for match in _NAME.finditer(part):
            if match.group(1):
                continue
            for name in _split_names(match.group(2), whole=False):
                before = part[: match.start()].split()[-1:] or [""]
                after = part[match.start() + part[match.start() :].find(name) + len(name) :]
                single = len(name.split()) == 1
                acts = re.match(
                    r"['’]s\b|,? (?:is|was|has|had|will|may|made|says|said|wants?|and|who|receives|\w+ed|\w+s)\b", after
                )
                person = single and (
                    not match.start() or acts or before[0].lower() in ("with", "and", "aunt", "for", "to", "of")
                )
                name = re.sub(r"['’]s?$", "", name.strip(" ,."))
                if (
                    not person
                    and len(name) > 2
                    and not any(map(_NO_NAME.fullmatch, (name.split()[0], name.split()[-1])))
                    and name not in found
                ):
                    found.append(name)
    counts = {name: len(re.findall(rf"\b{re.escape(name.split()[0])}\b", text)) for name in found}
    whose = max(re.findall(r"\b[A-ZÀ-ÞŁŚŻ]\w+\b", text), key=text.count, default="")
    ordered = sorted(found, key=lambda name: (len(name.split()) == 1, -counts[name]))
    return [name for name in ordered if name.split()[0] != whose]


def names_after(part: str, facet: Facet) -> list[str]:
    """Give the names that follow a facet's cue words in a sentence."""
    cue = re.search(rf"\b(?:{facet.cue})\b", part)
    if not cue:
        return []
    rest = part[cue.end() :]
    other = re.search(rf"\b(?:{_NOUNS})\b", rest)
    if other and not re.fullmatch(facet.cue, other.group()):
        rest = rest[: other.start()]
    return _names(rest, whole=facet.key in WHOLE)


def _names(text: str, whole: bool) -> list[str]:
    found: list[str] = []
    for match in _NAME.finditer(text):
        quoted, plain = match.groups()
        pieces = [quoted.strip(" ,.")] if quoted else _split_names(plain, whole)
        for piece in pieces:
            name = re.sub(r"['’]s?$", "", piece.strip(" ,.")) if not re.search(r"\b[A-Z]\.$", piece) else piece
            if len(name) > 2 and not _NO_NAME.fullmatch(name.split()[0]) and not name.isdigit() and name not in found:
                found.append(name)
    return found


def _split_names(text: str, whole: bool) -> list[str]:
    text = re.sub(r",\s+and\s+", ", ", text)
    pieces = [piece for piece in re.split(r",\s+", text) if piece]
    if not whole:
        pieces = [name for piece in pieces for name in re.split(r"\s+and\s+", piece)]
    return [piece for piece in pieces if piece[:1].isupper() or piece[:1].isdigit()]
