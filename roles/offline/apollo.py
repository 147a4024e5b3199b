"""The understudies of APOLLO: agent, memory and judge; and of written sources: writer, checker and solver.

The writer writes what the scripted source would write, derived from the request. It answers in the form that the
instruction asks for, which it recognizes by the form's first key. Some answers are faulty on purpose: one profile in
six hints at a preference; one answer in twelve has stories that show no preference; of twelve sessions, one makes a
wrong call, one states a wrong value, and in one the assistant states the preference; one query in eight names a value.
As `attentive`, the writer corrects a reported fault; as `generic`, it never does. The checker parses sessions with the
scripted source's own reader, and recognizes the stories without a preference. The solver knows nothing of the history.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, cast

from dialoom.personas.apollo.calls import Value
from dialoom.personas.apollo.flows import FLOWS, Flow, Preference, Resident, follow_flow
from dialoom.personas.apollo.scores import FINISH, format_call
from dialoom.personas.apollo.source.checks import list_day_phrases, write_query
from dialoom.personas.apollo.source.scripted import PEOPLE
from dialoom.personas.apollo.source.sessions import (
    NUMBERS,
    REQUESTS,
    NextCallError,
    build_errand_piece,
    build_preference_piece,
    read_preference,
    replay_outputs,
)

from .understudy import Draws, MarkedRequest, SpokenLine, ToolTurn, split_values, understudy
from .words import Words, match_template

WORDS = Words(Path(__file__).parent / "data" / "apollo.toml")

_MAX_SESSIONS_READ = 24
_MAX_SHORT_HISTORY = 3
_HARD_FORMS = ("facts", "tone")


@understudy("apollo", "assistant")
def act(request: MarkedRequest, _draws: Draws) -> str | ToolTurn:
    """Return the next tool call (as text if no tools are offered), or the end marker."""
    first = request.lines[0].text if request.lines else ""
    user = dict(line.split(": ", 1) for line in extract_part(first, "user_information").splitlines() if ": " in line)
    resident, today = Resident(*(user.get(place, "") for place in ("City", "Home", "Work"))), user.get("Today", "")
    asked = parse_query(extract_part(first, "request"), today)
    if asked is None:
        return FINISH
    name, slots = asked
    flow = FLOWS[name]
    known = None if request.model == "generic" else _find_preference(request, first, name)
    # Without notes: the first value of every facet, in the default order.
    unknowing = Preference(name, {facet.name: facet.values[0] for facet in flow.facets}, _default_order(flow))
    answers = replay_outputs(parse_outputs(request.lines[1:]))
    try:
        follow_flow(known or unknowing, resident, slots, answers, blind=known is None)
    except NextCallError as next_:
        if request.tools:
            return ToolTurn(calls=((next_.call["name"], json.dumps(next_.call["arguments"], ensure_ascii=False)),))
        return format_call(next_.call)
    except (KeyError, ValueError):  # a query or a session lacks a value that the flow needs
        return FINISH
    return FINISH


def _find_preference(request: MarkedRequest, first: str, flow: str) -> Preference | None:
    """Return the preference that the agent follows; `None` if it has recognized none."""
    if noted := _parse_notes(request.part("notes").splitlines(), flow):
        return noted
    sessions = list(map(parse_session, _SESSION.findall(first)))
    is_helped = (
        WORDS.get("marks.reminder") in request.system
        or "<failed_attempt>" in first
        or "notes" in request
        or len(sessions) <= _MAX_SHORT_HISTORY
    )
    understood = (
        preference
        for form, preference in reversed(sessions[:_MAX_SESSIONS_READ])
        if preference and preference.flow == flow and (is_helped or form not in _HARD_FORMS)
    )
    return next(understood, None)


def _parse_notes(notes: Sequence[str], flow: str) -> Preference | None:
    """Return the preference of the latest session with notes on a flow; `None` if there are no notes on it."""
    by_session: dict[str, dict[str, str]] = {}
    for note in notes:
        session, _, text = note.partition(": ")
        match = match_template(WORDS.get("notes"), text)
        if match and match["flow"] == flow:
            by_session.setdefault(session, {})[match["facet"]] = match["value"]
    if not by_session:
        return None
    latest = by_session[list(by_session)[-1]]
    order = tuple(json.loads(latest.pop("lookups", "[]")))
    return Preference(
        flow, {name: json.loads(value) for name, value in latest.items()}, order or _default_order(FLOWS[flow])
    )


def _default_order(flow: Flow) -> tuple[str, ...]:
    return tuple(step.tool for step in flow.lookups)


_CALL = re.compile(r"\b(\w+)\((\w+=.*?|)\)(?=;|$)", re.MULTILINE)
_ARGUMENT = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^,]+)')
_FINAL_TOOLS = ("request_ride", "transport_recommendation")
_ID = re.compile(r'"[A-Z]{2}\d+"')


@understudy("apollo", "judge")
def explain(request: MarkedRequest, _draws: Draws) -> dict[str, str]:
    """Answer with the error label."""
    return dict(zip(("label", "explanation"), _classify_error(request), strict=True))


def _classify_error(request: MarkedRequest) -> tuple[str, str]:
    gold, transcript = _CALL.findall(request.part("gold")), request.part("transcript")
    made = _CALL.findall(transcript)
    if not made:
        return ("unawareness", "It asks.") if "?" in transcript else ("unhelpful", "It calls nothing.")
    for place, ((right, correct), (name, given)) in enumerate(zip(gold, made, strict=False)):
        if (right, correct) == (name, given):
            continue
        if right != name:
            label = "hallucination" if place and name in _FINAL_TOOLS else "tool_related"
            return label, f"It calls {name} where {right} is needed."
        values = dict(_ARGUMENT.findall(given))
        for argument, value in _ARGUMENT.findall(correct):
            if values.get(argument) != value:
                is_preferred = bool(_ID.fullmatch(value)) or value.strip('"') in request.part("preference")
                label = "hallucination" if is_preferred else "tool_related"
                return label, f"{argument} is {values.get(argument, 'left out')}, and should be {value}."
    return "tool_related", "It calls more than is needed, or less."


@understudy("apollo", "memory")
def note(request: MarkedRequest, draws: Draws) -> dict[str, list[str]]:
    """Answer with the notes."""
    form, preference = parse_session(request.part("session"))
    if preference is None or (request.model == "generic" and form in _HARD_FORMS):
        return {"notes": []}
    values = {**preference.values, "lookups": [*preference.order]}
    return {
        "notes": [
            WORDS.say("notes", draws, {"flow": preference.flow, "facet": facet, "value": json.dumps(value)})
            for facet, value in values.items()
        ]
    }


_PART = r"<{0}>\n(.*?)\n</{0}>"
_SESSION = re.compile(r'<session n="\d+">\n(.*?)\n</session>', re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\n(.*?)\n</tool_response>", re.DOTALL)
_START_PLACES = r"home|work"
_PATTERNS = {
    "from": rf"from (?P<start>{_START_PLACES})",
    "at": rf"at (?P<start>{_START_PLACES})",
    "day": r"(?P<day>today|tomorrow|on \w+|on \d+ \w+)",
    "nights": rf"(?P<nights>{'|'.join(NUMBERS.values())}) nights?",
}
_PIECE = re.compile(r"\{(\w+)\}|\[([^\[\]]*)\]")


def extract_part(text: str, tag: str) -> str:
    """Return the text of a part of the first message; empty if there is none."""
    found = re.search(_PART.format(tag), text, re.DOTALL)
    return found[1] if found else ""


@lru_cache(maxsize=4096)
def parse_session(text: str) -> tuple[str, Preference | None]:
    """Return the form in which a session states a preference, and the preference; an empty form if it states none."""
    turns: list[tuple[str, str]] = []
    calls: list[str] = []
    for line in text.splitlines():
        if line.startswith('{"call"'):
            calls.append(json.loads(line)["call"]["name"])
        elif not line.startswith('{"output"'):
            speaker, _, content = line.partition(": ")
            turns.append((speaker, content))
    preference = read_preference(turns)
    if preference is None:
        return "", None
    lookups = [step.tool for step in FLOWS[preference.flow].lookups]
    order = tuple(dict.fromkeys([*(call for call in calls if call in lookups), *lookups]))
    return preference.form, Preference(preference.flow, preference.values, order)


def parse_outputs(lines: Sequence[SpokenLine]) -> list[Any]:
    """Return the tool outputs so far, in order: from lines of their own, or from tags in the user's lines."""
    found = ([line.text] if line.speaker == "tool" else _RESPONSE.findall(line.text) for line in lines)
    return [json.loads(text) for texts in found for text in texts]


