"""Tables about judges: agreement within a panel, and between two sets of judgements."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from importlib.util import find_spec

from dialoom.graphs import Estimate, Table, Tally, WithFacets, WithJudging, intervals
from dialoom.graphs.outcome import index_by_subject
from dialoom.graphs.tables.statistics import MIN_UNITS
from dialoom.graphs.tables.table import Cell
from dialoom.grouping import group_pairs
from dialoom.runs.reading.scenarios import Where
from dialoom.runs.store import JudgementSet, RecordedEpisode, RunFile, judges_of

from .differences import format_subject
from .health import JUDGEMENT_INTERVALS_NOTE

MISSING_LIBRARIES_NOTE = (
    "Alpha and kappa are computed by libraries that are not installed here: pip install 'dialoom[agree]'."
)
_ALPHA_NOTE = (
    "alpha: Krippendorff's alpha over items with a score in at least two sets, with squared distances between scores; "
    "1 is full agreement, 0 is chance agreement. A dash: undefined, for example because all scores are equal. Verdicts "
    f"count as 1 and 0. Alpha's interval is bootstrapped over people or other units (none for fewer than {MIN_UNITS})."
)


def judges_tables(run: RunFile, where: str | None) -> list[Table]:
    """Return the tables of agreement between judges, and between the sets of each judge; empty for a single set."""
    groups = judges_of(run.judgement_sets())
    columns = ["metric", "judges", "n", "alpha", "all equal %"]
    between = Table("judges", "Agreement between the judges", columns)
    if len(groups) > 1:
        between.rows = [
            [what, len(groups), *row] for what, row in _agreement_rows(run, [group[0] for group in groups], where)
        ]
    own = Table("repeats", "Agreement of each judge with itself", ["judgements", "times", *columns[:1], *columns[2:]])
    for group in groups:
        if len(group) > 1:
            own.rows += [[group[0].name, len(group), what, *row] for what, row in _agreement_rows(run, group, where)]
    for table in (between, own):
        table.facets = {"metric": None, "judgements": None}
        table.notes += [_ALPHA_NOTE, JUDGEMENT_INTERVALS_NOTE, *([] if _has_libraries() else [MISSING_LIBRARIES_NOTE])]
    return [table for table in (between, own) if table.rows]


def _agreement_rows(run: RunFile, sets: Sequence[JudgementSet], where: str | None) -> list[tuple[str, list[Cell]]]:
    """Return a row for each subject of judgement, with the number of items and the agreement of the given sets."""
    scores_by_subject: dict[str, list[list[float]]] = defaultdict(list)
    units: dict[str, list[Hashable]] = defaultdict(list)
    equal: dict[str, Tally] = defaultdict(Tally)
    person = WithFacets.of(run.recipe).unit_facet
    checked = WithJudging.of(run.recipe).check_metrics
    for episodes in _iter_common_episodes(run, sets, where):
        judged = (pair for episode in episodes for pair in index_by_subject(episode.outcome.judgements).items())
        scored = (pair for pair in judged if pair[1].score is not None and pair[1].metric not in checked)
        for judgements in group_pairs(scored).values():
            if len(judgements) > 1:
                what, scores = format_subject(judgements[0]), [float(each.score or 0) for each in judgements]
                scores_by_subject[what].append(scores)
                units[what].append(episodes[0].cluster(person))
                equal[what].add(len({*scores}) == 1, units[what][-1], episodes[0].repeated or episodes[0].scenario)
    rows: list[tuple[str, list[Cell]]] = []
    for what, item_scores in scores_by_subject.items():
        alpha = None
        if _has_libraries():
            from . import rater_agreement  # deferred: imports numpy, and most reports have a single judge

            alpha = rater_agreement.krippendorff_alpha(item_scores, units[what])
        rows.append((what, [len(item_scores), alpha, equal[what].estimate()]))
    return rows


def _iter_common_episodes(
    run: RunFile, sets: Sequence[JudgementSet], where: str | None
) -> Iterator[tuple[RecordedEpisode, ...]]:
    """Yield each finished scenario, once with each set's judgements, if it matches the expression with all sets."""
    condition = None if where is None else Where.parse(where, run)
    for episodes in zip(*(run.episodes(each.name) for each in sets), strict=True):
        if condition is None or all(map(condition.matches, episodes)):
            yield episodes


