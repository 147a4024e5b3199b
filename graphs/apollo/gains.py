"""What each framework adds to the baseline: the difference on the same samples. The paper's section 6, figure 5."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dialoom.graphs.reporting.statistics import FEWEST, PairedDifference, holm, paired_difference
from dialoom.graphs.reporting.table import Cell, Table

from .results import ApolloResults, HistorySize, SampleResult

BASELINE = "function-calling"
_NOTES = [
    f"Each sample beside that of {BASELINE} with the same pair and history. In brackets: 95 % intervals, bootstrapped "
    f"over pairs (none for fewer than {FEWEST} pairs). p: of the same bootstrap over all lengths, corrected by Holm "
    "for all rows together.",
]


def gains(results: ApolloResults, samples: Sequence[SampleResult]) -> Table:
    """Differences in accuracy from the baseline by length, and over all: a row for each model and other framework."""
    sizes = results.values("size", samples)
    several = len(sizes) > 1
    columns = ["model", "framework", *(f"{size} %" for size in sizes), *(["mean %"] if several else []), "p"]
    table = Table("frameworks", f"Accuracy: difference from {BASELINE}", columns, notes=[*_NOTES], decimals={"p": 3})
    over_all: list[PairedDifference] = []
    for (model,), group in results.grouped(samples, ["model"]):
        plain = {_place(sample): sample for sample in group if sample.framework == BASELINE}
        for (framework,), some in results.grouped(group, ["framework"]):
            whole = _difference(some, plain)
            if framework == BASELINE or whole is None:
                continue
            cells: list[Cell] = [_estimate(_of_size(some, size), plain) for size in sizes]
            table.rows.append([model, framework, *cells, *([whole.estimate] if several else [])])
            over_all.append(whole)
    corrected = holm([each.p for each in over_all])
    table.rows = [[*row, p] for row, p in zip(table.rows, corrected, strict=True)]
    return table


def _place(sample: SampleResult) -> tuple[object, ...]:
    return sample.pair, sample.size, sample.place, sample.evolving


def _of_size(samples: Iterable[SampleResult], size: HistorySize) -> list[SampleResult]:
    return [sample for sample in samples if sample.size == size]


def _estimate(samples: Iterable[SampleResult], plain: dict[tuple[object, ...], SampleResult]) -> Cell:
    found = _difference(samples, plain)
    return found.estimate if found else None


def _difference(
    samples: Iterable[SampleResult], plain: dict[tuple[object, ...], SampleResult]
) -> PairedDifference | None:
    return paired_difference(
        (sample.pair, float(sample.accuracy) - float(plain[_place(sample)].accuracy))
        for sample in samples
        if _place(sample) in plain
    )
