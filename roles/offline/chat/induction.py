"""What somebody who has read nothing but the chat could tell about the person by now."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .facts import facts_of, given_away, joined_as_written
from .manners import manners_of
from .person import Speaker


def induced(profile: str, personality: str, lines: Sequence[str]) -> str:
    """Answer as the induction: one JSON object with the known sentences of both texts, in their own wording.

    Args:
        profile: All facts.
        personality: All traits.
        lines: The user's lines; nobody else's are evidence.
    """
    # The two come from pools of their own: one may say "she" and the other "they".
    facts, traits = facts_of(profile, Speaker.of(profile)), facts_of(personality, Speaker.of(personality))
    told = given_away(facts, lines)
    shown = given_away(traits, lines)
    for at, trait in enumerate(traits):
        if any(manner.shows_in(line) for manner in manners_of(trait.source) for line in lines):
            shown.add(at)
    known = {
        "profile": joined_as_written(facts[at] for at in sorted(told)) or None,
        "personality": joined_as_written(traits[at] for at in sorted(shown)) or None,
    }
    return json.dumps(known, ensure_ascii=False)
