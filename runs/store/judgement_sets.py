"""Sets of judgements: a run's own set, sets of later judges, and panels of several judges."""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialoom.graphs import Judgement
from dialoom.graphs.outcome import REVIEWER, index_by_subject
from dialoom.grouping import nest_triples
from dialoom.roles import ModelBinding
from dialoom.roles.binding import OBJECT_PREFIX
from dialoom.runs.errors import StoreError

from .references import encode_canonical

OWN_JUDGEMENTS = "run"
"""The name of the set of judgements that a run makes itself."""


@dataclass(frozen=True, slots=True)
class JudgementSet:
    """A set of judgements.

    Attributes:
        name: The name of the set in the run.
        models: The judging models, by role.
        prompts: The hashes of the prompts used, by the prompts' ids.
        members: For a panel, the names of its judges' sets; empty for any other set.
    """

    name: str
    models: Mapping[str, ModelBinding]
    prompts: Mapping[str, str]
    members: tuple[str, ...] = ()

    @property
    def is_review(self) -> bool:
        """Return whether the set rates how users were played, and not what the recipe measures."""
        return REVIEWER in self.models

    @property
    def model_names(self) -> dict[str, str]:
        """The models by role, without their sampling parameters."""
        return {role: binding.model for role, binding in self.models.items()}


def insert_judgement_set(connection: sqlite3.Connection, judgement_set: JudgementSet) -> None:
    """Add a set, or replace the set that has the same name. Called only in jobs of the writer."""
    models = {role: binding.model_dump() for role, binding in judgement_set.models.items()}
    row = (judgement_set.name, encode_canonical(models), encode_canonical(dict(judgement_set.prompts)))
    connection.execute("INSERT OR REPLACE INTO judgement_sets (name, models, prompts) VALUES (?, ?, ?)", row)


PANEL = "panel"
"""The name that selects a run's panel."""


def judges_of(sets: Iterable[JudgementSet]) -> list[list[JudgementSet]]:
    """Return the sets grouped by judge (the same models, sampling and prompts), oldest first.

    Functions that are given as objects are the same judge only in a set and its repetitions (`NAME #2`), because
    different functions can have the same name. Reviews are left out.
    """
    found: dict[str, list[JudgementSet]] = {}
    for each in sets:
        if not each.is_review:
            models = sorted(each.models.items()) or each.name
            is_object = any(binding.model.startswith(OBJECT_PREFIX) for binding in each.models.values())
            own = each.name.partition(" #")[0] if is_object else ""
            found.setdefault(f"{own} {models} {sorted(each.prompts.items())}", []).append(each)
    return [*found.values()]


def panel_of(sets: Sequence[JudgementSet]) -> JudgementSet | None:
    """Return the panel of a run's judges, which uses the oldest set of each judge.

    The result is `None` if there are fewer than two judges, or if a set already has the panel's name.
    """
    judges = [group[0] for group in judges_of(sets) if group[0].models]  # without models, only checks scored the set
    if len(judges) < 2 or any(each.name == PANEL for each in sets):
        return None
    names = nest_triples((role, binding.model, None) for judge in judges for role, binding in judge.models.items())
    models = {role: ModelBinding(model=", ".join(each), temperature=0.0) for role, each in names.items()}
    prompts = {id_: hash_ for judge in reversed(judges) for id_, hash_ in judge.prompts.items()}
    return JudgementSet(PANEL, models, prompts, tuple(judge.name for judge in judges))


def words_of_panel(words: Mapping[str, Sequence[Judgement]]) -> list[Judgement]:
    """Return the panel's judgement on each subject that at least one of its judges has judged.

    Scores are combined by their median, and verdicts by strict majority; without a majority the status is `tied`.
    Unparsed judgements are ignored. If all are unparsed, the panel's judgement is unparsed too.

    Args:
        words: The judgements of one scenario, by the name of the judge's set.
    """
    by_name = ((name, index_by_subject(judgements)) for name, judgements in words.items())
    found = nest_triples((subject, name, each) for name, of_judge in by_name for subject, each in of_judge.items())
    return [_together(by_judge) for by_judge in found.values()]


