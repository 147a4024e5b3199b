"""What a report counts: samples with their scores, read from finished ones one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting.statistics import Estimate, Tally
from dialoom.personas.apollo.source import FORMS

from .errors import LABELS
from .options import FRAMEWORKS

Runs: TypeAlias = Sequence[tuple[str, Iterable[Episode]]]
"""Each run's label, e.g. its model, and its finished samples; these are read once, one at a time."""

IMPLICIT = tuple(form for form in FORMS if form != "explicit")


_OFFERS = {
    "native": "It was offered the tools (protocol native)",
    "text": "It was offered no tools: they were only described in its prompt (protocol text). How an assistant of your "
    "own takes tools is in docs/assistants.md",
}
"""How tools reached an agent, by protocol."""


class HistorySize(NamedTuple):
    """How long a history is: in tokens, or in sessions."""

    unit: str
    amount: int

    def __str__(self) -> str:
        return f"{self.amount / 1000:g}k" if self.unit == "tokens" else f"{self.amount} sessions"


class SampleResult(NamedTuple):
    """A finished sample, by its axes and scores.

    Attributes:
        has_called: Whether the agent made any call.
        has_gold: Whether the right answer contains calls.
        error: Why it failed by the rule, with `judged_error` by a judge.
        split: Whether its user was trained on, `train` or `test`; empty where nobody says so.
    """

    model: str
    framework: str
    size: HistorySize
    place: int
    evolving: bool
    form: str
    query: str
    kind: str
    domain: str
    pair: str
    ending: str
    protocol: str
    flags: tuple[str, ...]
    accuracy: bool
    f1: float
    scores: dict[str, Any]
    hit: bool | None
    has_called: bool
    has_gold: bool
    error: str | None
    judged_error: str | None
    split: str = ""


class ApolloResults:
    """Everything that tables and charts show, in one pass over the samples of each run.

    Attributes:
        samples: Those that came to an end.
        failed: Model and framework of each that did not.
    """

    def __init__(self, runs: Runs) -> None:
        self.models = [label for label, _ in runs]
        self.samples: list[SampleResult] = []
        self.failed: list[tuple[str, str]] = []
        for label, episodes in runs:
            for episode in episodes:
                if episode.state == "done":
                    self.samples.append(_result(label, episode))
                else:
                    self.failed.append((label, str(episode.facets["framework"])))

    @property
    def warnings(self) -> list[str]:
        """A sentence on each model that made no call at all although right answers contain some."""
        found = []
        for (model,), samples in self.grouped(self.samples, ["model"]):
            wanted = sum(sample.has_gold for sample in samples)
            if not wanted or any(sample.has_called for sample in samples):
                continue
            told = "; ".join(_OFFERS[protocol] for protocol in self.values("protocol", samples))
            found.append(
                f"{model} made no tool call in any sample, although the right answers of {wanted:,} of "
                f"{len(samples):,} contain calls, so these figures do not show how well it calls tools. {told}."
            )
        return found

    def values(self, axis: str, samples: Iterable[SampleResult]) -> list[Any]:
        """What samples have on an axis, in its order: models as the runs were named, words as the options name them."""
        orders = {"model": self.models, "framework": FRAMEWORKS, "form": FORMS}
        found = {getattr(sample, axis) for sample in samples}
        return sorted(found, key=orders[axis].index) if axis in orders else sorted(found)

    def grouped(
        self, samples: Iterable[SampleResult], axes: Sequence[str]
    ) -> list[tuple[tuple[Any, ...], list[SampleResult]]]:
        """Samples that agree on these axes, with what they agree on, in order."""
        held = list(samples)
        ranks = [{value: rank for rank, value in enumerate(self.values(axis, held))} for axis in axes]
        groups: dict[tuple[Any, ...], list[SampleResult]] = {}
        for sample in held:
            groups.setdefault(tuple(getattr(sample, axis) for axis in axes), []).append(sample)
        order = sorted(groups, key=lambda key: [rank[value] for rank, value in zip(ranks, key, strict=True)])
        return [(key, groups[key]) for key in order]


def accuracy(samples: Iterable[SampleResult]) -> Estimate | None:
    """The share of samples with exactly the right calls."""
    return _mean(samples, lambda sample: sample.accuracy)


def f1(samples: Iterable[SampleResult]) -> Estimate | None:
    """The mean F1."""
    return _mean(samples, lambda sample: sample.f1)


def share(samples: Iterable[SampleResult], name: str) -> Estimate | None:
    """The mean of one of the other scores; `None` where there is none."""
    scored = [sample for sample in samples if sample.scores[name] is not None]
    return _mean(scored, lambda sample: sample.scores[name])


def hit_rate(samples: Iterable[SampleResult]) -> Estimate | None:
    """How often retrieval found the session that tells the preference."""
    return _mean((sample for sample in samples if sample.hit is not None), lambda sample: bool(sample.hit))


def _mean(samples: Iterable[SampleResult], value: Callable[[SampleResult], bool | float]) -> Estimate | None:
    """A mean; where pairs come more than once, pairs are resampled, as what is made of one is not independent."""
    held = list(samples)
    once = len({sample.pair for sample in held}) == len(held)
    tally = Tally()
    for sample in held:
        found = value(sample)
        tally.add(found if once else float(found), sample.pair)
    return tally.estimate()


def _result(label: str, episode: Episode) -> SampleResult:
    facets, details = episode.facets, episode.outcome.details
    scores = details["scores"]
    labels = [each.metric for each in episode.outcome.judgements if each.metric in LABELS and each.score]
    length = int(facets["length"])
    return SampleResult(
        model=label,
        framework=str(facets["framework"]),
        size=HistorySize("tokens", length) if length else HistorySize("sessions", int(facets["sessions"])),
        place=int(facets["place"]),
        evolving=bool(facets["evolving"]),
        form=str(facets["form"]),
        query=str(facets["query"]),
        kind=str(facets["kind"]),
        domain=str(facets["domain"]),
        pair=str(facets["pair"]),
        ending=episode.outcome.ended_by,
        protocol=str(details["protocol"]),
        flags=tuple(details["flags"]),
        accuracy=bool(scores["accuracy"]),
        f1=float(scores["f1"]),
        scores=dict(scores),
        hit=details.get("hit"),
        has_called=bool(details["calls"]),
        has_gold=bool(details["gold"]),
        error=details["error"],
        judged_error=labels[0] if labels else None,
        split=str(facets.get("split", "")),
    )
