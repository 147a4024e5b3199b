"""Items to label: judgements with stable ids, digests of the judged lines, and the scales of their metrics."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from dialoom.errors import Advice
from dialoom.graphs import Episode, Judgement, Recipe
from dialoom.graphs.capabilities import WithLabels
from dialoom.runs.errors import RunError
from dialoom.runs.scenario_pages import selected
from dialoom.runs.store import RunFile


class Group(NamedTuple):
    """A group of judgements that are compared together: one metric of one target, of conversations or of turns."""

    metric: str
    target: str
    by_turn: bool

    def __str__(self) -> str:
        return f"{self.metric} ({self.target})" + (" by turn" if self.by_turn else "")


@dataclass(frozen=True, slots=True)
class Item:
    """One judgement, as an item to label.

    Attributes:
        id: The scenario's id, metric, target and turn; the same in every set of judgements of the run.
        judgement: The judgement.
    """

    id: str
    judgement: Judgement

    @property
    def group(self) -> Group:
        """The group in which the item is compared."""
        return Group(self.judgement.metric, self.judgement.target, self.judgement.turn is not None)


def items_of(episode: Episode, recipe: Recipe | None = None) -> Iterator[Item]:
    """Yield an episode's items in the order of its judgements; its recipe's conclusions from them come last."""
    seen: Counter[str] = Counter()
    concluded = () if recipe is None else WithLabels.of(recipe).concluded(episode.outcome)
    for judgement in (*episode.outcome.judgements, *concluded):
        turn = "" if judgement.turn is None else f"/{judgement.turn}"
        id_ = f"{episode.id}/{judgement.metric}/{judgement.target}{turn}"
        seen[id_] += 1
        # Rounds of a tree at the same depth share an id; their judgements keep their order, so a number tells them
        # apart.
        yield Item(id_ if seen[id_] == 1 else f"{id_}#{seen[id_]}", judgement)


def scenario_of(run: RunFile, item: str) -> tuple[int, str] | None:
    """Return the position and the id of the scenario of an item's id; `None` if the run has no such scenario."""
    for end in (place for place, letter in enumerate(item) if letter == "/"):
        if (position := run.position_of(item[:end])) is not None:
            return position, item[:end]
    return None


def items(
    run: RunFile, judging: str | None, metrics: Collection[str], where: str | None = None
) -> Iterator[tuple[Episode, Item]]:
    """Yield a run's items in plan order, optionally only those of some metrics or of scenarios matching an expression.

    Raises:
        RunError: If the run has no judgements of such a metric.
        StoreError: If the set of judgements does not exist.
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


_LENGTH = 16


def digest_of(episode: Episode, recipe: Recipe, item: Item) -> str:
    """Return the digest of the lines that people read to label an item; it does not depend on any judgement.

    It changes if another branch has become the scenario's conversation, or the scenario was played anew, unless the
    part
    that the item is about, such as the first turns, is unchanged.
    """
    judgements = episode.outcome.judgements
    unsaid = tuple(map(_without_a_word, judgements))
    place = next((place for place, each in enumerate(judgements) if each is item.judgement), None)
    judgement = _without_a_word(item.judgement) if place is None else unsaid[place]
    outcome = episode.outcome.model_copy(update={"judgements": unsaid})
    lines = [[line.role, line.spoken] for line in WithLabels.of(recipe).judged_lines(outcome, judgement)]
    content = json.dumps(lines, ensure_ascii=False).encode("utf-8", "surrogatepass")
    # The prefix keeps spreadsheets from parsing it as a number.
    return f"sha256:{sha256(content).hexdigest()[:_LENGTH]}"


def _without_a_word(judgement: Judgement) -> Judgement:
    """Return a judgement without its result: the lines shown to people may quote a judge."""
    return Judgement(metric=judgement.metric, target=judgement.target, turn=judgement.turn, status="unparsed")


_VERDICTS = {"yes": 1, "true": 1, "1": 1, "no": 0, "false": 0, "0": 0}


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale of whole numbers from `low` to `high`; a verdict is 0 or 1."""

    low: int
    high: int
    is_verdict: bool = False

    @property
    def size(self) -> int:
        """The number of values."""
        return self.high - self.low + 1

    def __str__(self) -> str:
        # Not `1-5`: a spreadsheet would parse it as a date.
        return "yes or no" if self.is_verdict else f"{self.low} to {self.high}"

    def parse(self, text: str) -> int:
        """Parse a label.

        Raises:
            ValueError: If it is not one of the scale's values; the message lists them.
        """
        value = _VERDICTS.get(text.lower()) if self.is_verdict else _whole(text)
        if value is None or not self.low <= value <= self.high:
            allowed = "yes or no (or true, false, 1, 0)" if self.is_verdict else f"a whole number from {self}"
            raise ValueError(f"{text!r:.60} is not {allowed}")
        return value


VERDICT = Scale(0, 1, is_verdict=True)


class Scales:
    """The scales of a run's metrics: the recipe's, overridden by the user's.

    A metric without a scale is a verdict.

    Args:
        known: The lowest and the highest score by metric, as in `WithJudging.scales`.
        given: Overrides of the form `METRIC=LOW-HIGH`.

    Raises:
        RunError: If a given scale cannot be parsed.
    """

    def __init__(self, known: Mapping[str, tuple[int, int]], given: Iterable[str] = ()) -> None:
        self._scales = {metric: Scale(low, high) for metric, (low, high) in known.items()}
        self._scales |= dict(map(_given, given))

    def of(self, metric: str) -> Scale:
        """Return a metric's scale."""
        return self._scales.get(metric, VERDICT)

    def code(self, judgement: Judgement) -> int | None:
        """Return the judge's score as a value of its scale; `None` if there is none.

        Raises:
            RunError: If the score is not on the scale.
        """
        score, scale = judgement.score, self.of(judgement.metric)
        if score is None:
            return None
        if isinstance(score, bool) != scale.is_verdict:
            if scale.is_verdict:
                raise RunError(
                    f"scales: the recipe does not say that of {judgement.metric}, which the judge scored {score}; "
                    f"give {judgement.metric}=LOW-HIGH, such as {judgement.metric}=1-5",
                    setting="scales",
                )
            raise RunError(f"the scale of {judgement.metric} is {scale}, but the judge's score is a verdict, {score}")
        if int(score) != score or not scale.low <= score <= scale.high:
            raise RunError(
                f"scales: the judge's score {score} of {judgement.metric} is not a whole number from {scale}; "
                f"give {judgement.metric}=LOW-HIGH with the scale that the judge was told",
                setting="scales",
            )
        return int(score)


def _whole(text: str) -> int | None:
    """Parse a whole number; spreadsheets sometimes write 4 as `4.0`."""
    found = re.fullmatch(r"([+-]?\d{1,9})(?:\.0*)?", text, re.ASCII)
    return int(found[1]) if found else None


def _given(text: str) -> tuple[str, Scale]:
    found = re.fullmatch(r"(.+?)=(-?\d{1,6})-(-?\d{1,6})", text, re.ASCII)
    if found is None or int(found[2]) >= int(found[3]):
        raise RunError(
            f"scales {text!r}: one is METRIC=LOW-HIGH with whole numbers, such as naturalness=1-5", setting="scales"
        )
    return found[1], Scale(int(found[2]), int(found[3]))
