"""What became of the drafts: how many pass at once, how many after a rewrite, and why the others are out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from dialoom.graphs.apollo_build.recipe import pairs_table, topics_table
from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting.table import Cell, Table
from dialoom.personas.apollo.source.drafts import DRAFTS

KINDS: Sequence[str] = tuple(DRAFTS)


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """Drafts by kind, refusals by check, and what the pairs and sessions are like that have passed."""
    passed: Counter[tuple[str, int]] = Counter()
    out: Counter[str] = Counter()
    refusals: Counter[tuple[str, str, str]] = Counter()
    forms: Counter[tuple[str, str]] = Counter()
    topics: dict[str, list[str]] = {"preference": [], "unrelated": []}
    for episode in episodes:
        if episode.state != "done":
            continue
        details = episode.outcome.details
        for note in details["notes"]:
            if note["result"] == "passed":
                passed[note["kind"], note["round"]] += 1
            else:
                refusals[note["kind"], note["why"].partition(":")[0], note["result"]] += 1
                out[note["kind"]] += note["result"] == "out"
        forms.update((form, kind) for form, kind in details["pairs"])
        for kind, found in details["topics"].items():
            topics[kind] += found
    made = [_drafts(passed, out), _refusals(refusals)]
    if forms:
        made += [pairs_table(forms), topics_table(topics)]
    return [table for table in made if table.rows]


def _drafts(passed: Counter[tuple[str, int]], out: Counter[str]) -> Table:
    rounds = range(1, max([3, *(round_ for _, round_ in passed)]) + 1)
    rows: list[Sequence[Cell]] = []
    for kind in DRAFTS:
        counts: list[Any] = [passed[kind, round_] for round_ in rounds]
        if any(counts) or out[kind]:
            rows.append([kind, sum(counts) + out[kind], *counts, out[kind]])
    columns = ["drafts", "looked at", "pass at once", *(f"rewrite {number - 1}" for number in rounds[1:]), "out"]
    return Table("drafts", "What was written, and when it passed all checks", columns, rows)


def _refusals(counts: Counter[tuple[str, str, str]]) -> Table:
    found = sorted({(kind, check) for kind, check, _ in counts}, key=lambda each: (KINDS.index(each[0]), each[1]))
    rows: list[Sequence[Cell]] = [
        [kind, check, counts[kind, check, "refused"], counts[kind, check, "out"]] for kind, check in found
    ]
    notes = ["Written again: refused, and shown to the writer with the reason. Out: refused for good."]
    return Table("refusals", "What checks have refused", ["drafts", "check", "written again", "out"], rows, notes)
