"""The paper's figures, recomputed by what makes our tables: from counts of right samples the numbers that it prints.

Its table 1 does not say how many samples a cell has. All accuracies are whole numbers of 2,192.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from itertools import count
from typing import Any

import pytest

from dialoom import Episode
from dialoom.graphs import Estimate
from dialoom.graphs.apollo import RECIPE
from dialoom.graphs.apollo.report import ApolloResults, HistorySize, Sample, accuracy, f1, gains
from dialoom.graphs.reporting import paired_difference, share_of
from tests.graphs.apollo.test_report import rows, sample, tables

N = 2192
LENGTHS = (2000, 4000, 8000, 12000)

TABLE_1 = {
    "Qwen3-8B": ((966, 823, 679, 571), ".4407 .3755 .3098 .2605", ".3466", ".6535 .5848 .5248 .4757", ".5597"),
    "Qwen3-8B (think)": (
        (1019, 1037, 999, 817),
        ".4649 .4731 .4557 .3727",
        ".4416",
        ".7171 .6886 .6734 .5954",
        ".6686",
    ),
    "GPT-OSS-120B": ((916, 777, 598, 601), ".4179 .3545 .2728 .2742", ".3298", ".6007 .5373 .4576 .4424", ".5095"),
    "GPT-4o": ((1245, 1102, 1080, 1059), ".5680 .5027 .4927 .4831", ".5116", ".7408 .7086 .7057 .6987", ".7135"),
}
"""Right samples by length; accuracy by length and its mean; F1 by length and its mean."""

ALL_ACCURACIES = (
    ".3066 .4407 .4649 .4206 .3508 .5123 .4179 .3859 .4813 .5680".split(),
    ".2258 .3755 .4731 .3047 .3102 .4179 .3545 .2984 .4051 .5027".split(),
    ".1834 .3098 .4557 .2906 .3066 .2842 .2728 .2619 .3736 .4927".split(),
    ".1693 .2605 .3727 .2514 .2559 .1820 .2742 .2418 .3704 .4831".split(),
)
"""Of ten models, by length."""


def samples(right: int, length: int, mean_f1: str = "1", evolving: bool = False) -> Iterator[Sample]:
    """As many samples as the paper has of a length, of which so many are right."""
    size, value = HistorySize("tokens", length), float(mean_f1)
    common = {
        "model": "m",
        "framework": "function-calling",
        "size": size,
        "place": 1,
        "evolving": evolving,
        "f1": value,
    }
    for at in range(N):
        yield {**common, "pair": str(at), "accuracy": at < right}


def printed(estimate: Estimate | None) -> str:
    """A mean as the paper prints it."""
    assert estimate is not None
    return rounded(Decimal(estimate.mean))


def rounded(value: Decimal) -> str:
    """Four digits, halves up."""
    return str(value.quantize(Decimal("0.0001"), ROUND_HALF_UP)).removeprefix("0")


@pytest.mark.parametrize("model", TABLE_1)
def test_table_1(model: str) -> None:
    """Each length has as many samples, so the mean over them is that of the cells, with an interval over pairs."""
    counts, cells, mean, f1_cells, mean_f1 = TABLE_1[model]
    by_length = [
        list(samples(right, length, value))
        for right, length, value in zip(counts, LENGTHS, f1_cells.split(), strict=True)
    ]
    assert [printed(accuracy(some)) for some in by_length] == cells.split()
    assert [printed(f1(some)) for some in by_length] == f1_cells.split()
    together = [sample for some in by_length for sample in some]
    estimate = accuracy(together)
    assert printed(estimate) == mean
    assert printed(f1(together)) == mean_f1
    assert estimate is not None and estimate.n == 4 * N and estimate.low is not None and estimate.high is not None
    assert estimate.low < estimate.mean < estimate.high


def test_a_mean_is_of_samples_and_not_of_rounded_cells() -> None:
    """The text has 32.99 % for GPT-OSS: the mean of rounded cells, rounded up. From the counts it is 32.98 %."""
    counts, cells, mean, _, _ = TABLE_1["GPT-OSS-120B"]
    assert rounded(sum(map(Decimal, cells.split()), Decimal()) / 4) == ".3299"
    assert printed(share_of(sum(counts), 4 * N)) == mean == ".3298"


@pytest.mark.parametrize(("right", "cell"), [(395, ".1802"), (581, ".2651"), (302, ".1378")])
def test_table_3(right: int, cell: str) -> None:
    """Preferences that have changed, at 8k: Qwen3-8B, with thinking, and Qwen3-30B-A3B."""
    assert printed(accuracy(samples(right, 8000, evolving=True))) == cell


def test_what_frameworks_add_over_all_lengths() -> None:
    """Qwen3-8B, from the table's own arithmetic: the gains on the mean are those of 8,768 pairs of samples."""
    counts = TABLE_1["Qwen3-8B"][0]
    for name, gain in (("reminder", ".0151"), ("reflexion", ".0755"), ("rag", ".0448")):
        more = round(Decimal(gain) * 4 * N)
        runs = [each for right, length in zip(counts, LENGTHS, strict=True) for each in samples(right, length)]
        helped = [
            {**each, "framework": name, "accuracy": each["accuracy"] or at < more}
            for at, each in enumerate(sorted(runs, key=lambda each: each["accuracy"]))
        ]
        table = gains(ApolloResults([("m", [])]), [*runs, *helped])
        ((model, framework, *cells),) = table.rows
        assert (model, framework) == ("m", name)
        assert printed(cells[-2] if isinstance(cells[-2], Estimate) else None) == gain


