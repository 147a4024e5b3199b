"""APOLLO's charts: accuracy over the length of the history, and over the place of the session that matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dialoom.graphs.reporting.chart import Chart, Series
from dialoom.graphs.reporting.statistics import Estimate

from .results import ApolloResults, Runs, SampleResult, accuracy

_BANDS = "Bands: 95 % intervals over pairs."


def charts(runs: Runs) -> list[Chart]:
    """All charts that there is something for, in one pass over the samples of each run."""
    results = ApolloResults(runs)
    plain = [sample for sample in results.samples if not sample.evolving]
    by_length = [sample for sample in plain if sample.size.unit == "tokens"]
    by_place = [sample for sample in plain if sample.size.unit == "sessions"]
    found = [
        Chart(
            "accuracy",
            "Accuracy by length of the history",
            "tokens of the first message",
            "accuracy",
            _lines(results, by_length, "size"),
        ),
        *(
            Chart(
                f"place-{size.amount}",
                f"Accuracy by where the session stands that matters: {size}",
                "place among the sessions, oldest first",
                "accuracy",
                _lines(results, group, "place"),
            )
            for (size,), group in results.grouped(by_place, ["size"])
        ),
    ]
    for chart in found:
        chart.y_range, chart.notes = (0.0, 1.0), [_BANDS]
    return [chart for chart in found if any(len(series.x) > 1 for series in chart.series)]


def _lines(results: ApolloResults, samples: Iterable[SampleResult], axis: str) -> list[Series]:
    """A line for each model and framework."""
    held = list(samples)
    told = [each for each in ("model", "framework") if len({getattr(sample, each) for sample in held}) > 1]
    made = []
    for (model, framework), group in results.grouped(held, ["model", "framework"]):
        points = results.grouped(group, [axis])
        x = [value.amount if axis == "size" else value for (value,), _ in points]
        named = {"model": model, "framework": framework}
        label = " ".join(named[each] for each in told) or framework
        made.append(_series(label, x, [accuracy(some) for _, some in points]))
    return made


def _series(label: str, x: Sequence[float], found: Sequence[Estimate | None]) -> Series:
    y, low, high = ([getattr(each, name) if each else None for each in found] for name in ("mean", "low", "high"))
    return Series(label, x, y, low, high)
