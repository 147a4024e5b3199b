"""What became of the pairs: how many each stage left, and why the others are out."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting.table import Table
from dialoom.personas.preferences import Draft

from .exports import drafts_in
from .stages import REASONS

_BY_HAND = "left out by hand"
_MEANT: Mapping[str, str] = {
    "twin": "repeats another pair's preference or question word for word",
    "contradicts": "the question goes against the preference",
    "fits": "the question gives the preference away",
    "lacks_facts": "the question lacks what an answer needs",
    "validity unparsed": "the judge's word on the pair could not be had",
    "rate unparsed": "no answer, or no verdict on one, could be had",
    "low rate": "too few answers go against the preference",
    "rating unparsed": "the rater's word could not be had",
    "discarded": "the rater finds it of no use",
    "low probability": "rated as too seldom violated",
    "low difficulty": "rated as too easy",
    "near-duplicate": "too similar to one that was chosen",
    "surplus": "enough others were chosen",
    "choice unparsed": "its choice could not be had, or gives the preference away",
    "no persona": "none of the personas drawn fits",
    "persona unparsed": "its persona or the talk could not be had",
    "talk length": "the talk is shorter or longer than asked for",
    "options unparsed": "its four answers could not be had",
    "conflict unparsed": "the earlier preference could not be had, or is the same",
    _BY_HAND: "somebody's own words stand in the drafts",
}
_COLUMNS = ("written", "validity", "rate", "rating", "selection", "forms")
"""How many were left after these."""
_REACHED = {"written": 1, "filtered": 4, "chosen": 5, "complete": 6}


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """How many pairs are left after each stage by topic, and the reasons why others are not."""
    left = Table(
        "stages",
        "Pairs that each stage has left",
        [
            "topic",
            "pairs",
            "no twins",
            "valid",
            "violated",
            "rated",
            "chosen",
            "complete",
            "rate %",
            "unread",
        ],
    )
    reasons: Counter[str] = Counter()
    for episode in episodes:
        if episode.state == "done":
            drafts = drafts_in(episode)
            left.rows.append(_row(episode, drafts))
            reasons.update(_reason(draft) for draft in drafts if draft.dropped)
    left.notes = [
        "Rate: the violation rate, the mean over the pairs that are left. Unread: replies to calls for new pairs that "
        "could not be read. A dash: the run ends before that stage."
    ]
    dropped = Table("dropped", "Pairs that are out, and why", ["stage", "reason", "pairs", "meaning"])
    order = [*REASONS, _BY_HAND]
    for reason in sorted(reasons, key=order.index):
        dropped.rows.append([REASONS.get(reason, "drafts"), reason, reasons[reason], _MEANT[reason]])
    return [table for table in (left, dropped) if table.rows]


def _row(episode: Episode, drafts: Sequence[Draft]) -> list[Any]:
    out = Counter(_place(draft) for draft in drafts if draft.dropped)
    counts, count = [], len(drafts)
    for place in range(len(_COLUMNS)):
        count -= out[place]
        counts.append(count)
    reached = _REACHED[str(episode.facets["until"])]
    rates = [draft.violation_rate for draft in drafts if not draft.dropped and draft.violation_rate is not None]
    shown = [*counts[:reached], *[None] * (len(counts) - reached)]
    mean = statistics.fmean(rates) if rates else None
    return [episode.facets["topic"], len(drafts), *shown, mean, episode.outcome.counts["unparsed_calls"]]


def _place(draft: Draft) -> int:
    """The column of the stage that has left it out; what is left out by hand was never there."""
    stage = REASONS.get(draft.dropped, "written")
    return _COLUMNS.index(stage) if stage in _COLUMNS else len(_COLUMNS) - 1


def _reason(draft: Draft) -> str:
    return draft.dropped if draft.dropped in REASONS else _BY_HAND
