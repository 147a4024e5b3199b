"""Differences between assistants: paired on their common scenarios, tested, corrected over all systems together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dialoom.graphs import Table
from dialoom.graphs.capabilities import WithRoles
from dialoom.graphs.reporting.facet import units_of
from dialoom.graphs.reporting.statistics import FEWEST, holm
from dialoom.runs.errors import RunError
from dialoom.runs.report.differences import ALPHA, JudgedDifference, paired_differences

from .entries import PlayedSystem
from .suite import Contrast

_COLUMNS = ("system", "of", "assistant", "mean of the first", "mean", "difference", "p")
_NOTE = (
    "Each assistant beside the first, {first}, on the scenarios that both have finished. Verdicts count as 1 and 0. "
    "In brackets: 95 % intervals, bootstrapped over {units}, as scores of one and the same are not "
    f"independent (none for fewer than {FEWEST}). p: of the same bootstrap, corrected by Holm for all rows of this "
    f"table together; below {ALPHA} a difference is said to be one."
)


def contrasts_table(systems: Sequence[PlayedSystem]) -> list[Table]:
    """Return a table of the differences of each further assistant from the first; none without any common score."""
    rows = [(played, *found) for played in systems for found in _differences(played)]
    if not rows:
        return []
    first = systems[0].reported[0].label
    table = Table("differences", "Differences between the assistants", _COLUMNS, decimals={"p": 3})
    corrected = holm([found.paired.p for _, _, found in rows])
    lower: list[str] = []
    higher: list[str] = []
    unsure: list[str] = []
    untested: list[str] = []
    for (played, contrast, found), p in zip(rows, corrected, strict=True):
        name, estimate = played.system.label, found.paired.estimate
        table.rows.append([name, contrast.name, found.label, found.before, found.after, estimate, p])
        shown = higher if estimate.mean > 0 else lower
        (untested if p is None else shown if p < ALPHA else unsure).append(f"{name}, {contrast.name}, {found.label}")
    said = {
        f"Lower than of {first}": lower,
        f"Higher than of {first}": higher,
        "No difference is shown": unsure,
        "Too few to be tested": untested,
    }
    table.notes += [f"{what}: {'; '.join(names)}." for what, names in said.items() if names]
    units = dict.fromkeys(units_of(played.recipe.facets) for played, _, _ in rows)
    table.notes.append(_NOTE.format(first=first, units=" or ".join(units)))
    return [table]


def check_contrasts(played_metrics: Sequence[str], contrasts: Sequence[Contrast]) -> None:
    """Check that the metrics of the contrasts are judged.

    Raises:
        RunError: If a recipe has no such metric.
    """
    for contrast in contrasts:
        if contrast.metric not in played_metrics:
            known = ", ".join(played_metrics) or "none"
            raise RunError(f"contrasts: {contrast.name}: no metric {contrast.metric!r}; there are {known}")


def _differences(played: PlayedSystem) -> Iterator[tuple[Contrast, JudgedDifference]]:
    """Yield the tested differences of a system, assistant by assistant."""
    for contrast in played.system.contrasts if len(played.reported) > 1 else ():
        found, _ = paired_differences(played.reported, played.recipe, contrast.where)
        for reported in played.reported[1:]:
            whole = f"{contrast.metric} ({WithRoles.of(played.recipe).evaluated})"
            named = {each.what: each for each in found if each.label == reported.label}
            if (row := named.get(whole) or named.get(f"{whole} by turn")) is not None:
                yield contrast, row
