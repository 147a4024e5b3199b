"""Two sets of judgements of one run, compared."""

from __future__ import annotations

from collections import defaultdict

from dialoom.graphs import Judgement, Table, Tally, intervals
from dialoom.runs.selection import Where
from dialoom.runs.store import JudgementSet, RunFile

from .differences import what_of


def comparison(run: RunFile, left: JudgementSet, right: JudgementSet, where: str | None = None) -> Table:
    """What two sets say of the same things: means where both have a score, and how often they are equal.

    Args:
        run: The run.
        left: One set.
        right: The other.
        where: Only scenarios of which this holds with the judgements of both.
    """
    wanted = None if where is None else Where.parse(where, run)
    columns = ["metric", "n", f"mean {left.name}", f"mean {right.name}", "mean difference", "equal %"]
    name = f"compared-{file_name(left.name)}-{file_name(right.name)}"
    table = Table(name, f"Judgements {left.name!r} and {right.name!r} on the same dialogues", columns)
    tallies: dict[str, tuple[Tally, Tally, Tally, Tally]] = defaultdict(lambda: (Tally(), Tally(), Tally(), Tally()))
    person = run.recipe.split_by
    for one, other in zip(run.episodes(left.name), run.episodes(right.name), strict=True):
        if wanted is not None and not (wanted.keeps(one) and wanted.keeps(other)):
            continue
        theirs = {_key(judgement): judgement.score for judgement in other.outcome.judgements}
        for judgement in one.outcome.judgements:
            score, second = judgement.score, theirs.get(_key(judgement))
            if score is None or second is None:
                continue
            what = what_of(judgement)
            values = (score, second, second - score, score == second)
            for tally, value in zip(tallies[what], values, strict=True):
                tally.add(value, one.id if person is None else one.facets[person])
    for what, (first, second_, difference, equal) in tallies.items():
        estimates = [tally.estimate() for tally in (first, second_, difference, equal)]
        table.rows.append([what, first.n, *estimates])
    units = "scenarios" if person is None else run.recipe.resampled
    table.notes += ["Only judgements that both sets have a score for; verdicts count as 1 and 0.", intervals(units)]
    return table


def _key(judgement: Judgement) -> tuple[str, str, int | None]:
    return judgement.metric, judgement.target, judgement.turn


def file_name(name: str) -> str:
    """A set's name, fit for a file's."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
