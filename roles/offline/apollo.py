"""The understudies of APOLLO: agent, memory and judge, and parsing of their requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dialoom.personas.apollo.calls import Value
from dialoom.personas.apollo.flows import FLOWS, Preference, Resident
from dialoom.personas.apollo.source.asking import day_phrases
from dialoom.personas.apollo.source.sessions import NUMBERS, REQUESTS, read_preference

from .request import Draws, MarkedRequest, SpokenLine
from .understudy import ToolTurn, understudy
from .words import Words, heard

if TYPE_CHECKING:
    from dialoom.personas.apollo.flows import Preference


WORDS = Words(Path(__file__).parent / "data" / "apollo" / "lines.toml")
FINISH = "[Finish]"

_READ = 24
_FEW = 3
_HARD = ("facts", "tone")


class _NextCall(Exception):
    """The flow has reached a call that was not made yet."""

    def __init__(self, call: Mapping[str, Any]) -> None:
        self.call = call


@understudy("apollo", "assistant")
def act(request: MarkedRequest, draws: Draws) -> str | ToolTurn:  # noqa: ARG001
    """Return the next call, as text where no tools are offered; or the end marker."""
    from dialoom.personas.apollo.flows import follow  # deferred: slow to import, and only this system needs it
    from dialoom.personas.apollo.scores import call_text

    first = request.lines[0].text if request.lines else ""
    resident, today = resident_of(first)
    asked = asked_flow(part(first, "request"), today)
    if asked is None:
        return FINISH
    known = None if request.model == "generic" else _known(request, first, asked.flow)
    answered = iter(outputs_of(request.lines[1:]))

    def answer(call: Mapping[str, Any]) -> Any:
        for output in answered:
            return output
        raise _NextCall(call)

    try:
        follow(known or _unknowing(asked.flow), resident, asked.slots, answer, blind=known is None)
    except _NextCall as next_:
        if request.tools:
            return ToolTurn(calls=((next_.call["name"], json.dumps(next_.call["arguments"], ensure_ascii=False)),))
        return call_text(next_.call)
    except (KeyError, ValueError):  # a query or a session lacks something that the flow needs
        return FINISH
    return FINISH


def _known(request: MarkedRequest, first: str, flow: str) -> Preference | None:
    """Return the preference that the agent follows; `None` if it has recognized none."""
    if noted := _noted(request.part("notes").splitlines(), flow):
        return noted
    sessions = sessions_of(first)
    is_helped = (
        WORDS.get("marks.reminder") in request.system
        or "<failed_attempt>" in first
        or "notes" in request
        or len(sessions) <= _FEW
    )
    understood = (
        session.preference
        for session in reversed(sessions[:_READ])
        if session.preference and session.preference.flow == flow and (is_helped or session.form not in _HARD)
    )
    return next(understood, None)


def _noted(notes: Sequence[str], flow: str) -> Preference | None:
    """Return the preference of the latest session with notes on a flow; `None` without notes."""
    from dialoom.personas.apollo.flows import FLOWS, Preference

    by_session: dict[str, dict[str, str]] = {}
    for note in notes:
        session, _, text = note.partition(": ")
        said = heard(WORDS.get("notes"), text)
        if said and said["flow"] == flow:
            by_session.setdefault(session, {})[said["facet"]] = said["value"]
    if not by_session:
        return None
    latest = by_session[list(by_session)[-1]]
    order = tuple(json.loads(latest.pop("lookups", "[]")))
    return Preference(flow, {name: json.loads(value) for name, value in latest.items()}, order or _order(FLOWS[flow]))


def _unknowing(flow: str) -> Preference:
    """Return the preference assumed without knowledge: the first value of every facet, in the default order."""
    from dialoom.personas.apollo.flows import FLOWS, Preference

    facets = FLOWS[flow].facets
    return Preference(flow, {facet.name: facet.values[0] for facet in facets}, _order(FLOWS[flow]))


def _order(flow: Any) -> tuple[str, ...]:
    return tuple(step.tool for step in flow.lookups)


_CALL = re.compile(r"\b(\w+)\((\w+=.*?|)\)(?=;|$)", re.MULTILINE)
_ARGUMENT = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^,]+)')
_ENDS = ("request_ride", "transport_recommendation")
_ID = re.compile(r'"[A-Z]{2}\d+"')


@understudy("apollo", "judge")
def explain(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Answer with the error label: a JSON object."""
    label, why = _label(request)
    return json.dumps({"label": label, "explanation": why}, ensure_ascii=False)


def _label(request: MarkedRequest) -> tuple[str, str]:
    gold, transcript = _CALL.findall(request.part("gold")), request.part("transcript")
    made = _CALL.findall(transcript)
    if not made:
        asked = "?" in transcript
        return ("unawareness", "It asks.") if asked else ("unhelpful", "It calls nothing.")
    for place, ((right, wanted), (name, given)) in enumerate(zip(gold, made, strict=False)):
        if (right, wanted) == (name, given):
            continue
        if right != name:
            label = "hallucination" if place and name in _ENDS else "tool_related"
            return label, f"It calls {name} where {right} is needed."
        values = dict(_ARGUMENT.findall(given))
        for argument, value in _ARGUMENT.findall(wanted):
            if values.get(argument) != value:
                is_preferred = bool(_ID.fullmatch(value)) or value.strip('"') in request.part("preference")
                label = "hallucination" if is_preferred else "tool_related"
                return label, f"{argument} is {values.get(argument, 'left out')}, and should be {value}."
    return "tool_related", "It calls more than is needed, or less."


@understudy("apollo", "memory")
def note(request: MarkedRequest, draws: Draws) -> str:
    """Answer with notes: a JSON object."""
    session = session_of(request.part("session"))
    told = session.preference
    if told is None or (request.model == "generic" and session.form in _HARD):
        return json.dumps({"notes": []})
    values = {**told.values, "lookups": [*told.order]}
    notes = [
        WORDS.say("notes", draws, {"flow": told.flow, "facet": facet, "value": json.dumps(value)})
        for facet, value in values.items()
    ]
    return json.dumps({"notes": notes}, ensure_ascii=False)


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
