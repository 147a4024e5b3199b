"""The correlation of length and score: whether judges favour many words."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from dialoom.graphs import Judgement, Outcome, Table
from dialoom.graphs.capabilities import WithJudging
from dialoom.graphs.reporting.statistics import rank_correlation
from dialoom.runs.scenario_pages import selected

from .differences import what_of
from .reported import ReportedRun

_NOTE = (
    "Spearman's rank correlation between a score and how many words it is about: those of whoever was judged, in the "
    "whole conversation or that turn. In brackets: 95 % intervals (Bonett and Wright's, as if all were independent). "
    "One that leaves out 0 may be a judge's bias, or what is longer may be better: judges of other kinds tell which."
)


def length_table(reported: Sequence[ReportedRun], labels: Sequence[str], where: str | None) -> list[Table]:
    """Return a table with a row for each scaled metric of each set of judgements; no table if none can be computed.

    Args:
        reported: The runs, each with a set.
        labels: Their labels.
        where: Only scenarios matching this expression.
    """
    several = len(reported) > 1
    table = Table("length", "Length against score", [*(["judgements"] if several else []), "metric", "correlation"])
    table.facets = {"judgements": None, "metric": None}
    for each, label in zip(reported, labels, strict=True):
        pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for episode in selected(each.run, each.set_name, where):
            for judgement in episode.outcome.judgements:
                if judgement.metric not in WithJudging.of(each.run.recipe).scales or judgement.score is None:
                    continue
                for words in _words(episode.outcome, judgement):
                    pairs[what_of(judgement)].append((words, float(judgement.score)))
        rows = [(what, rank_correlation(found)) for what, found in pairs.items()]
        table.rows += [[*([label] if several else []), what, found] for what, found in rows if found is not None]
    table.notes.append(_NOTE)
    return [table] if table.rows else []


def _words(outcome: Outcome, judgement: Judgement) -> Iterator[float]:
    """Yield the number of words that were judged, if the judged lines are known."""
    lines = [line.content for line in outcome.messages if line.role == judgement.target]
    if judgement.turn is not None:
        lines = lines[judgement.turn - 1 : judgement.turn]
    if lines:
        yield math.fsum(len(line.split()) for line in lines)
