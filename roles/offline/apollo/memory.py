"""The memory of APOLLO: of a session that tells a preference it notes every facet's value, in whatever form it is told.

As `generic` it understands only what is said outright, chosen, compared, or left over when all else was turned down.
"""

from __future__ import annotations

import json

from ..draws import Draws
from ..request import MarkedRequest
from ..understudy import understudy
from .agent import _HARD, WORDS


@understudy("apollo", "memory")
def note(request: MarkedRequest, draws: Draws) -> str:
    """Notes: a JSON object."""
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
