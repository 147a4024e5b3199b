"""APOLLO's charts: accuracy over lengths, places, users and frameworks, and errors. The paper's figures 3 to 6."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dialoom.graphs.reporting.chart import Chart, Series
from dialoom.graphs.reporting.statistics import Estimate

from .errors import LABELS
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
    if split := [sample for sample in by_length if sample.split]:
        title = "Accuracy by length, on users that were trained on (train) and on others (test)"
        lines = _lines(results, split, "size", ("model", "framework", "split"))
        found.append(Chart("users", title, "tokens of the first message", "accuracy", lines))
    for chart in found:
        chart.y_range, chart.notes = (0.0, 1.0), [_BANDS]
    drawn = [chart for chart in found if any(len(series.x) > 1 for series in chart.series)]
    drawn += [*_frameworks(results, plain), *_errors(results)]
    for chart in drawn:
        chart.notes = [*(f"Warning: {each}" for each in results.warnings), *chart.notes]
    return drawn


def _lines(
    results: ApolloResults, samples: Iterable[SampleResult], axis: str, axes: Sequence[str] = ("model", "framework")
) -> list[Series]:
    """A line for each model and framework, or whatever else tells samples apart."""
    held = list(samples)
    told = [at for at, each in enumerate(axes) if len({getattr(sample, each) for sample in held}) > 1]
    made = []
    for key, group in results.grouped(held, axes):
        points = results.grouped(group, [axis])
        x = [value.amount if axis == "size" else value for (value,), _ in points]
        label = " ".join(key[at] for at in told) or key[1]
        made.append(_series(label, x, [accuracy(some) for _, some in points]))
    return made


def _frameworks(results: ApolloResults, samples: Sequence[SampleResult]) -> Iterator[Chart]:
    """The paper's figure 5: frameworks beside each other, a bar for each model, over all lengths."""
    names = results.values("framework", samples)
    chart = Chart("frameworks", "Accuracy by framework", "", "accuracy", y_range=(0.0, 1.0), kind="bars", names=names)
    chart.notes = ["Over all lengths. With 95 % intervals over pairs."]
    for (model,), group in results.grouped(samples, ["model"]):
        by_name = {name: some for (name,), some in results.grouped(group, ["framework"])}
        places = [names.index(name) for name in by_name]
        chart.series.append(_series(model, places, [accuracy(some) for some in by_name.values()]))
    if len(names) > 1:
        yield chart


def _errors(results: ApolloResults) -> Iterator[Chart]:
    """The paper's figure 3: which share of the failed samples has which error; a judge's word, where there is one."""
    is_judged = any(sample.judged_error for sample in results.samples)
    by = "judged_error" if is_judged else "error"
    groups = results.grouped((each for each in results.samples if getattr(each, by)), ["model", "framework"])
    chart = Chart("errors", "Why samples failed", "", "share of failed samples", y_range=(0.0, 1.0), kind="stacked")
    several = [len({key[at] for key, _ in groups}) > 1 for at in range(2)]
    chart.names = [
        " ".join(part for part, told in zip(key, several, strict=True) if told) or key[0] for key, _ in groups
    ]
    chart.notes = [
        f"By the {'judge' if is_judged else 'rule'}. Samples: {', '.join(str(len(some)) for _, some in groups)}."
    ]
    for label in LABELS:
        shares = [sum(getattr(each, by) == label for each in some) / len(some) for _, some in groups]
        chart.series.append(Series(label.replace("_", " "), range(len(groups)), shares))
    if groups:
        yield chart


def _series(label: str, x: Sequence[float], found: Sequence[Estimate | None]) -> Series:
    y, low, high = ([getattr(each, name) if each else None for each in found] for name in ("mean", "low", "high"))
    return Series(label, x, y, low, high)
