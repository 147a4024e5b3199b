"""The state: pairs as they were written, what each stage found of them, and the drafts that this comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Annotated, Any, TypedDict, TypeVar

from dialoom.graphs.conversation import joined
from dialoom.graphs.stage import Scene
from dialoom.personas.preferences import Draft
from dialoom.roles import UnparsedReplyError

Key = TypeVar("Key", bound=Hashable)
Found = dict[str, dict[str, Any]]
"""What a stage says of some drafts: fields of `Draft`, by the draft's place in `written`."""

STAGES = ("validity", "rate", "rating", "selection", "choice", "persona", "options")
"""In the order in which they say something of a draft; the last three go on side by side."""

REASONS: Mapping[str, str] = {
    "twin": "written",
    "contradicts": "validity",
    "fits": "validity",
    "lacks_facts": "validity",
    "validity unparsed": "validity",
    "rate unparsed": "rate",
    "low rate": "rate",
    "rating unparsed": "rating",
    "discarded": "rating",
    "low probability": "rating",
    "low difficulty": "rating",
    "near-duplicate": "selection",
    "surplus": "selection",
    "choice unparsed": "choice",
    "no persona": "persona",
    "persona unparsed": "persona",
    "talk length": "persona",
    "options unparsed": "options",
    "conflict unparsed": "options",
}
"""Why a pair is out, and the stage that says so. Others are somebody's own words."""

_AT_ONCE = 16
"""Calls under way in a stage: a topic may want thousands."""


class PairsState(TypedDict, total=False):
    """What is checkpointed. What has been said of a pair stands in its stage's own part, which is written once.

    Attributes:
        written: Drafts as they were written, or given.
        calls: What each call for new pairs brought: `pairs`, and `unparsed` if its reply could not be read.
    """

    written: Annotated[list[dict[str, Any]], joined]
    calls: Annotated[list[dict[str, int]], joined]
    validity: Found
    rate: Found
    rating: Found
    selection: Found
    choice: Found
    persona: Found
    options: Found


def drafts_of(state: Mapping[str, Any]) -> list[Draft]:
    """The drafts as the stages have left them; of two reasons to be out, the first counts."""
    found = []
    for place, row in enumerate(state["written"]):
        merged = dict(row)
        for stage in STAGES:
            said = state.get(stage, {}).get(str(place), {})
            merged |= {key: value for key, value in said.items() if key != "dropped" or not merged.get("dropped")}
        found.append(Draft.model_validate(merged))
    return found


def still_in(state: Mapping[str, Any], wanted: Callable[[Draft], bool] | None = None) -> dict[str, Draft]:
    """The drafts that are in, by their places; only those of which something is wanted, if that is said."""
    left = {str(at): draft for at, draft in enumerate(drafts_of(state)) if not draft.dropped}
    return {at: draft for at, draft in left.items() if wanted is None or wanted(draft)}


async def ask_each(
    scene: Scene, prompt: str, inputs: Mapping[Key, Mapping[str, Any]], role: Callable[[Key], str] | None = None
) -> dict[Key, Any]:
    """The replies to several requests, by their keys; `None` where one could not be read.

    Each makes one call, so that the order in which replies come decides nothing.

    Args:
        scene: The node's.
        prompt: The prompt of all of them.
        inputs: What each is about.
        role: Who is asked, if it is not the prompt's own role.
    """

    async def asked(key: Key) -> Any:
        try:
            if role is None:
                return await scene.ask(prompt, **inputs[key])
            return await scene.ask_role(role(key), prompt, **inputs[key])
        except UnparsedReplyError:
            return None

    keys: Sequence[Key] = list(inputs)
    found: dict[Key, Any] = {}
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        found |= zip(some, await asyncio.gather(*map(asked, some)), strict=True)
    return found
