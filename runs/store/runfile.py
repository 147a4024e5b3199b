"""Reading a run's file: what it was told, how far it is, and what came out. Nothing is held that grows with the run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from dialoom.graphs import Outcome, Recipe, Scenario
from dialoom.prompts import PromptLibrary
from dialoom.roles import ModelBinding
from dialoom.roles.gateway.budget import Taken
from dialoom.roles.gateway.prices import Prices
from dialoom.runs.branch_taken import BranchTaken, RecordedEpisode
from dialoom.runs.config import RunConfig

from . import documents
from .connections import open_for_reading
from .episodes import read_episodes, read_outcome
from .errors import StoreError
from .status import Status, Troubles, Usage, read_status, read_troubles, read_usage_by_scenario
from .taken import counted

FIRST_JUDGING = "run"
"""The name of the judgements that a run makes itself."""

_PAGE = 200


@dataclass(frozen=True, slots=True)
class Judging:
    """A set of judgements: its name, who judged, and with which prompts (id: hash)."""

    name: str
    models: Mapping[str, ModelBinding]
    prompts: Mapping[str, str]

    @property
    def model_names(self) -> dict[str, str]:
        """The models by role, without their sampling."""
        return {role: binding.model for role, binding in self.models.items()}


class RunFile:
    """A run's file, open for reading.

    Args:
        path: The file.
        locked: Whether the caller holds its lock (only a writer does).

    Raises:
        StoreError: If it is not a run.
    """

    def __init__(self, path: Path, locked: bool = False) -> None:
        self.path = path
        self._reader = open_for_reading(path, locked)
        self._document = lru_cache(maxsize=512)(self._read_document)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    @property
    def config(self) -> RunConfig:
        """What the run was told."""
        return RunConfig.model_validate_json(self._value("config"))

    @property
    def limits(self) -> str:
        """What bounds its calls, as it was given last: the JSON of a `RunLimits`."""
        row = self._reader.execute("SELECT value FROM run WHERE key = 'limits'").fetchone()
        return "{}" if row is None else str(row["value"])

    @property
    def is_planned(self) -> bool:
        """Whether planning was finished; it is one transaction, so it is whole or not there."""
        return self._reader.execute("SELECT 1 FROM run WHERE key = 'planned'").fetchone() is not None

    @property
    def prompts(self) -> PromptLibrary:
        """The run's prompts, from the texts that it keeps."""
        rows = self._reader.execute("SELECT id, source FROM prompts ORDER BY id")
        return PromptLibrary.from_sources({row["id"]: row["source"] for row in rows})

    @property
    def notes(self) -> list[str]:
        """What planning had to say."""
        return [row["text"] for row in self._reader.execute("SELECT text FROM notes ORDER BY id")]

    def judgings(self) -> list[Judging]:
        """The sets of judgements, oldest first."""
        rows = self._reader.execute("SELECT name, models, prompts FROM judgings ORDER BY rowid")
        return [Judging(row["name"], _bindings(row["models"]), json.loads(row["prompts"])) for row in rows]

    def judging(self, name: str | None) -> Judging | None:
        """The set of that name; without a name the oldest; `None` if there is none at all.

        Raises:
            StoreError: If there is no set of that name.
        """
        judgings = self.judgings()
        if name is None:
            return judgings[0] if judgings else None
        found = next((judging for judging in judgings if judging.name == name), None)
        if found is None:
            names = ", ".join(judging.name for judging in judgings) or "none"
            raise StoreError(f"{self.path} has no judgements named {name!r}; there are {names}")
        return found

    def state_of(self, position: int) -> str:
        """What has become of a scenario: `pending`, `done` or `failed`."""
        row = self._reader.execute("SELECT state FROM scenarios WHERE position = ?", (position,)).fetchone()
        return str(row["state"])

    def outcome_branch(self, position: int) -> str:
        """The branch that a scenario's outcome comes from: `main`, unless another was promoted."""
        query = "SELECT branch ->> 'name' FROM scenarios WHERE position = ?"
        return str(self._reader.execute(query, (position,)).fetchone()[0] or "main")

    def branches_taken(self) -> list[tuple[str, BranchTaken]]:
        """The scenarios whose outcome came from a branch of the step debugger, by their ids."""
        rows = self._reader.execute("SELECT id, branch FROM scenarios WHERE branch IS NOT NULL ORDER BY position")
        return [(row["id"], BranchTaken.model_validate_json(row["branch"])) for row in rows]

    def status(self) -> Status:
        """How far the run is and what it has taken."""
        return read_status(self._reader)

    def troubles(self) -> dict[str, Troubles]:
        """Attempts that failed, by model."""
        return read_troubles(self._reader)

    def taken(self, prices: Prices) -> Taken:
        """What the run has taken in all, as its budget counts."""
        return counted(self._reader, prices)

    def rejudgings(self) -> dict[str, int]:
        """How many scenarios' unparsed judgements are yet to be made again, by set."""
        query = "SELECT judging, count(*) FROM rejudgings WHERE state = 'pending' GROUP BY judging"
        return dict(self._reader.execute(query).fetchall())

    def unparsed(self, judging: str) -> int:
        """How many judgements of a set are unparsed."""
        query = "SELECT count(*) FROM judgements WHERE judging = ? AND status = 'unparsed'"
        return int(self._reader.execute(query, (judging,)).fetchone()[0])

    def usage_by_scenario(self) -> dict[int, dict[str, Usage]]:
        """What the calls of each played scenario took, by role. For small runs: it is held at once."""
        return read_usage_by_scenario(self._reader)

    def resolve(self, name: str) -> int:
        """The position of a scenario by its id, the beginning of its id, or its place in the plan (from 1).

        Raises:
            StoreError: If it fits none or several.
        """
        if name.isdecimal() and (row := self._scenario_row("position = ?", int(name) - 1)):
            return int(row["position"])
        if row := self._scenario_row("id = ?", name):
            return int(row["position"])
        # Ids sort by their text, so those that begin alike stand together in the index.
        query = "SELECT position, id FROM scenarios WHERE id >= ? AND id < ? ORDER BY position LIMIT 4"
        rows = self._reader.execute(query, (name, name + "\U0010ffff")).fetchall() if name else []
        if len(rows) == 1:
            return int(rows[0]["position"])
        if rows:
            some = ", ".join(row["id"] for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
            raise StoreError(f"{name!r} is the beginning of several scenarios: {some}; give more of the id")
        raise StoreError(f"{self.path} has no scenario {name!r}; 'dialoom show {self.path}' lists them")

    def listing(self) -> Iterator[tuple[int, str, str, str | None]]:
        """Every scenario's place in the plan, id, state and ending, in plan order."""
        query = (
            "SELECT position, id, state, ended_by FROM scenarios LEFT JOIN outcomes ON scenario = position "
            "WHERE position > ? ORDER BY position LIMIT ?"
        )
        for page in self._pages(query):
            yield from ((row["position"], row["id"], row["state"], row["ended_by"]) for row in page)

    def planned_facets(self) -> Iterator[dict[str, Any]]:
        """What every scenario shows of itself, in plan order, finished or not."""
        for page in self._pages("SELECT position, facets FROM scenarios WHERE position > ? ORDER BY position LIMIT ?"):
            yield from (json.loads(row["facets"]) for row in page)

    def scenario(self, recipe: Recipe, position: int) -> Scenario:
        """A scenario, from the plan."""
        row = self._reader.execute("SELECT content FROM scenarios WHERE position = ?", (position,)).fetchone()
        return self._unpacked(recipe, row["content"])

    def episode(self, position: int, judging: str | None = None) -> RecordedEpisode | None:
        """What came of one scenario, with the judgements of one set; `None` while it is pending."""
        return next(iter([*read_episodes(self._reader, self._chosen(judging), position - 1, position + 1)]), None)

    def episodes(self, judging: str | None = None) -> Iterator[RecordedEpisode]:
        """What came of all finished scenarios, in plan order, with one set of judgements (by default the oldest)."""
        return read_episodes(self._reader, self._chosen(judging))

    def outcome(self, position: int) -> Outcome:
        """A finished scenario's outcome, without judgements."""
        return read_outcome(self._reader, position)

    def _chosen(self, judging: str | None) -> str | None:
        chosen = self.judging(judging)
        return chosen.name if chosen else None

    def _pages(self, query: str, *values: Any) -> Iterator[list[sqlite3.Row]]:
        """A query's rows page by page, so that no read lasts long; it takes the last position and a page's size."""
        after = -1
        while rows := self._reader.execute(query, (after, _PAGE, *values)).fetchall():
            yield rows
            after = rows[-1]["position"]

    def _scenario_row(self, condition: str, value: Any) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._reader.execute(
            f"SELECT position FROM scenarios WHERE {condition}", (value,)
        ).fetchone()
        return row

    def _unpacked(self, recipe: Recipe, content: str) -> Scenario:
        return recipe.scenario_type.model_validate(documents.unpack(content, self._document))

    def _read_document(self, hash_: bytes) -> str:
        row = self._reader.execute("SELECT content FROM documents WHERE hash = ?", (hash_,)).fetchone()
        if row is None:
            raise StoreError(f"{self.path} lacks the document {hash_.hex()}; the file is damaged")
        return str(row["content"])

    def _value(self, key: str) -> str:
        row = self._reader.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise StoreError(f"{self.path} was stopped before its run was written; remove it and start it again")
        return str(row["value"])


def _bindings(text: str) -> dict[str, ModelBinding]:
    return {role: ModelBinding.model_validate(binding) for role, binding in json.loads(text).items()}
