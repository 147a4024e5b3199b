"""The judge of APOLLO's errors, by the lines that calls are shown as.

Without a call: `unawareness` if something was asked, else `unhelpful`. Else the first call that is no line of gold
decides: `hallucination`, if gold has a value there that is among the preference's, or an id, or if a way is taken after
a lookup that should not be; else `tool_related`.
"""

from __future__ import annotations

import json
import re

from ..draws import Draws
from ..request import MarkedRequest
from ..understudy import understudy

_CALL = re.compile(r"\b(\w+)\((\w+=.*?|)\)(?=;|$)", re.MULTILINE)
_ARGUMENT = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^,]+)')
_ENDS = ("request_ride", "transport_recommendation")
_ID = re.compile(r'"[A-Z]{2}\d+"')


@understudy("apollo", "judge")
def explain(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Give the label: a JSON object."""
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
