"""Creation of a run file: checks of its settings, sampling of scenarios, and the plan in one transaction."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dialoom.errors import first_problem
from dialoom.graphs import DialogueRecipe, Recipe, Scenario, WithFacets, WithJudging, WithPrompts, stream
from dialoom.graphs.judge import check_judges
from dialoom.graphs.tool_use import list_mcp_servers
from dialoom.prompts import PromptLibrary
from dialoom.roles import ModelBinding
from dialoom.roles.gateway.gateway import check_model, check_parameters
from dialoom.roles.restoring import HISTORY_IN_PROMPT
from dialoom.roles.role import check_cast, check_understudies
from dialoom.settings import Synchronous

from .configuration.config import RunConfig
from .configuration.recipe_checks import check_facets, facets_named, graph_of
from .configuration.trust import (
    cast_references,
    file_references,
    load_references,
    recipe_references,
    server_references,
)
from .engine import in_thread
from .errors import RunError, StoppedError, StoreError, store_error
from .gateway_setup import prompts_of
from .store import OWN_JUDGEMENTS, JudgementSet, RunStore
from .store.store import remove

Values = tuple[str, ...]
"""A scenario's values of the facets by which the sample is balanced."""

_MOST_PAIRS = 10_000
"""The maximum number of pairs of values of two facets that are balanced jointly.

If there are more, most would occur at most once in a sample.
"""


def draw_sample(
    scenarios: Iterable[Scenario], size: int, first: str | None, sequence: str | None, draw: random.Random
) -> tuple[frozenset[int], str]:
    """Draw scenarios so that each value of each facet occurs as often as its share of the plan, as nearly as possible.

    The same holds for pairs of values of two facets, and for combinations of values of the facets with the highest
    priority. Otherwise facets would be confounded: methods could not be compared if each occurred with certain topics
    only. Scenarios are drawn one by one, facet by facet, by the values that are most underrepresented so far, with ties
    broken at random. So a smaller sample is part of a larger one. If conversations are played in sequence, the draw
    decides how many of a sequence are played; these are its first, because each continues those before it. Only a
    small tuple for each scenario is kept in memory.

    Args:
        scenarios: The whole plan.
        size: The sample size; all scenarios are drawn if there are fewer.
        first: The facet with the highest priority, e.g. the one by which an export is split. Of the others, those with
            few values come first.
        sequence: The facet whose values have their scenarios played one after another, if there is one.
        draw: The random stream.

    Returns:
        The positions of the drawn scenarios in the whole plan, and a summary of the sample in one line.
    """
    rows = [
        {name: json.dumps(value, ensure_ascii=False, sort_keys=True) for name, value in scenario.facets().items()}
        for scenario in scenarios
    ]
    shares = {
        name: Counter(row.get(name, "") for row in rows) for name in dict.fromkeys(key for row in rows for key in row)
    }
    differing = [name for name, counts in shares.items() if 1 < len(counts) < len(rows)]
    differing.sort(key=lambda name: (name != first, len(shares[name])))
    order = list(range(len(rows)))
    draw.shuffle(order)
    values = [tuple(row.get(name, "") for name in differing) for row in rows]
    balance = _Balance(values, order)
    positions = [balance.take() for _ in range(min(size, len(rows)))]
    if sequence is not None:
        left = Counter(rows[position].get(sequence) for position in positions)
        positions = []
        for position, row in enumerate(rows):
            if left[row.get(sequence)]:
                left[row.get(sequence)] -= 1
                positions.append(position)
    parts = []
    for place, name in enumerate(differing):
        drawn, there = len({values[position][place] for position in positions}), len(shares[name])
        parts.append(f"{name}: {drawn:,} of {there:,}" if drawn < there else f"{name}: all {there:,}")
    spread = f", spread over the facets ({', '.join(parts)})" if parts else ""
    summary = f"sample: {len(positions):,} of {len(rows):,} scenarios, drawn with the seed{spread}"
    return frozenset(positions), summary


