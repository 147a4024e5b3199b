"""The paper's figures, recomputed by what makes our tables: from counts of right samples the numbers that it prints.

Its table 1 does not say how many samples a cell has. All accuracies are whole numbers of 2,192.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest

from dialoom.graphs.apollo.gains import gains
from dialoom.graphs.apollo.results import ApolloResults, HistorySize, SampleResult, accuracy, f1
from dialoom.graphs.reporting.statistics import Estimate, paired_difference, share_of

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


def samples(right: int, length: int, mean_f1: str = "1", evolving: bool = False) -> Iterator[SampleResult]:
    """As many samples as the paper has of a length, of which so many are right."""
    size, value = HistorySize("tokens", length), float(mean_f1)
    for at in range(N):
        axes = (size, 1, evolving, "explicit", "reactive", "direct", "food", str(at))
        yield SampleResult(
            "m", "function-calling", *axes, "finished", "text", (), at < right, value, {}, None, None, None
        )


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
            each._replace(framework=name, accuracy=each.accuracy or at < more)
            for at, each in enumerate(sorted(runs, key=lambda each: each.accuracy))
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
    found = paired_difference((one.pair, float(two.accuracy) - float(one.accuracy)) for one, two in pairs)
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
    n = 1
    while not all(printed(share_of(round(Fraction(cell) * n), n)) == cell for cell in cells):
        n += 1
    return n