def parse_query(query: str, today: str) -> tuple[str, Mapping[str, Value]] | None:
    """Return the flow that a query asks for, with the values of its slots.

    The result is `None` if no template of the scripted source produces the query.
    """
    for flow, pattern in _compile_query_patterns():
        if found := pattern.fullmatch(query):
            return flow, dict(_parse_slots(found.groupdict(), today))
    return None


def _parse_slots(found: Mapping[str, str | None], today: str) -> Iterator[tuple[str, Value]]:
    yield "today", today
    for name, value in found.items():
        if value is None:
            continue
        if name == "day":
            yield "date", _resolve_date(value, today)
        elif name == "nights":
            yield name, next(number for number, word in NUMBERS.items() if word == value.casefold())
        else:
            yield name, value.casefold() if name == "start" else value


def _resolve_date(phrase: str, today: str) -> str:
    """Return the first of the 28 days from today on that has this name; today if none has it."""
    days = [(date.fromisoformat(today) + timedelta(days=ahead)).isoformat() for ahead in range(28)]
    named = phrase.casefold().removeprefix("on ")
    return next(
        (
            day
            for day in days
            if named in (each.casefold().removeprefix("on ") for each in list_day_phrases(today, day))
        ),
        today,
    )


@lru_cache(maxsize=1)
def _compile_query_patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Return the pattern of each query template, with its flow."""
    return [
        (flow, re.compile(_to_regex(template), re.IGNORECASE))
        for flow, requests in REQUESTS["flows"].items()
        for template in (*requests["reactive"], *requests["proactive"])
    ]


def _to_regex(template: str) -> str:
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


_CHANGING_TAGS = ("instruction", "so_far", "story", "written", "wrong")
_Reply = Mapping[str, Any]


@understudy("apollo_write", "writer")
def write(request: MarkedRequest, draws: Draws) -> _Reply:
    """Answer in the form that the instruction asks for."""
    return (_write_errand if "tool" in request else _WRITERS.get(request.reply_key, _write_query))(request, draws)


@understudy("apollo_write", "checker")
def check(request: MarkedRequest, _draws: Draws) -> _Reply:
    """Answer with the preference that a session states, or with the verdict of a check."""
    parted = (line.partition(": ") for line in request.part("conversation_read").splitlines())
    preference = read_preference((speaker, text) for speaker, _, text in parted)
    if "part" in request and "conversation_read" in request:
        values = [{"facet": name, "value": value} for name, value in (preference.values if preference else {}).items()]
        return {"facets": values, "form": preference.form if preference else "explicit", "verdict": "right"}
    is_none = any(part.body in WORDS.get("story.none") for part in request.parts("preference"))
    why = WORDS.get("checker.told") if preference else WORDS.get("checker.story") if is_none else ""
    return {"explanation": why, "verdict": "wrong" if why else "right"}


@understudy("apollo_write", "solver")
def solve(request: MarkedRequest, _draws: Draws) -> _Reply:
    """Answer with the first possible value of each facet."""
    first = {part.attributes["name"]: re.search(r"It can be (.*?): ", part.body) for part in request.parts("part")}
    return {"facets": [{"facet": name, "value": found and found[1]} for name, found in first.items()]}


def _write_profile(request: MarkedRequest, draws: Draws) -> _Reply:
    number = request.inputs.get("number", "u1")
    person = {**PEOPLE[int(number.strip("u")) % len(PEOPLE)]}
    if _draw_fault(request, 6, ("person", number)) == 0:
        person["persona"] = f"{person['persona'].rstrip('.')}, {draws.pick(WORDS.get('profile.leak'))}."
    return {key: value for key, value in person.items() if key != "interests"}


def _write_preferences(request: MarkedRequest, draws: Draws) -> _Reply:
    offers = [part.body.splitlines() for part in request.parts("offer")] or [[""] * 3]
    bank, choice = "story.none" if _draw_fault(request, 12) == 0 else "story.told", draws.number(1, len(offers))
    chosen = enumerate(offers[choice - 1])
    return {"choice": choice, "stories": [WORDS.say(bank, draws.fork(at), {"values": values}) for at, values in chosen]}


def _write_session(request: MarkedRequest, draws: Draws) -> _Reply:
    flow, fault = FLOWS[request.inputs["flow"]], _draw_fault(request, 12)
    values = {part.attributes["name"]: json.loads(part.attributes["wanted"]) for part in request.parts("part")}
    (*_, last), user, outputs = values, request.fields("user_information"), _read_outputs(request)
    other = next(value for value in flow.facet(last).values if value != values[last])
    order = tuple(split_values(request.part("order")) or [step.tool for step in flow.lookups])
    preference = Preference(flow.name, values, order)
    stated = Preference(flow.name, {**values, last: other}, order) if fault == 1 else preference
    resident, form = Resident(user["city"], user["home"], user["work"]), cast(Any, request.part("form"))
    made = build_preference_piece(
        preference, stated, form, resident, _read_slots(request), outputs, Random(draws.number(0, 2**31))
    )
    call = {**made.call, "arguments": {}} if made.call and fault == 0 else made.call
    turns = [turn.model_dump() for turn in made.turns]
    if fault == 2 and outputs is None:
        named = request.parts("part")[-1].body.partition(f"{json.dumps(values[last])}: ")[2].partition(";")[0]
        turns.append({"speaker": "assistant", "text": WORDS.say("session.voiced", draws, {"value": named.rstrip(".")})})
    return {"turns": turns, "call": call}


def _write_errand(request: MarkedRequest, _draws: Draws) -> _Reply:
    outputs, number = _read_outputs(request) or [], request.parts("tool")[0].attributes["number"]
    behind = len(request.part("so_far").splitlines()) - len(outputs)
    random = Random(str([*_list_lasting_parts(request), number, request.part("wrong")]))
    made = build_errand_piece(request.part("tool"), int(number), behind, outputs, random)
    return {"turns": [turn.model_dump() for turn in made.turns], "call": made.call}


def _write_query(request: MarkedRequest, draws: Draws) -> _Reply:
    name, gender, *_ = request.fields("user_information").get("name", ",").split(", ")
    kind, random = cast(Any, request.part("kind")), Random(draws.number(0, 2**31))
    query = write_query(request.inputs["flow"], kind, name, gender, _read_slots(request), random)
    words = (
        request.parts("not_told")[-1].body.split("; ")[-1].partition(": ")[2] if _draw_fault(request, 8) == 0 else ""
    )
    return {"query": f"{query} {WORDS.say('query.leak', draws, {'words': words}) if words else ''}".strip()}


def _read_outputs(request: MarkedRequest) -> list[Any] | None:
    """Return the tool outputs so far; `None` if the session has no lines yet."""
    lines = request.part("so_far").splitlines()
    return [json.loads(line)["output"] for line in lines if line.startswith('{"output"')] if lines else None


def _read_slots(request: MarkedRequest) -> dict[str, Any]:
    return {name: int(value) if name == "nights" else value for name, value in request.fields("occasion").items()}


def _list_lasting_parts(request: MarkedRequest) -> list[tuple[str, str]]:
    return [(part.tag, part.body) for part in request.shown if part.tag not in _CHANGING_TAGS]


def _draw_fault(request: MarkedRequest, among: int, *named: tuple[str, str]) -> int | None:
    """Return a number below `among`, which selects a scripted fault or none; `None` if a fault must be repaired."""
    return None if request.is_repair else Draws("fault", *named, *_list_lasting_parts(request)).number(0, among - 1)


_WRITERS: Mapping[str, Callable[[MarkedRequest, Draws], _Reply]] = {
    "name": _write_profile,
    "choice": _write_preferences,
    "turns": _write_session,
}
