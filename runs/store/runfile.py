"""Reading a run's file: what it was told, how far it is, and what came out. Nothing is held that grows with the run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from dialoom.graphs import Episode, Judgement, Line, Outcome, Recipe, Scenario
from dialoom.prompts import PromptLibrary
from dialoom.roles import ModelBinding
from dialoom.runs.config import RunConfig

from . import documents
from .connections import open_for_reading
from .errors import StoreError

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


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and what they took. `None` where a provider did not say, or for a price that is unknown."""

    calls: int
    failed: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class Status:
    """How far a run is, and what it has taken.

    Attributes:
        usage: Of all calls.
        by_role: Of the run's own calls.
        by_judging: Of the calls that later sets of judgements made.
    """

    total: int
    done: int
    failed: int
    usage: Usage
    by_role: Mapping[str, Usage]
    by_judging: Mapping[str, Usage]

    @property
    def pending(self) -> int:
        """Scenarios that are neither done nor failed, begun or not."""
        return self.total - self.done - self.failed


class RunFile:
    """A run's file, open for reading.

    Raises:
        StoreError: If it is not a run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = open_for_reading(path)
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

    def status(self) -> Status:
        """Counts of scenarios and calls, at one moment."""
        self._reader.execute("BEGIN")
        try:
            states = dict(self._reader.execute("SELECT state, count(*) FROM scenarios GROUP BY state").fetchall())
            total = Usage(*self._reader.execute(_USAGE.format(group="NULL", which="true")).fetchone()[1:])
            by_role = self._usage("role", "judging IS NULL")
            by_judging = self._usage("judging", "judging IS NOT NULL")
        finally:
            self._reader.execute("COMMIT")
        done, failed = states.get("done", 0), states.get("failed", 0)
        return Status(sum(states.values()), done, failed, total, by_role, by_judging)

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

    def scenario(self, recipe: Recipe, position: int) -> Scenario:
        """A scenario, from the plan."""
        row = self._reader.execute("SELECT content FROM scenarios WHERE position = ?", (position,)).fetchone()
        return self._unpacked(recipe, row["content"])

    def episode(self, position: int, judging: str | None = None) -> Episode | None:
        """What came of one scenario; `None` while it is pending."""
        return next(self._episodes(position - 1, judging, 1), None)

    def episodes(self, judging: str | None = None) -> Iterator[Episode]:
        """What came of all finished scenarios, in plan order, with one set of judgements (by default the oldest)."""
        return self._episodes(-1, judging, None)

    def outcome(self, position: int) -> Outcome:
        """A finished scenario's outcome, without judgements."""
        row = self._reader.execute("SELECT * FROM outcomes WHERE scenario = ?", (position,)).fetchone()
        return _outcome(row, ())

    def _episodes(self, after: int, judging: str | None, most: int | None) -> Iterator[Episode]:
        chosen = self.judging(judging)
        limit = min(most or _PAGE, _PAGE)
        while True:
            self._reader.execute("BEGIN")
            try:
                rows = self._reader.execute(_EPISODES, (after, after + 1 if most else 2**62, limit)).fetchall()
                if not rows:
                    return
                last = rows[-1]["position"]
                judgements = self._judgements(chosen.name, after, last) if chosen else {}
                tokens = self._output_tokens(after, last)
            finally:
                self._reader.execute("COMMIT")
            for row in rows:
                position = row["position"]
                outcome = _outcome(row, tuple(judgements.get(position, ())))
                facets = json.loads(row["facets"])
                yield Episode(row["id"], facets, row["state"], outcome, tokens.get(position, {}), row["error"])
            after = last

    def _usage(self, group: str, which: str) -> dict[str, Usage]:
        rows = self._reader.execute(_USAGE.format(group=group, which=which) + f" GROUP BY {group}")
        return {name: Usage(*figures) for name, *figures in rows}

    def _judgements(self, judging: str, after: int, last: int) -> dict[int, list[Judgement]]:
        query = (
            "SELECT * FROM judgements WHERE judging = ? AND scenario > ? AND scenario <= ? ORDER BY scenario, ordinal"
        )
        found: dict[int, list[Judgement]] = {}
        for row in self._reader.execute(query, (judging, after, last)):
            found.setdefault(row["scenario"], []).append(_judgement(row))
        return found

    def _output_tokens(self, after: int, last: int) -> dict[int, dict[str, int | None]]:
        """Tokens written, by scenario and role; `None` if a call's are unknown."""
        query = (
            "SELECT scenario, role, sum(output_tokens), count(*) = count(output_tokens) FROM calls "
            "WHERE scenario > ? AND scenario <= ? AND reply IS NOT NULL AND judging IS NULL GROUP BY scenario, role"
        )
        found: dict[int, dict[str, int | None]] = {}
        for scenario, role, tokens, known in self._reader.execute(query, (after, last)):
            found.setdefault(scenario, {})[role] = tokens if known else None
        return found

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


_USAGE = """
SELECT {group}, count(*), count(error), iif(count(reply) = count(input_tokens), total(input_tokens), NULL),
    iif(count(reply) = count(output_tokens), total(output_tokens), NULL), total(cached_tokens),
    iif(count(reply) = count(cost), total(cost), NULL)
FROM calls WHERE {which}"""

_EPISODES = """
SELECT position, id, facets, state, error, ended_by, counts, outcomes.messages
FROM scenarios JOIN outcomes ON scenario = position
WHERE state IN ('done', 'failed') AND position > ? AND position <= ? ORDER BY position LIMIT ?"""


def _bindings(text: str) -> dict[str, ModelBinding]:
    return {role: ModelBinding.model_validate(binding) for role, binding in json.loads(text).items()}


def _outcome(row: sqlite3.Row, judgements: tuple[Judgement, ...]) -> Outcome:
    messages = tuple(Line(role=role, content=content) for role, content in json.loads(row["messages"]))
    counts = json.loads(row["counts"])
    return Outcome(messages=messages, ended_by=row["ended_by"], counts=counts, judgements=judgements)


def _judgement(row: sqlite3.Row) -> Judgement:
    score = row["score"]
    if score is not None:
        score = bool(score) if row["is_verdict"] else int(score) if score.is_integer() else score
    return Judgement(
        metric=row["metric"],
        target=row["target"],
        turn=row["turn"],
        score=score,
        status=row["status"],
        explanation=row["explanation"],
    )
