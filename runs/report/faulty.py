"""Faults in the dialogues of a report, by role, kind and model, and the scores without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialoom.graphs import Table
from dialoom.graphs.fault import USER
from dialoom.graphs.gate import reduced_shares
from dialoom.graphs.review import REVIEWED
from dialoom.runs.scenario_pages import selected
from dialoom.runs.store import JudgementSet

from .reported import ReportedRun

FAULTS = "faults"
"""The name of the table of faults; its columns `role` and `fault` give the role and the kind."""
_SOUND = f"faults.{USER} == 0"


@dataclass(slots=True)
class FaultsOf:
    """The faults in the dialogues of one run.

    Attributes:
        reported: The run.
        gated: Number of dialogues that passed the gate.
        faults: Number of faults, by role and kind.
        dialogues: Number of dialogues with such a fault, by role and kind.
        unsound: Number of dialogues with any fault of a role.
        languages: Number of dialogues that passed the gate, by language as an ISO 639 code.
    """

    reported: ReportedRun
    gated: int = 0
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    dialogues: Counter[tuple[str, str]] = field(default_factory=Counter)
    unsound: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, reported: ReportedRun, where: str | None) -> FaultsOf:
        """Count the faults of the dialogues matching an expression."""
        counted = cls(reported)
        for episode in selected(reported.run, reported.set_name, where):
            found = [(fault.who, fault.kind) for fault in episode.outcome.faults or ()]
            counted.gated += episode.outcome.faults is not None
            counted.languages.update(episode.outcome.languages)
            counted.faults.update(found)
            counted.dialogues.update(set(found))
            counted.unsound.update({who for who, _ in found})
        return counted

    def rows(self, where: str | None) -> Iterator[list[Any]]:
        """Yield role, kind, model, faults, dialogues and their share; faults found by reviewers come last."""
        for (who, kind), count in sorted(self.faults.items()):
            dialogues = self.dialogues[who, kind]
            yield [who, kind, self._model(who), count, dialogues, dialogues / self.gated]
        for review in self._reviews():
            found, had = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
            for episode in selected(self.reported.run, review.name, where):
                for each in episode.outcome.judgements:
                    found[each.target, each.metric] += each.score is True
                    had[each.target, each.metric] += each.score is not None
            for (who, kind), count in sorted(found.items()):
                if count:
                    yield [who, kind, self._model(who), count, count, count / had[who, kind]]

    def notes(self, label: str) -> Iterator[str]:
        """Yield notes on how many dialogues were checked, by which reviewers, and how many lines were rejected."""
        told = [f"{count:,} with a fault of the {who}'s" for who, count in sorted(self.unsound.items())]
        rejected = self.reported.run.rejected_lines()
        again = f"; lines of the {USER}'s that were rejected and asked for again: {rejected:,}" if rejected else ""
        covered = reduced_shares(self.languages, self.gated)
        yield f"{label}Passed the gate: {', '.join([f'{self.gated:,}', *told])}{again}. {covered}"
        for review in self._reviews():
            models = ", ".join(review.model_names.values())
            stand_in = " (a scripted stand-in, no evidence)" if "offline/" in models else ""
            yield f"{label}{models}{stand_in} reviewed: {', '.join(REVIEWED)}."

    def _reviews(self) -> list[JudgementSet]:
        return [each for each in self.reported.run.judgement_sets() if each.is_review]

    def _model(self, role: str) -> str:
        models = self.reported.models
        return models[role].model if role in models else ""


def faults_table(found: Sequence[FaultsOf], where: str | None) -> list[Table]:
    """Return the table of faults by role and kind; nothing if the gate has checked no dialogue."""
    if not any(each.gated for each in found):
        return []
    several = len(found) > 1
    labels = [[each.reported.label] if several else [] for each in found]
    rows = [[*label, *row] for label, each in zip(labels, found, strict=True) for row in each.rows(where)]
    notes = [
        note
        for label, each in zip(labels, found, strict=True)
        for note in each.notes("".join(f"{name}: " for name in label))
    ]
    columns = [*(["run"] if several else []), "role", "fault", "model", "faults", "dialogues", "of all %"]
    return [Table(FAULTS, "What is wrong in what was said and written, and whose fault it is", columns, [*rows], notes)]


def sound_where(found: Sequence[FaultsOf], where: str | None) -> str | None:
    """Return an expression that leaves out dialogues with an unsound user; `None` if it would leave out none or all."""
    unsound = sum(each.unsound[USER] for each in found)
    if not 0 < unsound < sum(each.gated for each in found):
        return None
    return _SOUND if where is None else f"({where}) and {_SOUND}"


def marked_sound(tables: Sequence[Table]) -> list[Table]:
    """Return the tables of dialogues with a sound user, with names and titles that say so."""
    kept = [table for table in tables if table.name != "dialogues"]
    for table in kept:
        table.where = f"({table.where}) and {_SOUND}" if table.where else _SOUND
        table.name, table.title = f"{table.name}-sound", f"{table.title} (only dialogues whose user was sound)"
    return kept