class _Balance:
    """A draw of scenarios without replacement that balances the values of facets, and combinations of them.

    Args:
        rows: The values of each scenario, in the order of the facets' priority.
        order: The positions of the scenarios, in random order.
    """

    def __init__(self, rows: Sequence[Values], order: Iterable[int]) -> None:
        self._total, self._nth, self._facets = len(rows), 1, range(len(rows[0]) if rows else 0)
        sizes = [len({row[facet] for row in rows}) for facet in self._facets]
        self._before = [
            [other for other in range(facet) if sizes[other] * sizes[facet] <= _MOST_PAIRS] for facet in self._facets
        ]
        pairs = ((other, facet) for facet, others in enumerate(self._before) for other in others)
        balanced = {*((facet,) for facet in self._facets), *pairs, *(tuple(range(each + 1)) for each in self._facets)}
        self._there = {facets: Counter(tuple(row[each] for each in facets) for row in rows) for facets in balanced}
        self._taken = {facets: dict.fromkeys(counts, 0) for facets, counts in self._there.items()}
        # The scenarios that are left, by the values of the facets one below the other, in random order.
        self._left: dict[Any, Any] = {}
        for position in order:
            cell = self._left
            for value in rows[position]:
                cell = cell.setdefault(value, {})
            cell[position] = None

    def take(self) -> int:
        """Draw the scenario that best balances the sample, and return its position."""
        cells, chosen = [self._left], list[str]()
        for _ in self._facets:
            chosen.append(self._best(chosen, cells[-1]))
            cells.append(cells[-1][chosen[-1]])
        position, _ = cells.pop().popitem()
        for cell, value in zip(reversed(cells), reversed(chosen), strict=True):
            if not cell[value]:
                del cell[value]
        for facets, taken in self._taken.items():
            taken[tuple(chosen[facet] for facet in facets)] += 1
        self._nth += 1
        return int(position)

    def _best(self, chosen: Sequence[str], values: Iterable[str]) -> str:
        """Return the value of the next facet that best balances the sample, given the values chosen so far.

        A value that has reached its share is excluded, unless all values have. Therefore the values chosen so far
        affect the order in which values are drawn, but not how often each is drawn. Of equally good values, the first
        is a random one.
        """
        facet = len(chosen)
        if not facet:  # there may be as many values as people, and each has scenarios left
            there, taken = self._there[0,], self._taken[0,]
            return max(values, key=lambda value: there[value,] * self._nth - taken[value,] * self._total)
        lacks = {value: self._lack((facet,), (value,)) for value in values}
        lacking = [value for value, lack in lacks.items() if lack > 0] or list(lacks)

        def place(value: str) -> tuple[int, int]:
            pairs = (self._lack((other, facet), (chosen[other], value)) for other in self._before[facet])
            return sum(pairs) + self._lack(tuple(range(facet + 1)), (*chosen, value)), lacks[value]

        return max(lacking, key=place)

    def _lack(self, facets: tuple[int, ...], values: Values) -> int:
        """Return the number of scenarios that values lack after the next draw, multiplied by the plan's size."""
        return self._there[facets][values] * self._nth - self._taken[facets][values] * self._total


Note = Callable[[str], None]


def prepare(recipe: Recipe, config: RunConfig) -> PromptLibrary:
    """Check everything that can be checked before the run's file is created, and return the run's prompts.

    Raises:
        RunError, RecipeError, BindingError, PromptError: If a setting is invalid; the message names it.
    """
    graph_of(recipe, config.options)
    library = WithPrompts.of(recipe).library(config.prompts)
    check_judges(recipe, library)
    if isinstance(recipe, DialogueRecipe):
        recipe.check_inputs(library, list_mcp_servers(recipe, recipe.options_type.model_validate(config.options)))
    for models in config.casts:
        played = prompts_of(library, models)
        check_cast(played, models, WithPrompts.of(recipe).reply_types)
        check_understudies(played, models)
        for model, is_stateful in dict.fromkeys((each.model, each.stateful) for each in models.values()):
            check_model(model, is_stateful)
        check_parameters(models)
        for prompt in played.values():
            if models[prompt.front.role].stateful and prompt.quotes_history:
                raise RunError(HISTORY_IN_PROMPT.format(role=prompt.front.role, prompt=prompt.id), setting="stateful")
    return library