def _together(by_judge: Mapping[str, Judgement]) -> Judgement:
    scores = [each.score for each in by_judge.values() if each.score is not None]
    first = next(iter(by_judge.values()))
    explanation = "; ".join(
        f"{name}: {each.status if each.score is None else each.score}" for name, each in by_judge.items()
    )
    if not scores:
        return first.model_copy(update={"explanation": explanation})
    if not all(isinstance(score, bool) for score in scores):
        median = statistics.median(map(float, scores))
        score = int(median) if median.is_integer() else median
        return first.model_copy(update={"score": score, "status": "ok", "explanation": explanation})
    yes = sum(scores)
    if 2 * yes == len(scores):
        return first.model_copy(update={"score": None, "status": "tied", "explanation": explanation})
    return first.model_copy(update={"score": 2 * yes > len(scores), "status": "ok", "explanation": explanation})


class SetReader:
    """The reader of a run's sets of judgements."""

    path: Path
    _reader: sqlite3.Connection

    def judgement_sets(self) -> list[JudgementSet]:
        """Return the sets of a run, oldest first.

        Planning always creates the run's own set, because workers cannot add one. It is returned only if it has judging
        models or contains judgements, which a recipe may also make without a model.
        """
        rows = self._reader.execute(
            "SELECT name, models, prompts FROM judgement_sets WHERE name <> ?1 OR models <> '{}' "
            "OR EXISTS (SELECT 1 FROM judgements WHERE judging = ?1) ORDER BY rowid",
            (OWN_JUDGEMENTS,),
        )
        return [
            JudgementSet(
                name,
                {role: ModelBinding.model_validate(binding) for role, binding in json.loads(models).items()},
                json.loads(prompts),
            )
            for name, models, prompts in rows
        ]

    def has_judged(self, name: str) -> bool:
        """Return whether a set of judgements has a judged scenario, or a judge's reply from a judging that failed."""
        query = (
            "SELECT EXISTS (SELECT 1 FROM judged WHERE judging = :name AND state = 'done') "
            "OR EXISTS (SELECT 1 FROM calls WHERE judging = :name AND reply IS NOT NULL)"
        )
        return bool(self._reader.execute(query, {"name": name}).fetchone()[0])

    def unjudged(self, judging: JudgementSet) -> frozenset[str]:
        """Return the ids of finished scenarios that a set's judge has not judged; for a panel, one of its judges.

        The run's own judgements are made while it plays, so they lack no finished scenario.
        """
        query = (
            "SELECT id FROM scenarios WHERE state = 'done' AND NOT EXISTS "
            "(SELECT 1 FROM judged WHERE judging = ? AND scenario = position AND state = 'done')"
        )
        names = [name for name in judging.members or (judging.name,) if name != OWN_JUDGEMENTS]
        return frozenset(row["id"] for name in names for row in self._reader.execute(query, (name,)))

    def judgement_set(self, name: str | None) -> JudgementSet | None:
        """Return the set with a name, or the oldest set if no name is given; `None` if there are no sets.

        If there are several judges, the name `panel` selects their combined judgements.

        Raises:
            StoreError: If there is no set with this name.
        """
        sets = self.judgement_sets()
        if name is None:
            return sets[0] if sets else None
        panel = panel_of(sets)
        known = [*sets, panel] if panel is not None else sets
        found = next((each for each in known if each.name == name), None)
        if found is None:
            names = ", ".join(each.name for each in known) or "none"
            raise StoreError(f"{self.path} has no judgements named {name!r}; there are {names}")
        return found

    def rejudgings(self) -> dict[str, int]:
        """Return the number of scenarios whose unparsed judgements remain to be repeated, by set of judgements."""
        return dict(
            self._reader.execute(
                "SELECT judging, count(*) FROM rejudgings WHERE state = 'pending' GROUP BY judging"
            ).fetchall()
        )

    def unparsed(self, judging: str) -> int:
        """Return the number of unparsed judgements in a set; for a panel, in the sets of its judges."""
        panel = panel_of(self.judgement_sets()) if judging == PANEL else None
        query = "SELECT count(*) FROM judgements WHERE judging = ? AND status = 'unparsed'"
        names = (judging,) if panel is None else panel.members
        return sum(int(self._reader.execute(query, (name,)).fetchone()[0]) for name in names)

    def _chosen(self, judging: str | None) -> Sequence[str]:
        """Return the sets of judgements to read: the selected set, or those of a panel's judges."""
        chosen = self.judgement_set(judging)
        return () if chosen is None else chosen.members or (chosen.name,)
