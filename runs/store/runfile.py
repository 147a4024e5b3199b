"""The reader of a run's file: configuration, progress and results. Its memory does not grow with the run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pydantic import TypeAdapter

from dialoom.graphs import Outcome, Recipe, Scenario
from dialoom.graphs.capabilities import WithGate, WithJudging
from dialoom.graphs.gate import Gate, PromptWords, copied_forms
from dialoom.graphs.recipe import finished
from dialoom.prompts import PromptLibrary
from dialoom.roles import ASKS
from dialoom.roles.gateway.budget import Spend
from dialoom.roles.gateway.model_facts import Prices
from dialoom.runs.configuration.config import RunConfig
from dialoom.runs.configuration.recipes import check_same, in_folder, load_recipe
from dialoom.runs.configuration.trust import Reference, Trust, recipe_references, remember, remembered
from dialoom.runs.errors import StoreError
from dialoom.runs.store.episodes import PromotedBranch, RecordedEpisode

from .branches import BranchReader
from .connections import open_for_reading
from .corruption import SIGNS, damaged, is_of_the_store, reading
from .episodes import SpokenTexts, read_episode, read_episodes, read_figures, read_outcome, read_state
from .judgement_sets import OWN_JUDGEMENTS, JudgementSet, panel_of, read_judgement_sets
from .ledger import (
    CommonCall,
    RecordedRequest,
    read_calls,
    read_calls_of,
    read_common_calls,
    read_request,
    read_unsound,
)
from .listing import Choices, Neighbours, ScenarioPage, ScenarioQuery, read_choices, read_neighbours, read_page
from .plan import ScenarioTable, WorkQueue, thread_of
from .status import (
    CheckErrors,
    FailedAttempts,
    FailureCause,
    Status,
    Usage,
    counted,
    read_causes,
    read_changes,
    read_check_errors,
    read_common_usage,
    read_failed_attempts,
    read_status,
    read_usage_by_model,
    read_usage_by_scenario,
)

if TYPE_CHECKING:  # LangGraph is slow to import, and most reading needs no saver
    from langgraph.checkpoint.base import BaseCheckpointSaver

_SHAPES = TypeAdapter(dict[str, list[str]])


class RunFile:
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
        self.path = path
        self._recipe = recipe
        self._trust = trust or Trust()
        self._parsed: tuple[str, RunConfig] | None = None
        self.on_read: Callable[[], None] | None = None
        with ExitStack() as opened:
            self._reader = opened.enter_context(closing(open_for_reading(path)))
            self._scenarios = ScenarioTable(path, self._reader)
            self.queue = WorkQueue(self._reader, self._scenarios, {})
            self.branches = BranchReader(self._reader)
            if recipe is not None and (stored := self._find("recipe")) is not None:
                check_same(stored, recipe)
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
        if not isinstance(error, SIGNS):
            return None
        reader = None if is_of_the_store(trace) or self._recipe is None else self._recipe.name
        return damaged(self.path, error, reader)

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
        text = self._value("config")
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
        return in_folder(self.config.recipe, self._recipe_folders)

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

    def already_trusted(self, named: Iterable[Reference]) -> list[Reference]:
        """Return the references that this user has trusted for this run on this machine."""
        marks = remembered(self._find("id"))
        return [each for each in named if each.mark in marks]

    def remember(self) -> None:
        """Record the code and addresses whose use was allowed so far, to trust them when the run is reopened."""
        remember(self._find("id"), self._trust.used)

    @property
    def changed_code(self) -> list[str]:
        """The names of code files that had changed when further scenarios of the run were played."""
        found: list[str] = json.loads(self._find("changed code") or "[]")
        return found

    @property
    def forgotten(self) -> list[str]:
        """The ids of conversations before which a stateful player may have lost its state, because the run stopped."""
        found: list[str] = json.loads(self._find("forgotten") or "[]")
        return found

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
        with reading(self.path):
            rows = self._reader.execute("SELECT id, source FROM prompts ORDER BY id")
            return PromptLibrary.from_sources({row["id"]: row["source"] for row in rows})

    @property
    def notes(self) -> list[str]:
        """The messages that planning reported, such as repairs of the source data."""
        return [row["text"] for row in self._reader.execute("SELECT text FROM notes ORDER BY id")]

    def judgement_sets(self) -> list[JudgementSet]:
        """Return the sets of judgements, oldest first."""
        return read_judgement_sets(self._reader)

    def has_judged(self, name: str) -> bool:
        """Return whether any scenario was judged for a set of judgements, even if the judging failed."""
        query = "SELECT EXISTS (SELECT 1 FROM judged WHERE judging = ?)"
        return bool(self._reader.execute(query, (name,)).fetchone()[0])

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

    @property
    def planned(self) -> int:
        """The number of scenarios in the plan."""
        return int(self._reader.execute("SELECT count(*) FROM scenarios").fetchone()[0])

    def status(self) -> Status:
        """Return the run's progress and spend."""
        return read_status(self._reader)

    def changes(self) -> dict[str, dict[str, int]]:
        """Return the number of calls whose sent settings differ from the configured ones, by role and by reason."""
        return read_changes(self._reader)

    def failed_attempts(self) -> dict[str, FailedAttempts]:
        """Return the failed attempts at calls, by model."""
        return read_failed_attempts(self._reader)

    def usage_by_model(self) -> dict[str, Usage]:
        """Return the usage of all calls by the model called."""
        return read_usage_by_model(self._reader)

    def failure_causes(self, most: int = 10) -> list[FailureCause]:
        """Return the causes of failed scenarios, the most frequent first."""
        return read_causes(self._reader, most)

    def check_errors(self) -> list[CheckErrors]:
        """Return the errors of checks, by metric."""
        return read_check_errors(self._reader, OWN_JUDGEMENTS)

    def spend(self, prices: Prices) -> Spend:
        """Return the total of calls, tokens and dollars that count against the run's budget."""
        return counted(self._reader, prices)

    def metrics_of(self, judging: str, recipe: Recipe | None) -> list[str]:
        """Return the metrics of a set's first judgements, in the recipe's order; for a panel, of its first judge."""
        chosen = self.judgement_set(judging)
        names = (judging,) if chosen is None else chosen.members or (chosen.name,)
        query = "SELECT DISTINCT metric FROM (SELECT metric FROM judgements WHERE judging = ? LIMIT 5000)"
        found = [str(metric) for (metric,) in self._reader.execute(query, names[:1])]
        usual = () if recipe is None else WithJudging.of(recipe).metrics
        return sorted(found, key=lambda metric: usual.index(metric) if metric in usual else len(usual))

    @property
    def is_gated(self) -> bool:
        """Return whether the gate has checked any outcome for faults."""
        return self._reader.execute("SELECT 1 FROM outcomes WHERE faults IS NOT NULL LIMIT 1").fetchone() is not None

    def rejected_lines(self) -> int:
        """Return the number of simulated users' lines that were requested again because of a fault."""
        query = "SELECT count(*) FROM calls WHERE ask > ? AND ask % ? = 1 AND branch IS NULL"
        return int(self._reader.execute(query, (ASKS, ASKS)).fetchone()[0])

    def rejudgings(self) -> dict[str, int]:
        """Return the number of scenarios whose unparsed judgements remain to be repeated, by set of judgements."""
        query = "SELECT judging, count(*) FROM rejudgings WHERE state = 'pending' GROUP BY judging"
        return dict(self._reader.execute(query).fetchall())

    def unparsed(self, judging: str) -> int:
        """Return the number of unparsed judgements in a set."""
        query = "SELECT count(*) FROM judgements WHERE judging = ? AND status = 'unparsed'"
        return int(self._reader.execute(query, (judging,)).fetchone()[0])

    def calls(self) -> Iterator[dict[str, Any]]:
        """Yield every call of a model, without its request; see `read_calls` for the fields."""
        return read_calls(self._reader)

    def calls_of(self, position: int) -> list[dict[str, Any]]:
        """Return the calls of one scenario; see `read_calls` for the fields."""
        return read_calls_of(self._reader, position)

    def request(self, call: int) -> RecordedRequest | None:
        """Return a call's request, by its row in the ledger; `None` if there is no such call."""
        return read_request(self._reader, int(call))  # SQLite would not match a numpy integer

    @asynccontextmanager
    async def checkpointer(self) -> AsyncIterator[BaseCheckpointSaver[int]]:
        """Return the saver with which LangGraph reads this file's checkpoints."""
        from .checkpoints import ReadingSaver

        with closing(ReadingSaver(open_for_reading(self.path))) as saver:
            yield saver

    def unsound(self) -> list[int]:
        """Return the positions of the scenarios with faults, or with lines that were requested again due to faults."""
        return read_unsound(self._reader)

    def usage_by_scenario(self) -> dict[int, dict[str, Usage]]:
        """Return the usage of each played scenario's calls, by role. The whole result is in memory."""
        return read_usage_by_scenario(self._reader)

    def common_calls(self, position: int) -> list[CommonCall]:
        """Return the common calls (which belong to no scenario) that a scenario used."""
        return read_common_calls(self._reader, position)

    def common_usage(self) -> tuple[dict[str, Usage], dict[str, Usage]]:
        """Return two usages by role: of the common calls that only one scenario uses, and of all other common calls."""
        return read_common_usage(self._reader)

    def resolve(self, name: str) -> int:
        """Return the position of a scenario by its id, a prefix of its id, or its number in the plan (from 1).

        Raises:
            StoreError: If no scenario or several match.
        """
        return self._scenarios.resolve(name)

    def position_of(self, id_: str) -> int | None:
        """Return the position of a scenario by its full id; `None` if there is none."""
        return self._scenarios.position_of(id_)

    def listing(self) -> Iterator[tuple[int, str, str, str | None]]:
        """Yield every scenario's position, id, state and ending, in plan order."""
        return self._scenarios.listing()

    def page(self, query: ScenarioQuery, offset: int, limit: int) -> ScenarioPage:
        """Return a page of the scenarios that a query finds, without their messages.

        Raises:
            StoreError: If the query is invalid, or its set of judgements does not exist.
        """
        return read_page(self._reader, self._judging_of(query), query, offset, limit)

    def neighbours(self, position: int, query: ScenarioQuery) -> Neighbours | None:
        """Return the previous and the next scenario in a query's result; `None` if the query does not find this one.

        Raises:
            StoreError: In the same cases as `page`.
        """
        return read_neighbours(self._reader, self._judging_of(query), query, position)

    def _judging_of(self, query: ScenarioQuery) -> str:
        chosen = self.judgement_set(query.judging)
        return chosen.name if chosen else OWN_JUDGEMENTS

    def choices(self) -> Choices:
        """Return the values by which to filter, with counts: `state`, `ended_by`, `fault`, `fault_of`, `facet:NAME`."""
        return read_choices(self._reader)

    def message_texts(self) -> SpokenTexts:
        """Return the run's messages, for a full-text index."""
        return SpokenTexts(self._reader)

    def positions(self, state: str) -> list[int]:
        """Return the positions of all scenarios that are `pending`, `done` or `failed`, in plan order."""
        rows = self._reader.execute("SELECT position FROM scenarios WHERE state = ? ORDER BY position", (state,))
        return [row["position"] for row in rows]

    def planned_facets(self) -> Iterator[dict[str, Any]]:
        """Yield the facets of every scenario in plan order, whether it is finished or not."""
        return self._scenarios.facets()

    def named_figures(self) -> list[str]:
        """Return the names of facets, counts and metrics, read from the first scenarios, as all have the same."""
        queries = (
            "SELECT DISTINCT each.key FROM (SELECT facets FROM scenarios LIMIT 200), json_each(facets) AS each",
            "SELECT DISTINCT each.key FROM (SELECT counts FROM outcomes LIMIT 200), json_each(counts) AS each",
            "SELECT DISTINCT metric FROM (SELECT metric FROM judgements LIMIT 5000)",
        )
        return [str(name) for query in queries for (name,) in self._reader.execute(query)]

    def scenario(self, recipe: Recipe, position: int) -> Scenario:
        """Return the scenario at a position of the plan."""
        row = self._reader.execute("SELECT content FROM scenarios WHERE position = ?", (position,)).fetchone()
        return self._scenarios.scenario(recipe, row["content"])

    def episode(self, position: int, judging: str | None = None) -> RecordedEpisode | None:
        """Return one scenario's episode, with the judgements of one set; `None` while the scenario is pending."""
        episode = read_episode(self._reader, self._chosen(judging), position)
        return None if episode is None else self._with_judges(episode)

    def episodes(self, judging: str | None = None) -> Iterator[RecordedEpisode]:
        """Yield all finished scenarios in plan order, with one set of judgements (by default the oldest)."""
        with reading(self.path):
            for episode in read_episodes(self._reader, self._chosen(judging)):
                self._notify_read()
                yield self._with_judges(episode)

    def figures(self, judging: str | None = None) -> Iterator[tuple[int, RecordedEpisode]]:
        """Yield every scenario's position and its episode without messages, in plan order; see `read_figures`."""
        with reading(self.path):
            for found in read_figures(self._reader, self._chosen(judging)):
                self._notify_read()
                yield found

    def so_far(self, position: int) -> RecordedEpisode:
        """Return the latest state of a pending scenario, as an episode without an ending or judgements."""
        query = "SELECT id, trial, facets, take FROM scenarios WHERE position = ?"
        row = self._reader.execute(query, (position,)).fetchone()
        scenario = self.scenario(self.recipe, position)
        state = {**self.recipe.initial(scenario), **read_state(self._reader, thread_of(row["id"], row["take"]))}
        outcome = finished(self.recipe, scenario, state, failed=True).model_copy(update={"ended_by": ""})
        found = self.gate.passed(scenario, outcome)
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

    def _notify_read(self) -> None:
        if self.on_read is not None:
            self.on_read()

    def _with_judges(self, episode: RecordedEpisode) -> RecordedEpisode:
        """Return an episode with the faults of its judgements added, if the gate has checked it."""
        outcome = episode.outcome
        if outcome.faults is None or not outcome.judgements:
            return episode
        faults = (*outcome.faults, *copied_forms(outcome.judgements, self._prompt_words))
        return replace(episode, outcome=outcome.model_copy(update={"faults": faults}))

    def _chosen(self, judging: str | None) -> Sequence[str]:
        """Return the sets of judgements to read: the selected set, or those of a panel's judges."""
        chosen = self.judgement_set(judging)
        return () if chosen is None else chosen.members or (chosen.name,)

    def _value(self, key: str) -> str:
        value = self._find(key)
        if value is None:
            raise StoreError(
                f"{self.path} was left incomplete by a run that was stopped at its start; remove the "
                "file and start the run again"
            )
        return value

    def _find(self, key: str) -> str | None:
        row = self._reader.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row["value"])
