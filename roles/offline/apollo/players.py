"""The understudies of APOLLO: agent, memory and judge."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialoom.roles.offline.draws import Draws
from dialoom.roles.offline.request import MarkedRequest
from dialoom.roles.offline.understudy import ToolTurn, understudy
from dialoom.roles.offline.words import Words, heard

if TYPE_CHECKING:
    from dialoom.personas.apollo.flows import Preference


WORDS = Words(Path(__file__).parents[1] / "data" / "apollo" / "lines.toml")
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
    from dialoom.personas.apollo.text_protocol import call_text

    from .requests import asked_flow, outputs_of, part, resident_of

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
    from .requests import sessions_of

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
    from .requests import session_of

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
