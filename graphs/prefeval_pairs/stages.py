"""The state: pairs as they were written, what each stage found of them, and the drafts that this comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypedDict

from dialoom.graphs.conversation import joined
from dialoom.personas.preferences import Draft

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
