"""The reader of a run's file: configuration, progress and results. Its memory does not grow with the run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pydantic import TypeAdapter

from dialoom.graphs import Outcome, Recipe, WithGate, WithJudging
from dialoom.graphs.gate import Gate, PromptWords, find_copied_forms
from dialoom.graphs.recipe import build_outcome
from dialoom.grouping import group_pairs
from dialoom.prompts import PromptLibrary
from dialoom.roles import MAX_ASKS
from dialoom.runs.configuration.config import RunConfig
from dialoom.runs.configuration.recipes import check_same_recipe, find_in_folders, load_recipe
from dialoom.runs.configuration.trust import Reference, Trust, load_remembered, recipe_references, remember
from dialoom.runs.errors import StoreError
from dialoom.runs.store.episodes import PromotedBranch, RecordedEpisode

from .branches import BranchReader
from .connections import open_for_reading, transaction
from .corruption import CORRUPTION_ERRORS, corruption_error, reporting_corruption, was_raised_in_store
from .episodes import SpokenTexts, read_episode, read_episodes, read_figures, read_outcome, read_state
from .ledger import Booking, CallReader
from .listing import ListReader
from .plan import PlanReader, WorkQueue, thread_of
from .status import StatusReader

if TYPE_CHECKING:  # LangGraph is slow to import, and most reading needs no saver
    from langgraph.checkpoint.base import BaseCheckpointSaver

_SHAPES = TypeAdapter(dict[str, list[str]])


class RunFile(PlanReader, StatusReader, CallReader, ListReader):
    """A run's file, open for reading.

    Args:
        path: The file.
        recipe: The recipe, if it was passed as an object; by default it is found by its name.
        trust: The code and the addresses in the file that may be used; by default those that this user gave on this
            machine when the run was created.

    Attributes:
        queue: The open work.
        branches: The branches of single scenarios.
        on_read: Called for each finished scenario that is read in a sequence. An exception that it raises ends the
            sequence.

    Raises:
        StoreError: If the file is not a run.
        RunError: If the run was created with a different recipe than the given one.
    """

    def __init__(self, path: Path, recipe: Recipe | None = None, trust: Trust | None = None) -> None:
        self._recipe = recipe
        self._trust = trust or Trust()
        self._parsed: tuple[str, RunConfig] | None = None
        self.on_read: Callable[[], None] = lambda: None
        with ExitStack() as opened:
            super().__init__(path, opened.enter_context(closing(open_for_reading(path))))
            self._bookings: dict[str, Booking] = {}
            self.queue = WorkQueue(self._reader, self, self._bookings)
            self.branches = BranchReader(self._reader)
            if recipe is not None and (stored := self._find("recipe")) is not None:
                check_same_recipe(stored, recipe)
            opened.pop_all()  # from now on, `close` closes it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the file. An error that corrupt data caused is reported as corruption of the file."""
        found = self._damage(error, trace)
        self.close()
        if found is not None:
            raise found from error

    def _damage(self, error: BaseException | None, trace: TracebackType | None) -> StoreError | None:
        """Return the error that reports corruption if this error is of a type that bad rows cause; else `None`."""
        if not isinstance(error, CORRUPTION_ERRORS):
            return None
        return corruption_error(
            self.path, error, None if was_raised_in_store(trace) or self._recipe is None else self._recipe.name
        )

    def snapshot(self) -> AbstractContextManager[None]:
        """Read everything in a `with` block as of one moment, so that figures agree while another process writes."""
        return transaction(self._reader)

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    @property
    def id(self) -> str | None:
        """The run's random id, which is known only to those who have the file."""
        return self._find("id")

    @property
    def config(self) -> RunConfig:
        """The run's configuration. It is parsed anew only if its text in the file has changed."""
        if (text := self._find("config")) is None:
            raise StoreError(
                f"{self.path} was left incomplete by a run that was stopped at its start; remove the "
                "file and start the run again"
            )
        if self._parsed is None or self._parsed[0] != text:
            self._parsed = text, RunConfig.model_validate_json(text)
        return self._parsed[1]

    @property
    def recipe(self) -> Recipe:
        """The run's recipe.

        Raises:
            RunError: If it cannot be loaded.
            TrustError: If the recipe is a file that is specified only by the author of the run's file.
        """
        if self._recipe is None:
            self.ensure_trusted(self.recipe_references())
            config = self.config
            self._recipe = load_recipe(config.recipe, self.path, self._recipe_folders, config.study)
        return self._recipe

    @property
    def located_recipe(self) -> str | None:
        """The recipe's name or, for a recipe in a file, its absolute path; `None` if the file does not exist."""
        return find_in_folders(self.config.recipe, self._recipe_folders)

    @property
    def _recipe_folders(self) -> list[Path]:
        """The folders in which a recipe's relative path is looked up: the original, the run's, the working folder."""
        made = (self.config.study or {}).get("folder") or self._find("folder")
        return [*([] if made is None else [Path(made)]), self.path.absolute().parent, Path.cwd()]

    def recipe_references(self) -> list[Reference]:
        """Return the code of which the recipe consists: its file if there is one, or a study's functions."""
        if (study := self.config.study) is not None:
            recipe = load_recipe(self.config.recipe, self.path, self._recipe_folders, study)
            return recipe_references(self.config.recipe, recipe=recipe)
        found = self.located_recipe
        return [] if found is None else recipe_references(self.config.recipe, found)

    def ensure_trusted(self, named: Iterable[Reference]) -> None:
        """Check that code and addresses that the file names may be used.

        Raises:
            TrustError: If one of them is specified only by the author of the run's file.
        """
        if found := list(named):
            self._trust.check(self.path, self._find("id"), found, self.config.code)

    def trust_specified(self, named: Iterable[Reference]) -> None:
        """Trust code and addresses that the user has just specified for this run, and remember them."""
        found = list(named)
        self._trust.trust_specified(found)
        remember(self._find("id"), [each.mark for each in found])

    def report_changed(self, functions: Iterable[str]) -> None:
        """Report functions, given by name, whose code has changed since the run was made."""
        for name in functions:
            self._trust.report_changed(self.path, name, name)

    def already_trusted(self, named: Iterable[Reference]) -> list[Reference]:
        """Return the references that this user has trusted for this run on this machine."""
        marks = load_remembered(self._find("id"))
        return [each for each in named if each.mark in marks]

    def remember(self) -> None:
        """Record the code and addresses whose use was allowed so far, to trust them when the run is reopened."""
        remember(self._find("id"), self._trust.used)

    @property
    def changed_code(self) -> list[str]:
        """The names of code files and functions that had changed when further scenarios of the run were played."""
        return list(json.loads(self._find("changed code") or "[]"))

    @property
    def forgotten(self) -> list[str]:
        """The ids of conversations before which a stateful player may have lost its state, because the run stopped."""
        return list(json.loads(self._find("forgotten") or "[]"))

    @property
    def limits(self) -> str:
        """The latest limits on the run's calls, as the JSON of a `RunLimits`."""
        return self._find("limits") or "{}"

    @property
    def shapes(self) -> dict[str, list[str]]:
        """The reply formats that models have refused; see `Shapes.found`."""
        return _SHAPES.validate_json(self._find("shapes") or "{}")

    @property
    def is_planned(self) -> bool:
        """Return whether planning has finished. The plan is written in one transaction, so it is complete or absent."""
        return self._find("planned") is not None

    @property
    def prompts(self) -> PromptLibrary:
        """The run's prompts, from the texts stored in the file."""
        with reporting_corruption(self.path):
            rows = self._reader.execute("SELECT id, source FROM prompts ORDER BY id")
            return PromptLibrary.from_sources({row["id"]: row["source"] for row in rows})

    @property
    def notes(self) -> list[str]:
        """The messages that planning reported, such as repairs of the source data."""
        return [row["text"] for row in self._reader.execute("SELECT text FROM notes ORDER BY id")]

    def seconds_of_calls(self) -> float:
        """Return the total duration of the answered calls, in seconds."""
        return float(self._reader.execute("SELECT total(latency) FROM calls").fetchone()[0])

    def state_of(self, position: int) -> str:
        """Return a scenario's state: `pending`, `done` or `failed`."""
        row = self._reader.execute("SELECT state FROM scenarios WHERE position = ?", (position,)).fetchone()
        return str(row["state"])

    def samples(self) -> dict[int, int]:
        """Return each scenario's sample number, by position; it is above 0 after a restart from the beginning."""
        return dict(self._reader.execute("SELECT position, sample FROM scenarios ORDER BY position").fetchall())

    def outcome_branch(self, position: int) -> str:
        """Return the branch from which a scenario's outcome comes: `main`, unless another branch was promoted."""
        query = "SELECT branch ->> 'name' FROM scenarios WHERE position = ?"
        return str(self._reader.execute(query, (position,)).fetchone()[0] or "main")

    def promoted_branches(self) -> list[tuple[str, PromotedBranch]]:
        """Return the scenarios whose outcome comes from a branch of the step debugger, with these branches."""
        rows = self._reader.execute("SELECT id, branch FROM scenarios WHERE branch IS NOT NULL ORDER BY position")
        return [(row["id"], PromotedBranch.model_validate_json(row["branch"])) for row in rows]

    def metrics_of(self, judging: str, recipe: Recipe | None) -> dict[str, list[str]]:
        """Return the metrics of a set's first judgements with their targets; for a panel, of its first judge.

        Metrics are in the recipe's order, targets in alphabetical order.
        """
        chosen = self.judgement_set(judging)
        names = (judging,) if chosen is None else chosen.members or (chosen.name,)
        query = "SELECT metric, target FROM (SELECT metric, target FROM judgements WHERE judging = ? LIMIT 5000)"
        found = group_pairs(self._reader.execute(f"{query} GROUP BY 1, 2 ORDER BY 2", names[:1]))
        usual = () if recipe is None else WithJudging.of(recipe).metrics
        order = sorted(found, key=lambda metric: usual.index(metric) if metric in usual else len(usual))
        return {metric: found[metric] for metric in order}

    @property
    def is_gated(self) -> bool:
        """Return whether the gate has checked any outcome for faults."""
        return self._reader.execute("SELECT 1 FROM outcomes WHERE faults IS NOT NULL LIMIT 1").fetchone() is not None

    def rejected_lines(self) -> int:
        """Return the number of simulated users' lines that were requested again because of a fault."""
        return int(
            self._reader.execute(
                "SELECT count(*) FROM calls WHERE ask > ? AND ask % ? = 1 AND branch IS NULL", (MAX_ASKS, MAX_ASKS)
            ).fetchone()[0]
        )

    @asynccontextmanager
    async def checkpointer(self) -> AsyncIterator[BaseCheckpointSaver[int]]:
        """Return the saver with which LangGraph reads this file's checkpoints."""
        from .checkpoints import ReadingSaver

        with closing(ReadingSaver(open_for_reading(self.path))) as saver:
            yield saver

    def message_texts(self) -> SpokenTexts:
        """Return the run's messages, for a full-text index."""
        return SpokenTexts(self._reader)

    def positions(self, state: str) -> list[int]:
        """Return the positions of all scenarios that are `pending`, `done` or `failed`, in plan order."""
        rows = self._reader.execute("SELECT position FROM scenarios WHERE state = ? ORDER BY position", (state,))
        return [row["position"] for row in rows]

    def named_figures(self) -> list[str]:
        """Return the names of facets, counts and metrics, read from the first scenarios, as all have the same."""
        queries = (
            "SELECT DISTINCT each.key FROM (SELECT facets FROM scenarios LIMIT 200), json_each(facets) AS each",
            "SELECT DISTINCT each.key FROM (SELECT counts FROM outcomes LIMIT 200), json_each(counts) AS each",
            "SELECT DISTINCT metric FROM (SELECT metric FROM judgements LIMIT 5000)",
        )
        return [str(name) for query in queries for (name,) in self._reader.execute(query)]

    def episode(self, position: int, judging: str | None = None) -> RecordedEpisode | None:
        """Return one scenario's episode, with the judgements of one set; `None` while the scenario is pending."""
        episode = read_episode(self._reader, self._chosen(judging), position)
        return None if episode is None else self._with_judges(episode)

    def episodes(self, judging: str | None = None) -> Iterator[RecordedEpisode]:
        """Yield all finished scenarios in plan order, with one set of judgements (by default the oldest)."""
        with reporting_corruption(self.path):
            for episode in read_episodes(self._reader, self._chosen(judging)):
                self.on_read()
                yield self._with_judges(episode)

    def figures(self, judging: str | None = None) -> Iterator[tuple[int, RecordedEpisode]]:
        """Yield every scenario's position and its episode without messages, in plan order; see `read_figures`."""
        with reporting_corruption(self.path):
            for found in read_figures(self._reader, self._chosen(judging)):
                self.on_read()
                yield found

    def so_far(self, position: int) -> RecordedEpisode:
        """Return the latest state of a pending scenario, as an episode without an ending or judgements."""
        row = self._reader.execute(
            "SELECT id, trial, facets, take FROM scenarios WHERE position = ?", (position,)
        ).fetchone()
        scenario = self.scenario(self.recipe, position)
        state = {**self.recipe.initial(scenario), **read_state(self._reader, thread_of(row["id"], row["take"]))}
        outcome = build_outcome(self.recipe, scenario, state, failed=True).model_copy(update={"ended_by": ""})
        found = self.gate.add_faults(scenario, outcome)
        return RecordedEpisode(row["id"], json.loads(row["facets"]), "pending", found, trial=row["trial"])

    def outcome(self, position: int) -> Outcome:
        """Return a finished scenario's outcome, without judgements."""
        return read_outcome(self._reader, position)

    @cached_property
    def gate(self) -> Gate:
        """The gate that finds the faults of the run's conversations."""
        return Gate(WithGate.of(self.recipe), self.prompts.values())

    @cached_property
    def _prompt_words(self) -> PromptWords:
        return PromptWords.of(self.prompts.values())

    def _with_judges(self, episode: RecordedEpisode) -> RecordedEpisode:
        """Return an episode with the faults of its judgements added, if the gate has checked it."""
        outcome = episode.outcome
        if outcome.faults is None or not outcome.judgements:
            return episode
        faults = (*outcome.faults, *find_copied_forms(outcome.judgements, self._prompt_words))
        return replace(episode, outcome=outcome.model_copy(update={"faults": faults}))

    def _find(self, key: str) -> str | None:
        row = self._reader.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row["value"])
