"""The data of reports: samples as flat records of axes and scores, read from finished ones one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting import Estimate, Runs, Tally
from dialoom.personas.apollo.source import FORMS

from .errors import LABELS
from .options import FRAMEWORKS

Sample: TypeAlias = Mapping[str, Any]
"""A finished sample: its facets and scores by name, and what `_sample` adds."""
Group: TypeAlias = Sequence[Sample]

IMPLICIT = tuple(form for form in FORMS if form != "explicit")
ALL_IMPLICIT = "all implicit"

_OFFERS = {
    "native": "It was offered the tools (protocol native)",
    "text": "It was offered no tools: they were only described in its prompt (protocol text). How an assistant of your "
    "own takes tools is in docs/assistants.md",
}
"""Explanations of the way in which an agent got its tools, by protocol."""


class HistorySize(NamedTuple):
    """The length of a history: in tokens, or in sessions."""

    unit: str
    amount: int

    def __str__(self) -> str:
        return f"{self.amount / 1000:g}k" if self.unit == "tokens" else f"{self.amount} sessions"


class ApolloResults:
    """The data of all tables and charts, from one pass over the samples of each run.

    Attributes:
        samples: The finished samples.
        failed: The failed samples.
    """

    def __init__(self, runs: Runs) -> None:
        self._orders: Mapping[str, Sequence[Any]] = {
            "model": [label for label, _ in runs],
            "framework": FRAMEWORKS,
            "form": (*FORMS, ALL_IMPLICIT),
        }
        self.samples: list[Sample] = []
        self.failed: list[Sample] = []
        for label, episodes in runs:
            for episode in episodes:
                (self.samples if episode.state == "done" else self.failed).append(_sample(label, episode))

    @property
    def warnings(self) -> list[str]:
        """A sentence for each model that made no call at all although gold calls exist."""
        found = []
        for (model,), samples in self.grouped(self.samples, ["model"]):
            wanted = sum(sample["has_gold"] for sample in samples)
            if not wanted or any(sample["has_called"] for sample in samples):
                continue
            told = "; ".join(_OFFERS[protocol] for protocol in self.values("protocol", samples))
            found.append(
                f"{model} made no tool call in any sample, although the right answers of {wanted:,} of "
                f"{len(samples):,} contain calls, so these figures do not show how well it calls tools. {told}."
            )
        return found

    def values(self, axis: str, samples: Iterable[Sample]) -> list[Any]:
        """Return the samples' values of an axis: models in the order of the runs, names in the order of the options."""
        found = {sample[axis] for sample in samples}
        return sorted(found, key=self._orders[axis].index if axis in self._orders else None)

    def grouped(self, samples: Iterable[Sample], axes: Sequence[str]) -> list[tuple[tuple[Any, ...], list[Sample]]]:
        """Return the groups of samples with equal values of these axes, with the values, in their order."""
        groups: dict[tuple[Any, ...], list[Sample]] = {}
        for sample in samples:
            groups.setdefault(tuple(sample[axis] for axis in axes), []).append(sample)
        ordered = [self._orders.get(axis) for axis in axes]

        def place(key: tuple[Any, ...]) -> list[Any]:
            return [value if order is None else order.index(value) for order, value in zip(ordered, key, strict=True)]

        return [(key, groups[key]) for key in sorted(groups, key=place)]


def mean(samples: Iterable[Sample], name: str) -> Estimate | None:
    """Return the mean of a score, or the share of samples for which a flag holds, over samples that have it.

    If pairs occur several times, the bootstrap resamples pairs, because samples of one pair are dependent.
    """
    held = [sample for sample in samples if sample[name] is not None]
    once = len({sample["pair"] for sample in held}) == len(held)
    tally = Tally()
    for sample in held:
        tally.add(sample[name] if once else float(sample[name]), sample["pair"])
    return tally.estimate()


accuracy, f1 = partial(mean, name="accuracy"), partial(mean, name="f1")
"""The share of samples with exactly the gold calls, and the mean F1."""


def _sample(label: str, episode: Episode) -> Sample:
    facets, outcome = episode.facets, episode.outcome
    details: Mapping[str, Any] = outcome.details if episode.state == "done" else {}
    labels = [each.metric for each in outcome.judgements if each.metric in LABELS and each.score]
    length = int(facets["length"])
    return {
        "split": "",
        **facets,
        **details.get("scores", {}),
        "model": label,
        "size": HistorySize("tokens", length) if length else HistorySize("sessions", int(facets["sessions"])),
        "evolving": bool(facets["evolving"]),
        "ending": outcome.ended_by,
        "protocol": details.get("protocol"),
        "flags": details.get("flags", ()),
        "hit": details.get("hit"),
        "has_called": bool(details.get("calls")),
        "has_gold": bool(details.get("gold")),
        "error": details.get("error"),
        "judged_error": labels[0] if labels else None,
    }
