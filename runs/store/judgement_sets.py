"""Sets of judgements: the one that a run makes itself, and those that other judges make of it later."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from dialoom.graphs.fault import REVIEWER
from dialoom.roles import ModelBinding

from .documents import canonical

OWN_JUDGEMENTS = "run"
"""The name of the set of judgements that a run makes itself."""


@dataclass(frozen=True, slots=True)
class JudgementSet:
    """A set of judgements.

    Attributes:
        name: Its name in the run.
        models: Who judged, by role.
        prompts: With which prompts: their ids and hashes.
        members: The sets of whose judges it is the panel; none, if it is a set of its own.
    """

    name: str
    models: Mapping[str, ModelBinding]
    prompts: Mapping[str, str]
    members: tuple[str, ...] = ()

    @property
    def is_review(self) -> bool:
        """Whether it is a reviewer's word on how users were played, and none on what the recipe measures."""
        return REVIEWER in self.models

    @property
    def model_names(self) -> dict[str, str]:
        """The models by role, without their sampling."""
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
