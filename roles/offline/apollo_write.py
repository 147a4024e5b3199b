"""Understudies of a written source: a writer, a checker that reads the text, and a solver without knowledge.

The writer writes what the scripted source would, derived from the request, and answers in the form that the instruction
asks for, recognized by its first key. Some of it is faulty on purpose: one profile in six hints at a preference, one
answer in twelve has stories that show no preference, of twelve sessions one makes a wrong call, one states another
value and in one the assistant states the preference, and one query in eight names a value. As `attentive` it corrects a
reported fault; as `generic` never. The checker parses sessions with the scripted source's own reader, and recognizes
the stories without a preference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, cast

from .request import Draws, MarkedRequest, values_of
from .understudy import understudy
from .words import Words

WORDS = Words(Path(__file__).parent / "data" / "apollo_write" / "lines.toml")
_KEY = re.compile(r'JSON object of[^"]*"(\w+)"')
_CHANGING = ("instruction", "so_far", "story", "written", "wrong")
_Made = Mapping[str, Any]


@understudy("apollo_write", "writer")
def write(request: MarkedRequest, draws: Draws) -> str:
    """Answer with a JSON object."""
    key = _KEY.search(request.part("instruction"))
    made = (_errand if "tool" in request else _MAKERS.get(key[1] if key else "", _query))(request, draws)
    return json.dumps(made, ensure_ascii=False)


@understudy("apollo_write", "checker")
def check(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Answer with what a session states, or with whether something is right."""
    from dialoom.personas.apollo.source.sessions import read_preference  # slow to import

    parted = (line.partition(": ") for line in request.part("conversation_read").splitlines())
    told = read_preference((speaker, text) for speaker, _, text in parted)
    if "part" in request and "conversation_read" in request:
        values = [{"facet": name, "value": value} for name, value in (told.values if told else {}).items()]
        return json.dumps({"facets": values, "form": told.form if told else "explicit", "verdict": "right"})
    is_none = any(part.body in WORDS.get("story.none") for part in request.parts("preference"))
    why = WORDS.get("checker.told") if told else WORDS.get("checker.story") if is_none else ""
    return json.dumps({"explanation": why, "verdict": "wrong" if why else "right"})


@understudy("apollo_write", "solver")
def solve(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Answer with the first value of everything."""
    first = {part.attributes["name"]: re.search(r"It can be (.*?): ", part.body) for part in request.parts("part")}
    return json.dumps({"facets": [{"facet": name, "value": found and found[1]} for name, found in first.items()]})


def _profile(request: MarkedRequest, draws: Draws) -> _Made:
    from dialoom.personas.apollo.source.scripted import PEOPLE

    number = request.inputs.get("number", "u1")
    person = {**PEOPLE[int(number.strip("u")) % len(PEOPLE)]}
    if _fault(request, 6, ("person", number)) == 0:
        person["persona"] = f"{person['persona'].rstrip('.')}, {draws.pick(WORDS.get('profile.leak'))}."
    return {key: value for key, value in person.items() if key != "interests"}


def _preferences(request: MarkedRequest, draws: Draws) -> _Made:
    offers = [part.body.splitlines() for part in request.parts("offer")] or [[""] * 3]
    bank, choice = "story.none" if _fault(request, 12) == 0 else "story.told", draws.number(1, len(offers))
    told = enumerate(offers[choice - 1])
    return {"choice": choice, "stories": [WORDS.say(bank, draws.fork(at), {"values": values}) for at, values in told]}


def _session(request: MarkedRequest, draws: Draws) -> _Made:
    from dialoom.personas.apollo.flows import FLOWS, Preference, Resident
    from dialoom.personas.apollo.source.sessions import told_piece

    flow, fault = FLOWS[request.inputs["flow"]], _fault(request, 12)
    values = {part.attributes["name"]: json.loads(part.attributes["wanted"]) for part in request.parts("part")}
    (*_, last), said, outputs = values, request.fields("user_information"), _outputs(request)
    other = next(value for value in flow.facet(last).values if value != values[last])
    order = tuple(values_of(request.part("order")) or [step.tool for step in flow.lookups])
    wanted = Preference(flow.name, values, order)
    told = Preference(flow.name, {**values, last: other}, order) if fault == 1 else wanted
    resident, form = Resident(said["city"], said["home"], said["work"]), cast(Any, request.part("form"))
    made = told_piece(wanted, told, form, resident, _slots(request), outputs, Random(draws.number(0, 2**31)))
    call = {**made.call, "arguments": {}} if made.call and fault == 0 else made.call
    turns = [turn.model_dump() for turn in made.turns]
    if fault == 2 and outputs is None:
        named = request.parts("part")[-1].body.partition(f"{json.dumps(values[last])}: ")[2].partition(";")[0]
        turns.append({"speaker": "assistant", "text": WORDS.say("session.voiced", draws, {"value": named.rstrip(".")})})
    return {"turns": turns, "call": call}


def _errand(request: MarkedRequest, draws: Draws) -> _Made:  # noqa: ARG001
    from dialoom.personas.apollo.source.sessions import errand_piece

    outputs, number = _outputs(request) or [], request.parts("tool")[0].attributes["number"]
    behind = len(request.part("so_far").splitlines()) - len(outputs)
    random = Random(str([*_lasting(request), number, request.part("wrong")]))
    made = errand_piece(request.part("tool"), int(number), behind, outputs, random)
    return {"turns": [turn.model_dump() for turn in made.turns], "call": made.call}


def _query(request: MarkedRequest, draws: Draws) -> _Made:
    from dialoom.personas.apollo.source.asking import query_text

    name, gender, *_ = request.fields("user_information").get("name", ",").split(", ")
    kind, random = cast(Any, request.part("kind")), Random(draws.number(0, 2**31))
    query = query_text(request.inputs["flow"], kind, name, gender, _slots(request), random)
    words = request.parts("not_told")[-1].body.split("; ")[-1].partition(": ")[2] if _fault(request, 8) == 0 else ""
    return {"query": f"{query} {WORDS.say('query.leak', draws, {'words': words}) if words else ''}".strip()}


def _outputs(request: MarkedRequest) -> list[Any] | None:
    """Return the tool outputs so far; `None` before anything is said."""
    lines = request.part("so_far").splitlines()
    return [json.loads(line)["output"] for line in lines if line.startswith('{"output"')] if lines else None


def _slots(request: MarkedRequest) -> dict[str, Any]:
    fields = request.fields("occasion")
    return {name: int(value) if name == "nights" else value for name, value in fields.items()}


def _lasting(request: MarkedRequest) -> list[tuple[str, str]]:
    return [(part.tag, part.body) for part in request.shown if part.tag not in _CHANGING]


def _fault(request: MarkedRequest, among: int, *named: tuple[str, str]) -> int | None:
    """Return the number of the fault to make, if any."""
    is_told = "wrong" in request and request.model != "generic"
    return None if is_told else Draws("fault", *named, *_lasting(request)).number(0, among - 1)


_MAKERS: Mapping[str, Callable[[MarkedRequest, Draws], _Made]] = {
    "name": _profile,
    "choice": _preferences,
    "turns": _session,
}