def comparison_table(run: RunFile, left: JudgementSet, right: JudgementSet, where: str | None = None) -> Table:
    """Compare two sets on the same items: means where both have a score, and the share of equal scores.

    Args:
        run: The run.
        left: The first set.
        right: The second set.
        where: Only scenarios that match this expression with the judgements of both sets.
    """
    columns = ["metric", "n", f"mean {left.name}", f"mean {right.name}", "mean difference", "equal %", "kappa"]
    name = f"compared-{file_safe_name(left.name)}-{file_safe_name(right.name)}"
    table = Table(name, f"Judgements {left.name!r} and {right.name!r} on the same dialogues", columns)
    table.facets = {"metric": None}
    tallies: dict[str, tuple[Tally, Tally, Tally, Tally]] = defaultdict(
        lambda: (Tally(judged=True), Tally(judged=True), Tally(), Tally())
    )
    pairs: dict[tuple[str, str], Counter[tuple[float, float]]] = defaultdict(Counter)
    person = WithFacets.of(run.recipe).unit_facet
    checked = WithJudging.of(run.recipe).check_metrics
    for one, other in _iter_common_episodes(run, (left, right), where):
        theirs = index_by_subject(other.outcome.judgements)
        for subject, judgement in index_by_subject(one.outcome.judgements).items():
            score, second = judgement.score, theirs[subject].score if subject in theirs else None
            if score is None or second is None or judgement.metric in checked:
                continue
            what = format_subject(judgement)
            if isinstance(score, bool) and isinstance(second, bool):
                table.shares[what] = columns[2:5]
            values = (score, second, second - score, score == second)
            pairs[what, judgement.metric][float(score), float(second)] += 1
            for tally, value in zip(tallies[what], values, strict=True):
                tally.add(value, one.cluster(person), one.repeated or one.scenario)
    for (what, metric), counts in pairs.items():
        estimates = [tally.estimate() for tally in tallies[what]]
        kappa = _compute_kappa(counts, WithJudging.of(run.recipe).scales.get(metric))
        table.rows.append([what, counts.total(), *estimates, kappa])
    units = WithFacets.of(run.recipe).units
    table.notes += ["The means cover only items with a score in both sets.", intervals(units), _COUNT_ONCE_NOTE]
    table.notes.append(f"{_KAPPA_NOTE}{'' if _has_libraries() else f' {MISSING_LIBRARIES_NOTE}'}")
    return table


_COUNT_ONCE_NOTE = (
    "For shares of verdicts and of equal scores, judgements of one scenario (turns, trials) count as one."
)
_KAPPA_NOTE = (
    "kappa: Cohen's kappa, for scores with quadratic weights; its interval is asymptotic, as if pairs were independent "
    f"(none for fewer than {MIN_UNITS} pairs or at full agreement). A dash: one of the two sets has only a single "
    "score, "
    "so kappa is not informative."
)


def _compute_kappa(counts: Counter[tuple[float, float]], scale: tuple[int, int] | None) -> Estimate | None:
    """Return Cohen's kappa of pairs of scores; `None` if it is undefined, uninformative or cannot be computed.

    Args:
        counts: The number of each pair of scores.
        scale: The lowest and the highest score; `None` for verdicts.
    """
    low, high = scale or (0, 1)
    if not _has_libraries() or any(
        not score.is_integer() or not low <= score <= high for pair in counts for score in pair
    ):
        return None
    import numpy as np  # deferred: slow to import, and most reports compare no judges

    from .rater_agreement import cohen_kappa

    first, second = (np.array([int(pair[side]) - low for pair in counts.elements()]) for side in (0, 1))
    found = cohen_kappa(first, second, high - low + 1, weighted=scale is not None)
    return None if found is None else Estimate(counts.total(), found.value, found.low, found.high)


def _has_libraries() -> bool:
    """Return whether the libraries of the extra `agree` are installed."""
    return find_spec("nltk") is not None and find_spec("statsmodels") is not None


def file_safe_name(name: str) -> str:
    """Return a set's name in a form that is safe in a file name."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
