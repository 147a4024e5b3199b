"""Agreement as a table for people and as plain values for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dialoom.graphs import Table
from dialoom.graphs.reporting.statistics import FEWEST, RESAMPLES

from .kappa import Kappa
from .results import Agreement, EarlierLabels, GroupAgreement, RaterComparison

_COLUMNS = ("metric", "between", "n", "kappa", "weighted kappa", "agreement %")
_WHAT = (
    "Kappa: agreement beyond chance, 0 as by chance, 1 full. Cohen's between the judge and an annotator, with the "
    "asymptotic 95 % interval; the mean of these, and Fleiss' between annotators over items that all of them labelled, "
    f"with a bootstrap interval ({RESAMPLES:,} resamples of the items). Weighted: a disagreement counts by the "
    "square of its size."
)
_SCENARIOS = 5
"""So many ids are named at the most."""
_ONE_VALUE = (
    "A dash where there are labels: a rater gave one value only (of one item nobody can give two), and kappa is then "
    "undefined, or 0 whatever the others say."
)
_NO_INTERVAL = (
    f"No interval stands where it would say nothing of how sure a kappa is: of fewer than {FEWEST} items, and where it "
    "has no width, as at full agreement."
)


def table_of(agreement: Agreement, offline: str | None) -> Table:
    """The kappas, a few rows per metric and target.

    Args:
        agreement: What came of a labels file.
        offline: What is to be said of an offline model that played, if one did.
    """
    table = Table("agreement", "Agreement of the judge and the annotators", _COLUMNS)
    for each in agreement.groups:
        for between, compared in _rows(each):
            kappas = map(_text, (compared.kappa, compared.weighted))
            table.rows.append([str(each.group), between, compared.n, *kappas, compared.agreement])
    table.notes += notes(agreement)
    if offline is not None:
        table.notes.append(offline)
    return table


def notes(agreement: Agreement) -> list[str]:
    """What a reader must know of these kappas, and what is not in them."""
    compared = [each for group in agreement.groups for _, each in _rows(group)]
    kappas = [kappa for each in compared for kappa in (each.kappa, each.weighted) if kappa is not None]
    found = [_WHAT]
    if any(each.n and each.kappa is None for each in compared):
        found.append(_ONE_VALUE)
    if any(kappa.low is None for kappa in kappas):
        found.append(_NO_INTERVAL)
    if skipped := max((kappa.skipped for kappa in kappas), default=0):
        found.append(f"Resamples in which a kappa is undefined are not in its interval: up to {skipped:,}.")
    if agreement.earlier.count:
        found.append(_earlier(agreement.earlier))
    for group in agreement.groups:
        found += _gaps(group, len(agreement.annotators))
    return found


def as_json(agreement: Agreement) -> dict[str, Any]:
    """Everything as plain values; a kappa or an interval that there is not is null."""
    return {
        "annotators": list(agreement.annotators),
        "agreement": [
            {
                **each.group._asdict(),
                "scale": "verdict" if each.scale.is_verdict else [each.scale.low, each.scale.high],
                "cohen": {name: _values(compared) for name, compared in each.cohen.items()},
                "average": {**_values(each.average), "annotators": each.averaged},
                "fleiss": None if each.fleiss is None else _values(each.fleiss),
                "missing": dict(each.missing),
                "unscored": each.unscored,
            }
            for each in agreement.groups
        ],
        "earlier": {"labels": agreement.earlier.count, "scenarios": list(agreement.earlier.scenarios)},
        "notes": notes(agreement),
    }


def _rows(group: GroupAgreement) -> Iterator[tuple[str, RaterComparison]]:
    for name, compared in group.cohen.items():
        yield f"judge, {name}", compared
    if group.fleiss is not None:
        yield "judge, annotators (mean)", group.average
        yield "annotators (Fleiss)", group.fleiss


def _earlier(earlier: EarlierLabels) -> str:
    """Which labels are of conversations that are not there now, and why."""
    shown = ", ".join(earlier.scenarios[:_SCENARIOS]) + (", ..." if len(earlier.scenarios) > _SCENARIOS else "")
    return (
        f"Labels given to an earlier conversation, left out: {earlier.count:,}, of {len(earlier.scenarios):,} "
        f"scenario{'' if len(earlier.scenarios) == 1 else 's'} ({shown}). Another branch has become the outcome there, "
        "or it was played anew; where the conversation that was labelled becomes the outcome again, they count again."
    )


def _gaps(group: GroupAgreement, annotators: int) -> Iterator[str]:
    """What is missing of a group."""
    if missing := [f"{name} {count:,}" for name, count in group.missing.items() if count]:
        yield f"{group.group}: cells without a label, left out: {', '.join(missing)}."
    if group.unscored:
        yield f"{group.group}: items for which the judge has no score, left out of its rows: {group.unscored:,}."
    if 0 < group.averaged < annotators:
        yield f"{group.group}: the mean is over {group.averaged} of {annotators} annotators, those with a kappa."


def _text(kappa: Kappa) -> str:
    if kappa is None:
        return "–"
    # A kappa of -0.001 is shown as 0.00.
    value, *ends = (f"{round(each, 2) + 0.0:.2f}" for each in (kappa.value, kappa.low, kappa.high) if each is not None)
    return f"{value} [{', '.join(ends)}]" if ends else value


def _values(compared: RaterComparison) -> dict[str, Any]:
    return {
        "n": compared.n,
        **_interval(compared.kappa),
        "weighted": None if compared.is_unordered else _interval(compared.weighted),
        "agreement": compared.agreement,
    }


def _interval(kappa: Kappa) -> dict[str, float | None]:
    if kappa is None:
        return dict.fromkeys(("kappa", "low", "high"))
    return {"kappa": kappa.value, "low": kappa.low, "high": kappa.high}