@asynccontextmanager
async def planned(
    path: Path,
    recipe: Recipe,
    config: RunConfig,
    library: PromptLibrary,
    note: Note,
    *,
    synchronous: Synchronous = "normal",
    is_stopped: Callable[[], bool] = lambda: False,
    is_for_good: bool = True,
) -> AsyncIterator[RunStore]:
    """Create a run and its plan in a thread, and open the run for writing. If planning fails, no file is left.

    Args:
        path: The file to create.
        recipe: The recipe.
        config: The run's configuration.
        library: Its prompts, from `prepare`.
        note: Called with each message that planning reports, such as a repair of the source data.
        synchronous: The durability of commits.
        is_stopped: Called before each scenario; planning stops if it returns true.
        is_for_good: Whether to remember for this run that the user trusts the code that it specifies.

    Raises:
        RecipeError, DataError, StoreError: If planning failed; no file is left.
        StoppedError: If planning was stopped.
    """

    def made(is_given_up: Callable[[], bool]) -> RunStore:
        store = RunStore.create(path, config, library, synchronous, recipe)
        with ExitStack() as unplanned:
            unplanned.callback(remove, path)
            unplanned.enter_context(store)
            options = recipe.options_type.model_validate(config.options)
            named = [
                *recipe_references(config.recipe, recipe=recipe),
                *(player for models in config.casts for player in cast_references(models)),
                *file_references(options),
                *server_references(list_mcp_servers(recipe, options)),
            ]
            if is_for_good:  # before the plan, because another process may write the plan
                store.trust_specified(named)
            try:
                write_plan(store, recipe, note, is_given_up)
            except StoreError as error:
                if isinstance(error.__cause__, sqlite3.Error):  # its message about an existing run is wrong here
                    raise store_error(path, error.__cause__, is_new=True) from error
                raise
            if is_for_good:
                store.remember()
            unplanned.pop_all()  # keep the file
        return store

    with ExitStack() as opened:  # also closes a store that a thread has opened after its caller was cancelled
        yield await in_thread(lambda is_given_up: opened.enter_context(made(is_given_up)), is_stopped)


def write_plan(store: RunStore, recipe: Recipe, note: Note, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Write the plan of a run that has no plan yet.

    Raises:
        RecipeError, DataError, StoreError, StoppedError: If planning failed or was stopped; no plan is written.
        RunError: If no scenario fits the options.
    """
    config = store.config
    notes: list[str] = []
    loads: dict[str, None] = {}
    named, facets = set(facets_named(recipe)), set[str]()
    judging = WithJudging.of(recipe).judging_roles()
    judges = {role: config.models[role] for role in judging if role in config.models}
    own = judgement_set(OWN_JUDGEMENTS, store.prompts, judges if len(judges) == len(judging) else {})
    options = recipe.options_type.model_validate(config.options)
    store.ensure_trusted(file_references(options))

    def made(say: Note) -> Iterator[Any]:
        found = recipe.scenarios(options, stream(config.seed, "", "plan"), say)
        where, kind = f"recipe: `scenarios` of {type(recipe).__name__}", recipe.scenario_type.__name__
        if not isinstance(found, Iterable):
            raise RunError(f"{where} returns {found!r:.60}; it must yield objects of {kind}", setting="recipe")
        try:
            for scenario in found:
                if not isinstance(scenario, recipe.scenario_type):
                    message = f"{where} yields {scenario!r:.60}; it must yield objects of {kind}"
                    raise RunError(message, setting="recipe")
                yield scenario
        except ValidationError as error:
            place, problem, _ = first_problem(error)
            raise RunError(f"{where} makes an invalid {error.title}: {place}: {problem}", setting="recipe") from error

    def whole(say: Note) -> Iterator[Scenario]:
        for scenario in made(say):
            if is_stopped():
                raise StoppedError("stopped during planning; nothing was written")
            loads.update(dict.fromkeys(scenario.loads))
            if named - facets:
                facets.update(scenario.facets())
            yield scenario

    scenarios, with_facets = whole(notes.append), WithFacets.of(recipe)
    sequence = with_facets.sequence_facet
    if config.sample is not None:  # the plan is made twice, because it may not fit into memory
        chances = stream(config.seed, "", "sample")
        chosen, summary = draw_sample(whole(lambda _: None), config.sample, with_facets.split_facet, sequence, chances)
        scenarios = (each for place, each in enumerate(scenarios) if place in chosen)
        notes.append(summary)
    if not store.plan(scenarios, notes, own, config.trials, sequence, config.user_models):
        raise RunError("the plan is empty: these options select no scenario", setting="options")
    check_facets(recipe, facets)
    store.ensure_trusted(load_references(loads))
    for text in notes:
        note(text)


def judgement_set(name: str, library: PromptLibrary, models: Mapping[str, ModelBinding]) -> JudgementSet:
    """Return a new set of judgements with its name, its judging models and their prompts."""
    return JudgementSet(name, models, {prompt.id: prompt.hash for prompt in prompts_of(library, models).values()})
