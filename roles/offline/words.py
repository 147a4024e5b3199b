"""Templates from data files, their grammar, and English verb forms."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from .understudy import Draws

_SPACING_FIXES = (
    (re.compile(r"\s+"), " "),
    (re.compile(r"\s+([,.;:!?])"), r"\1"),
    (re.compile(r"([,;:])(?=[,;:.!?])"), ""),
    (re.compile(r"([.!?][\"”]?)\.(?=\s|$)"), r"\1"),
)
_SENTENCE_START = re.compile(
    r"(^[\"“]?|(?<![A-Z]\.[A-Z])(?<!\b[ap]\.m)(?<!\b(?:St|Mr|Dr|vs))[.!?][\"”]?\s+[\"“]?)([a-z])"
)
_SLOT_OR_TEXT = re.compile(r"\{([^}]*)\}|[^\[\]<>|{}]+")
"""A slot, or text without any mark."""
_missing_texts: ContextVar[list[str] | None] = ContextVar("unsaid", default=None)


@contextmanager
def collect_missing_texts() -> Iterator[list[str]]:
    """Collect the banks that produced no text in a `with` block, with their file and the reason.

    A bank without text is not an error in itself, because many banks exist only for some domains. The list explains an
    empty reply.
    """
    notes: list[str] = []
    token = _missing_texts.set(notes)
    try:
        yield notes
    finally:
        _missing_texts.reset(token)


def joined(items: Sequence[str], last: str = "and") -> str:
    """Join items as in prose: `a, b and c`."""
    return "".join(items) if len(items) < 2 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def tidy(text: str) -> str:
    """Normalize joined parts: single spaces, single punctuation marks, a capital at the start of each sentence."""
    for pattern, instead in _SPACING_FIXES:
        text = pattern.sub(instead, text)
    return _SENTENCE_START.sub(lambda found: found.group(1) + found.group(2).upper(), text.strip())


class Words:
    """The texts of a TOML file: tables of banks; a bank is a template or a list of templates.

    Args:
        path: The file. It is read on first use, and only once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def table(self) -> Mapping[str, Any]:
        """The whole file as parsed by tomllib.

        Raises:
            FileNotFoundError: If the file does not exist.
            tomllib.TOMLDecodeError: If it is not TOML.
        """
        return tomllib.loads(self._path.read_text(encoding="utf-8"))

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value at a dotted name ("offers.booking"): a table, list, text or number; else the default."""
        found: Any = self.table
        for step in name.split("."):
            if not isinstance(found, Mapping) or step not in found:
                return default
            found = found[step]
        return found

    def say(self, name: str, draws: Draws, slots: Mapping[str, str] | None = None) -> str:
        """Fill a template of the bank at a dotted name; empty if there is no such bank or no template can be filled."""
        bank = self.get(name, ())
        templates = [] if isinstance(bank, Mapping) else [bank] if isinstance(bank, str) else bank
        text = say(templates, draws, slots)
        if not text and (notes := _missing_texts.get()) is not None:
            notes.append(f"{self._path}: {self._wanting(name, templates, slots or {})}")
        return text

    def _wanting(self, name: str, templates: Sequence[str], slots: Mapping[str, str]) -> str:
        """Return the reason for a missing text: there is no such bank, or each template has a slot without a value."""
        if templates:
            lacking = sorted(
                {slot for each in templates for slot in _find_required_slots(_parse(each)) if not slots.get(slot)}
            )
            given = ", ".join(slot for slot, value in slots.items() if value) or "none"
            return f"{name} needs {', '.join(f'{{{slot}}}' for slot in lacking)}; the slots that are filled: {given}"
        table, _, last = name.rpartition(".")
        beside = self.get(table) if table else self.table
        if not isinstance(beside, Mapping):
            return f"there is no {table}; there are {', '.join(self.table)}"
        known = [each for each, bank in beside.items() if not isinstance(bank, Mapping)]
        where = f"in {table}" if table else "at its top level"
        return f"there is no bank {last} {where}; there are {', '.join(known) or 'none'}"


def say(templates: Sequence[str], draws: Draws, slots: Mapping[str, str] | None = None) -> str:
    """Fill and tidy the first template, in random order, whose slots are all given; else return an empty text."""
    filled = (_fill(_parse(template), slots or {}, draws) for template in draws.shuffled(templates))
    return tidy(next(filter(None, filled), ""))


def match_template(templates: Sequence[str], text: str) -> dict[str, str] | None:
    """Match a text against templates and return the slots of the first match; `None` if none matches.

    Understudies use this to recognize each other's lines. End marks and case are ignored.
    """
    tried = (_compile_template(template).fullmatch(text.strip().rstrip(".!?")) for template in templates)
    found = next(filter(None, tried), None)
    return None if found is None else {name: value for name, value in found.groupdict().items() if value}


@lru_cache(maxsize=4096)
def _compile_template(template: str) -> re.Pattern[str]:
    return re.compile("".join(map(_to_regex, _parse(template.strip().rstrip(".!?")))), re.IGNORECASE)


def _find_required_slots(pieces: Iterable[_Piece]) -> Iterator[str]:
    """Yield the slots that a template requires."""
    for piece in pieces:
        if isinstance(piece, _Slot):
            yield piece.name
        elif isinstance(piece, _Choice):
            for option in piece.options:
                yield from _find_required_slots(option)


def _to_regex(piece: _Piece) -> str:
    match piece:
        case _Slot(name):
            return f"(?P<{name}>.+?)"
        case _Optional(body):
            return f"(?:{''.join(map(_to_regex, body))})?"
        case _Choice(options):
            return f"(?:{'|'.join(''.join(map(_to_regex, option)) for option in options)})"
    return re.escape(piece)


@dataclass(frozen=True)
class _Slot:
    name: str


@dataclass(frozen=True)
class _Optional:
    body: tuple[_Piece, ...]


@dataclass(frozen=True)
class _Choice:
    options: tuple[tuple[_Piece, ...], ...]


_Piece = str | _Slot | _Optional | _Choice


@lru_cache(maxsize=8192)
def _parse(template: str) -> tuple[_Piece, ...]:
    pieces, end = _parse_sequence(template, 0, "")
    if end != len(template):
        raise ValueError(f"unbalanced brackets in the template {template!r}")
    return pieces


def _parse_sequence(text: str, at: int, stops: str) -> tuple[tuple[_Piece, ...], int]:
    pieces: list[_Piece] = []
    while at < len(text) and text[at] not in stops:
        if found := _SLOT_OR_TEXT.match(text, at):
            pieces.append(_Slot(found[1]) if found[1] else found[0])
            at = found.end()
        elif text[at] == "[":
            body, end = _parse_sequence(text, at + 1, "]")
            pieces.append(_Optional(body))
            at = end + 1
        elif text[at] == "<":
            options: list[tuple[_Piece, ...]] = []
            while text[at : at + 1] in ("<", "|"):
                option, at = _parse_sequence(text, at + 1, "|>")
                options.append(option)
            pieces.append(_Choice(tuple(options)))
            at += 1
        else:
            pieces.append(text[at])
            at += 1
    return tuple(pieces), at


def _fill(pieces: Iterable[_Piece], slots: Mapping[str, str], draws: Draws) -> str | None:
    done: list[str] = []
    for piece in pieces:
        text: str | None
        if isinstance(piece, str):
            text = piece
        elif isinstance(piece, _Slot):
            text = slots.get(piece.name) or None
        elif isinstance(piece, _Optional):
            text = _fill(piece.body, slots, draws) or ""
        else:
            fitting = (_fill(option, slots, draws) for option in draws.shuffled(piece.options))
            text = next((option for option in fitting if option is not None), None)
        if text is None:
            return None
        done.append(text)
    return "".join(done)


_IRREGULAR_THIRD_PERSONS = {
    "be": "is",
    "was": "was",
    "am": "is",
    "have": "has",
    "do": "does",
    "go": "goes",
    "cannot": "cannot",
}


@cache
def third_person(verb: str) -> str:
    """Return a verb's third person singular: `carry` -> `carries`."""
    if verb in _IRREGULAR_THIRD_PERSONS:
        return _IRREGULAR_THIRD_PERSONS[verb]
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(?:s|sh|ch|x|z)$", verb) else "s")


@cache
def ing_form(verb: str) -> str:
    """Return a verb's -ing form: `run` -> `running`."""
    if re.fullmatch(r"(?:qu|[^aeiou])*[aeiou][^aeiouwxy]|(?:be|com|for)[gm][ei]t|begin|travel", verb):
        return verb + verb[-1] + "ing"
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    return (verb[:-1] if re.search(r"[^eoy]e$", verb) else verb) + "ing"
