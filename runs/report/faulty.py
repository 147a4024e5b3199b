"""What is broken in the dialogues of a report: faults by role, kind and model, and the scores without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from dialoom.graphs import Table
from dialoom.graphs.fault import USER
from dialoom.graphs.gate.review import REVIEWED
from dialoom.runs.selection import selected

from .reported import ReportedRun

_SOUND = f"faults.{USER} == 0"


def faults_table(reported: Sequence[ReportedRun], where: str | None) -> list[Table]:
    """How many dialogues have which faults of whom; nothing if the gate was asked about none of them."""
    several = len(reported) > 1
    rows: list[Sequence[Any]] = []
    notes, is_gated = [], False
    for each in reported:
        counted, dialogues, gated, unsound = Counter[tuple[str, str]](), Counter[tuple[str, str]](), 0, Counter[str]()
        for episode in selected(each.run, each.set_name, where):
            found = [(fault.who, fault.kind) for fault in episode.outcome.faults or ()]
            gated += episode.outcome.faults is not None
            counted.update(found)
            dialogues.update(set(found))
            unsound.update({who for who, _ in found})
        is_gated = is_gated or gated > 0
        for (who, kind), count in sorted(counted.items()):
            model = each.models[who].model if who in each.models else ""
            share = dialogues[who, kind] / gated
            rows.append([*([each.label] if several else []), who, kind, model, count, dialogues[who, kind], share])
        for review in (every for every in each.run.judgement_sets() if every.is_review):
            rows += ([*([each.label] if several else []), *row] for row in _reviewed(each, review.name, where))
            who_reviewed = ", ".join(review.model_names.values())
            stand_in = " (a scripted stand-in, no evidence)" if "offline/" in who_reviewed else ""
            notes.append(f"{who_reviewed}{stand_in} reviewed: {', '.join(REVIEWED)}.")
        rejected = each.run.rejected_lines()
        told = ", ".join(f"{count:,} with a fault of the {who}'s" for who, count in sorted(unsound.items()))
        again = f"; {rejected:,} lines of the {USER}'s were rejected and asked for again" if rejected else ""
        label = f"{each.label}: " if several else ""
        notes.append(f"{label}{gated:,} dialogues passed the gate{f', {told}' if told else ''}{again}.")
    if not is_gated:
        return []
    columns = [*(["run"] if several else []), "role", "fault", "model", "faults", "dialogues", "of all %"]
    return [Table("faults", "What is wrong in the dialogues, and whose fault it is", columns, rows, notes)]


def _reviewed(reported: ReportedRun, name: str, where: str | None) -> Iterator[list[Any]]:
    """What a reviewer found of each kind: whose, which, whose model, how often, in how many dialogues and of all."""
    found, had = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for episode in selected(reported.run, name, where):
        for judgement in episode.outcome.judgements:
            found[judgement.target, judgement.metric] += judgement.score is True
            had[judgement.target, judgement.metric] += judgement.score is not None
    for (who, kind), count in sorted(found.items()):
        if count:
            model = reported.models[who].model if who in reported.models else ""
            yield [who, kind, model, count, count, count / had[who, kind]]


def sound_where(reported: Sequence[ReportedRun], where: str | None) -> str | None:
    """What leaves out dialogues whose user was not sound; `None` if none or all would be left out."""
    users = {
        any(fault.who == USER for fault in episode.outcome.faults)
        for each in reported
        for episode in selected(each.run, each.set_name, where)
        if episode.outcome.faults is not None
    }
    if users != {True, False}:
        return None
    return _SOUND if where is None else f"({where}) and {_SOUND}"


def marked_sound(tables: Sequence[Table]) -> list[Table]:
    """Tables of the dialogues whose user was sound, under names and titles that say so."""
    kept = [table for table in tables if table.name != "dialogues"]
    for table in kept:
        table.name, table.title = f"{table.name}-sound", f"{table.title} (only dialogues whose user was sound)"
    return kept
