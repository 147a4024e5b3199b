"""What somebody who has read nothing but the chat could tell about the person by now.

The rule: a fact is known once one of the person's lines gives it away (see `facts`), a trait also once one of its
manners shows. Only the person's own lines are evidence; what is known is given in the description's own words.
"""

from __future__ import annotations

import json

from ..draws import Draws
from ..request import Request
from ..understudy import understudy
from .facts import facts_of, given_away, joined_as_written, traits_of
from .manners import shown_in


@understudy("induction")
def induce(request: Request, draws: Draws) -> str:  # noqa: ARG001
    """Answer with one JSON object: the known sentences of `profile` and `personality`, or null."""
    lines = request.said_by("user")
    facts = facts_of(request.part("profile"))
    told = given_away(facts, lines)
    traits = traits_of(request.part("personality"))
    by_words = given_away([trait for trait, _ in traits], lines)
    shown = {manner for line in lines for manner in shown_in(line)}
    known = [trait for at, (trait, named) in enumerate(traits) if at in by_words or shown & set(named)]
    found = {
        "profile": joined_as_written(facts[at] for at in sorted(told)) or None,
        "personality": joined_as_written(known) or None,
    }
    return json.dumps(found, ensure_ascii=False)