@pytest.mark.parametrize(
    ("before", "after", "gain", "cell"), [(966, 1129, ".0744", ".5151"), (679, 971, ".1332", ".4430")]
)
def test_what_notes_add_is_a_paired_difference(before: int, after: int, gain: str, cell: str) -> None:
    """Memory beside the baseline, at 2k and 8k: of the same pairs, so their differences have an interval."""
    pairs = zip(samples(before, 2000), samples(after, 2000), strict=True)
    found = paired_difference((one["pair"], float(two["accuracy"]) - float(one["accuracy"])) for one, two in pairs)
    assert found is not None and found.p is not None and found.p < 0.001
    assert printed(found.estimate) == gain
    assert printed(accuracy(samples(after, 2000))) == cell


def test_errors_are_shares_of_fifty() -> None:
    """Fifty failed samples of each model were labelled."""
    shares = [share_of(count, 50) for count in (19, 24)]
    assert [round(100 * share.mean, 1) for share in shares if share] == [38.0, 48.0]


def test_training_was_tested_on_five_hundred_and_sixteen_pairs() -> None:
    """No smaller number has all three accuracies: 4k before and after, 12k after."""
    cells = (".4438", ".7422", ".7074")
    assert least_n(cells) == 516
    assert [printed(share_of(right, 516)) for right in (229, 383, 365)] == [*cells]


def least_n(cells: Sequence[str]) -> int:
    """The least number of samples of which each of these can be the share of some."""
    return next(n for n in count(1) if _can_have(n, cells))


def test_the_paper_has_two_thousand_one_hundred_and_ninety_two_samples_of_each_length() -> None:
    """No other number up to 2,599 has all accuracies of a length of its table 1, of any length."""
    for cells in ALL_ACCURACIES:
        assert [n for n in range(20, 2600) if _can_have(n, cells)] == [N]


def test_longer_is_not_always_worse_and_f1_is_never_below_accuracy() -> None:
    """What the paper says of lengths fails in two places of its table; a right sample has an F1 of 1."""
    worse: list[tuple[str, int]] = []
    for model, (counts, cells, _, f1_cells, _) in TABLE_1.items():
        worse += [(model, at) for at in range(3) if counts[at] < counts[at + 1]]
        assert all(Decimal(one) <= Decimal(two) for one, two in zip(cells.split(), f1_cells.split(), strict=True))
    assert worse == [("Qwen3-8B (think)", 0), ("GPT-OSS-120B", 2)]


def test_table_3_stands_beside_the_samples_without_earlier_preferences() -> None:
    """Qwen3-8B at 8k: accuracy and F1 of both, from one table of a run that has both."""
    made = _episodes(679, N, mean_f1=0.5248, length=8000) + _episodes(395, N, 0.3962, length=8000, evolving=True)
    found = [row[3:] for row in rows(tables(*made)["evolving"])]
    assert found == [["no", 0.3098, 0.5248, None], ["yes", 0.1802, 0.3962, None]]


def test_figure_4() -> None:
    """GPT-4o where the session is the third, sixth and ninth of ten, with the least samples that have such shares."""
    fewest = {3: (13, 24), 6: (106, 205), 9: (1, 5)}
    made = [each for place, (right, n) in fewest.items() for each in _episodes(right, n, length=0, place=place)]
    found = [(row[2], row[3], row[4]) for row in rows(tables(*made)["place"])]
    assert found == [("10 sessions", 3, 0.5417), ("10 sessions", 6, 0.5171), ("10 sessions", 9, 0.2)]
    (chart,) = [each for each in RECIPE.charts([("GPT-4o", made)]) if each.name == "place-10"]
    ((x, y),) = [(list(line.x), [round(value or 0, 4) for value in line.y]) for line in chart.series]
    assert (x, y) == ([3, 6, 9], [0.5417, 0.5171, 0.2])


def test_figure_6() -> None:
    """Users that were not trained on, at 4k and 12k; trained at 4k alone."""
    before = _episodes(229, 516, length=4000, split="test")
    after = _episodes(383, 516, length=4000, split="test") + _episodes(365, 516, length=12000, split="test")
    (table,) = [each for each in RECIPE.compared([("before", before), ("RL", after)]) if each.name == "users"]
    assert list(table.columns)[2:5] == ["users", "4k %", "12k %"]
    assert [row[:5] for row in rows(table)] == [
        ["before", "function-calling", "test", 0.4438, None],
        ["RL", "function-calling", "test", 0.7422, 0.7074],
    ]


def _episodes(right: int, n: int, mean_f1: float = 1.0, **facets: Any) -> list[Episode]:
    """As many samples, each of a pair of its own, of which so many are right."""
    return [sample(at < right, mean_f1, pair=str(at), **{"sessions": 10, **facets}) for at in range(n)]


def _can_have(n: int, cells: Sequence[str]) -> bool:
    return all(rounded(Decimal(round(Fraction(cell) * n)) / n) == cell for cell in cells)
