"""Parsing of the requests of APOLLO's agent: the user, past sessions, notes, the query, and tool outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from dialoom.personas.apollo.flows import FLOWS, Preference, Resident
from dialoom.personas.apollo.source.asking import day_phrases
from dialoom.personas.apollo.source.sessions import NUMBERS, REQUESTS, read_preference
from dialoom.personas.apollo.tools import Value

from ..request import SpokenLine

_PART = r"<{0}>\n(.*?)\n</{0}>"
_SESSION = re.compile(r'<session n="\d+">\n(.*?)\n</session>', re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\n(.*?)\n</tool_response>", re.DOTALL)
_PLACES = r"home|work"
_PATTERNS = {
    "from": rf"from (?P<start>{_PLACES})",
    "at": rf"at (?P<start>{_PLACES})",
    "day": r"(?P<day>today|tomorrow|on \w+|on \d+ \w+)",
    "nights": rf"(?P<nights>{'|'.join(NUMBERS.values())}) nights?",
}
_PIECE = re.compile(r"\{(\w+)\}|\[([^\[\]]*)\]")


class SeenSession(NamedTuple):
    """A past session, and the preference that it states, if any.

    Attributes:
        form: The form in which the preference is stated; empty without one.
        preference: The preference.
    """

    form: str
    preference: Preference | None


class AskedFlow(NamedTuple):
    """The request of a query: a flow, and its slots."""

    flow: str
    slots: Mapping[str, Value]


def part(text: str, tag: str) -> str:
    """Return the text of a part of the first message; empty if there is none."""
    found = re.search(_PART.format(tag), text, re.DOTALL)
    return found[1] if found else ""


def resident_of(first: str) -> tuple[Resident, str]:
    """Return the user's residence, and today's date."""
    known = dict(line.split(": ", 1) for line in part(first, "user_information").splitlines() if ": " in line)
    return Resident(*(known.get(name, "") for name in ("City", "Home", "Work"))), known.get("Today", "")


def sessions_of(first: str) -> list[SeenSession]:
    """Return the sessions of the history, in order."""
    return [session_of(body) for body in _SESSION.findall(first)]


@lru_cache(maxsize=4096)
def session_of(text: str) -> SeenSession:
    """Parse a session as it is shown."""
    turns, calls = _read(text)
    told = read_preference(turns)
    if told is None:
        return SeenSession("", None)
    lookups = [step.tool for step in FLOWS[told.flow].lookups]
    order = tuple(dict.fromkeys([*(call for call in calls if call in lookups), *lookups]))
    return SeenSession(told.form, Preference(told.flow, told.values, order))


def outputs_of(lines: Sequence[SpokenLine]) -> list[Any]:
    """Return the tool outputs so far, in order: from lines of their own, or from tags in the user's."""
    found = ([line.text] if line.speaker == "tool" else _RESPONSE.findall(line.text) for line in lines)
    return [json.loads(text) for texts in found for text in texts]


def asked_flow(query: str, today: str) -> AskedFlow | None:
    """Return the flow that a query asks for; `None` for one that no template of the scripted source produces."""
    for flow, pattern in _queries():
        if found := pattern.fullmatch(query):
            return AskedFlow(flow, dict(_slots(found.groupdict(), today)))
    return None


def _read(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the lines with their speakers, and the names of the called tools."""
    turns: list[tuple[str, str]] = []
    calls: list[str] = []
    for line in text.splitlines():
        if line.startswith('{"call"'):
            calls.append(json.loads(line)["call"]["name"])
        elif not line.startswith('{"output"'):
            speaker, _, said = line.partition(": ")
            turns.append((speaker, said))
    return turns, calls


def _slots(found: Mapping[str, str | None], today: str) -> Iterator[tuple[str, Value]]:
    yield "today", today
    for name, value in found.items():
        if value is None:
            continue
        if name == "day":
            yield "date", _date(value, today)
        elif name == "nights":
            yield name, next(number for number, word in NUMBERS.items() if word == value.casefold())
        else:
            yield name, value.casefold() if name == "start" else value


def _date(said: str, today: str) -> str:
    """Return the first day from today on that has this name."""
    days = [(date.fromisoformat(today) + timedelta(days=ahead)).isoformat() for ahead in range(28)]
    named = said.casefold().removeprefix("on ")
    return next(
        (day for day in days if named in (each.casefold().removeprefix("on ") for each in day_phrases(today, day))),
        today,
    )


@lru_cache(maxsize=1)
def _queries() -> list[tuple[str, re.Pattern[str]]]:
    """Return the pattern of each query template, with its flow."""
    return [
        (flow, re.compile(_regular(template), re.IGNORECASE))
        for flow, said in REQUESTS["flows"].items()
        for template in (*said["reactive"], *said["proactive"])
    ]


def _regular(template: str) -> str:
    """Return a template as a pattern; a repeated slot is not captured again."""
    made, at, met = "", 0, set[str]()
    for piece in _PIECE.finditer(template):
        made += re.escape(template[at : piece.start()])
        at = piece.end()
        name = (piece[1] or "").lower()
        if not name:
            made += f"(?:{'|'.join(map(re.escape, piece[2].split('|')))})"
        else:
            pattern = _PATTERNS.get(name, rf"(?P<{name}>.+?)" if name in ("destination", "to_city") else ".+?")
            named = re.findall(r"\?P<\w+>", pattern)
            made += pattern if not met & set(named) else re.sub(r"\?P<\w+>", "?:", pattern)
            met |= set(named)
    return made + re.escape(template[at:])
