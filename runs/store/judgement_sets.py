"""Judgement sets: a run's own, those of later judges, and panels of several."""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dialoom.graphs import Judgement
from dialoom.graphs.outcome import REVIEWER
from dialoom.roles import ModelBinding

from .documents import canonical

OWN_JUDGEMENTS = "run"
"""The name of the set of judgements that a run makes itself."""


@dataclass(frozen=True, slots=True)
class JudgementSet:
    """A set of judgements.

    Attributes:
        name: Its name in the run.
        models: The judging models, by role.
        prompts: The prompts used: hashes by id.
        members: For a panel, the sets of its judges; empty for any other set.
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


def read_judgement_sets(connection: sqlite3.Connection) -> list[JudgementSet]:
    """Return the sets of a run, oldest first.

    Every plan makes the run's own set, because workers cannot add one. It counts as a set only if it has judges or a
    recipe without roles that judge has put judgements in it.
    """
    rows = connection.execute(
        "SELECT name, models, prompts FROM judgement_sets WHERE name <> ?1 OR models <> '{}' "
        "OR EXISTS (SELECT 1 FROM judgements WHERE judging = ?1) ORDER BY rowid",
        (OWN_JUDGEMENTS,),
    )
    return [JudgementSet(name, _bindings(models), json.loads(prompts)) for name, models, prompts in rows]


def insert_judgement_set(connection: sqlite3.Connection, judgement_set: JudgementSet) -> None:
    """Add a set. For jobs of the writer."""
    models = {role: binding.model_dump() for role, binding in judgement_set.models.items()}
    row = (judgement_set.name, canonical(models), canonical(dict(judgement_set.prompts)))
    connection.execute("INSERT INTO judgement_sets (name, models, prompts) VALUES (?, ?, ?)", row)


def _bindings(text: str) -> dict[str, ModelBinding]:
    return {role: ModelBinding.model_validate(binding) for role, binding in json.loads(text).items()}


PANEL = "panel"
"""The name that selects a run's panel."""


def judges_of(sets: Iterable[JudgementSet]) -> list[list[JudgementSet]]:
    """Return the sets grouped by judge, oldest first: the same models, sampling and prompts count as one judge.

    Reviews belong to no judge.
    """
    found: list[list[JudgementSet]] = []
    for each in sets:
        if each.is_review:
            continue
        same = next((group for group in found if _judge(group[0]) == _judge(each)), None)
        if same is None:
            found.append([each])
        else:
            same.append(each)
    return found


def panel_of(sets: Sequence[JudgementSet]) -> JudgementSet | None:
    """Return the panel of a run's judges, each with its oldest set.

    `None` for fewer than two judges, or if a set uses the panel's name.
    """
    judges = [group[0] for group in judges_of(sets)]
    if len(judges) < 2 or any(each.name == PANEL for each in sets):
        return None
    roles = dict.fromkeys(role for judge in judges for role in judge.models)
    models = {role: ModelBinding(model=_names(judges, role), temperature=0.0) for role in roles}
    prompts = {id_: hash_ for judge in reversed(judges) for id_, hash_ in judge.prompts.items()}
    return JudgementSet(PANEL, models, prompts, tuple(judge.name for judge in judges))


def words_of_panel(words: Mapping[str, Sequence[Judgement]]) -> list[Judgement]:
    """Return the panel's judgement on each subject that any of the judges has judged.

    Scores are combined by their median, verdicts by strict majority; without one the status is `tied`. Unparsed
    judgements are left out; if none is left, the panel's is unparsed.

    Args:
        words: The judgements of one scenario by the judge's set.
    """
    by_thing: dict[tuple[str, str, int | None], dict[str, Judgement]] = {}
    for name, judgements in words.items():
        for each in judgements:
            by_thing.setdefault((each.metric, each.target, each.turn), {})[name] = each
    return [_together(said) for said in by_thing.values()]


def _together(said: Mapping[str, Judgement]) -> Judgement:
    scores = [each.score for each in said.values() if each.score is not None]
    first = next(iter(said.values()))
    explanation = "; ".join(
        f"{name}: {each.status if each.score is None else each.score}" for name, each in said.items()
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


def _judge(judgement_set: JudgementSet) -> tuple[object, object]:
    return dict(judgement_set.models) or judgement_set.name, dict(judgement_set.prompts)


def _names(judges: Sequence[JudgementSet], role: str) -> str:
    return ", ".join(dict.fromkeys(judge.models[role].model for judge in judges if role in judge.models))
