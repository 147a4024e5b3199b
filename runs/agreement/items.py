"""Items: judgements as things that people can label too, with names that stay the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dialoom.errors import Advice
from dialoom.graphs import Episode, Judgement, Recipe
from dialoom.graphs.capabilities import WithLabels
from dialoom.runs.errors import RunError
from dialoom.runs.selection import selected
from dialoom.runs.store import RunFile


class Group(NamedTuple):
    """Judgements that are compared together: one metric of one target, of whole conversations or of turns."""

    metric: str
    target: str
    by_turn: bool

    def __str__(self) -> str:
        return f"{self.metric} ({self.target})" + (" by turn" if self.by_turn else "")


@dataclass(frozen=True, slots=True)
class Item:
    """One judgement.

    Attributes:
        id: The scenario's id, metric, target and turn; the same in every judging of the run.
        judgement: What the judge said of it.
    """

    id: str
    judgement: Judgement

    @property
    def group(self) -> Group:
        """What it is compared with."""
        return Group(self.judgement.metric, self.judgement.target, self.judgement.turn is not None)


def items_of(episode: Episode, recipe: Recipe | None = None) -> Iterator[Item]:
    """An episode's items, in the order of its judgements; at last what these come to together, by its recipe."""
    seen: Counter[str] = Counter()
    concluded = () if recipe is None else WithLabels.of(recipe).concluded(episode.outcome)
    for judgement in (*episode.outcome.judgements, *concluded):
        turn = "" if judgement.turn is None else f"/{judgement.turn}"
        id_ = f"{episode.id}/{judgement.metric}/{judgement.target}{turn}"
        seen[id_] += 1
        # A tree has several rounds at one depth; their judgements keep their order, so counting them is a name.
        yield Item(id_ if seen[id_] == 1 else f"{id_}#{seen[id_]}", judgement)


def scenario_of(run: RunFile, item: str) -> tuple[int, str] | None:
    """The position and the id of the scenario that an item's id begins with; `None` if the run has none of it."""
    for end in (place for place, letter in enumerate(item) if letter == "/"):
        if (position := run.position_of(item[:end])) is not None:
            return position, item[:end]
    return None


def items(
    run: RunFile, judging: str | None, metrics: Collection[str], where: str | None = None
) -> Iterator[tuple[Episode, Item]]:
    """All items of a run in plan order, or those of some metrics, or of scenarios that an expression holds of.

    Raises:
        RunError: If the run has no judgements of such a metric.
        StoreError: If there is no such judging.
    """
    seen: set[str] = set()
    chosen = run.judgement_set(judging)
    if chosen is not None and chosen.members:
        named = ", ".join(map(repr, chosen.members))
        raise RunError(f"judging {chosen.name!r}: people agree with judges; name one of {named}", setting="judging")
    recipe = run.recipe
    for episode in selected(run, judging, where):
        for item in items_of(episode, recipe):
            seen.add(item.judgement.metric)
            if not metrics or item.judgement.metric in metrics:
                yield episode, item
    if not seen and where is not None:
        raise RunError(f"where {where!r} leaves no judgement of {run.path}", setting="where")
    if not seen:
        advice = Advice("judge", "judge the run first", {"path": run.path})
        raise RunError(f"{run.path} has no judgements to agree with", advice=advice)
    if unknown := [metric for metric in metrics if metric not in seen]:
        there = ", ".join(sorted(seen))
        raise RunError(f"metrics {unknown[0]!r}: {run.path} has judgements of {there}", setting="metrics")
