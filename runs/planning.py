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
from .configuration.recipe_checks import build_graph, check_facets, list_used_facets
from .configuration.trust import (
    cast_references,
    file_references,
    load_references,
    recipe_references,
    server_references,
)
from .engine import run_in_thread
from .errors import RunError, StoppedError, StoreError, store_error
from .gateway_setup import select_prompts
from .store import OWN_JUDGEMENTS, JudgementSet, RunStore
from .store.store import remove

Values = tuple[str, ...]
"""A scenario's values of the facets by which the sample is balanced."""

_MAX_PAIRS = 10_000
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
    balanced = _BalancedDraw(values, order)
    positions = [balanced.draw() for _ in range(min(size, len(rows)))]
    if sequence is not None:
        remaining = Counter(rows[position].get(sequence) for position in positions)
        positions = []
        for position, row in enumerate(rows):
            if remaining[row.get(sequence)]:
                remaining[row.get(sequence)] -= 1
                positions.append(position)
    parts = []
    for place, name in enumerate(differing):
        drawn, planned = len({values[position][place] for position in positions}), len(shares[name])
        parts.append(f"{name}: {drawn:,} of {planned:,}" if drawn < planned else f"{name}: all {planned:,}")
    spread = f", spread over the facets ({', '.join(parts)})" if parts else ""
    summary = f"sample: {len(positions):,} of {len(rows):,} scenarios, drawn with the seed{spread}"
    return frozenset(positions), summary


class _BalancedDraw:
    """A draw of scenarios without replacement that balances the values of facets, and combinations of them.

    Args:
        rows: The values of each scenario, in the order of the facets' priority.
        order: The positions of the scenarios, in random order.
    """

    def __init__(self, rows: Sequence[Values], order: Iterable[int]) -> None:
        self._plan_size, self._draw_number, self._facets = len(rows), 1, range(len(rows[0]) if rows else 0)
        sizes = [len({row[facet] for row in rows}) for facet in self._facets]
        self._paired_facets = [
            [other for other in range(facet) if sizes[other] * sizes[facet] <= _MAX_PAIRS] for facet in self._facets
        ]
        pairs = ((other, facet) for facet, others in enumerate(self._paired_facets) for other in others)
        balanced = {*((facet,) for facet in self._facets), *pairs, *(tuple(range(each + 1)) for each in self._facets)}
        self._plan_counts = {
            facets: Counter(tuple(row[each] for each in facets) for row in rows) for facets in balanced
        }
        self._drawn_counts = {facets: dict.fromkeys(counts, 0) for facets, counts in self._plan_counts.items()}
        # The scenarios that are left, by the values of the facets one below the other, in random order.
        self._remaining: dict[Any, Any] = {}
        for position in order:
            cell = self._remaining
            for value in rows[position]:
                cell = cell.setdefault(value, {})
            cell[position] = None

    def draw(self) -> int:
        """Draw the scenario that best balances the sample, and return its position."""
        cells, chosen = [self._remaining], list[str]()
        for _ in self._facets:
            chosen.append(self._choose_value(chosen, cells[-1]))
            cells.append(cells[-1][chosen[-1]])
        position, _ = cells.pop().popitem()
        for cell, value in zip(reversed(cells), reversed(chosen), strict=True):
            if not cell[value]:
                del cell[value]
        for facets, drawn in self._drawn_counts.items():
            drawn[tuple(chosen[facet] for facet in facets)] += 1
        self._draw_number += 1
        return int(position)

    def _choose_value(self, chosen: Sequence[str], values: Iterable[str]) -> str:
        """Return the value of the next facet that best balances the sample, given the values chosen so far.

        A value that has reached its share is excluded, unless all values have. Therefore the values chosen so far
        affect the order in which values are drawn, but not how often each is drawn. Of equally good values, the first
        is a random one.
        """
        facet = len(chosen)
        if not facet:  # there may be as many values as people, and each has scenarios left
            planned, drawn = self._plan_counts[0,], self._drawn_counts[0,]
            return max(values, key=lambda value: planned[value,] * self._draw_number - drawn[value,] * self._plan_size)
        deficits = {value: self._deficit((facet,), (value,)) for value in values}
        underrepresented = [value for value, lack in deficits.items() if lack > 0] or list(deficits)

        def priority(value: str) -> tuple[int, int]:
            pairs = (self._deficit((other, facet), (chosen[other], value)) for other in self._paired_facets[facet])
            return sum(pairs) + self._deficit(tuple(range(facet + 1)), (*chosen, value)), deficits[value]

        return max(underrepresented, key=priority)

    def _deficit(self, facets: tuple[int, ...], values: Values) -> int:
        """Return the number of scenarios that values lack after the next draw, multiplied by the plan's size."""
        return (
            self._plan_counts[facets][values] * self._draw_number - self._drawn_counts[facets][values] * self._plan_size
        )


Note = Callable[[str], None]


def prepare(recipe: Recipe, config: RunConfig) -> PromptLibrary:
    """Check everything that can be checked before the run's file is created, and return the run's prompts.

    Raises:
        RunError, RecipeError, BindingError, PromptError: If a setting is invalid; the message names it.
    """
    build_graph(recipe, config.options)
    library = WithPrompts.of(recipe).library(config.prompts)
    check_judges(recipe, library)
    if isinstance(recipe, DialogueRecipe):
        recipe.check_inputs(library, list_mcp_servers(recipe, recipe.options_type.model_validate(config.options)))
    for models in config.casts:
        played = select_prompts(library, models)
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
async def create_run(
    path: Path,
    recipe: Recipe,
    config: RunConfig,
    library: PromptLibrary,
    note: Note,
    *,
    synchronous: Synchronous = "normal",
    is_stopped: Callable[[], bool] = lambda: False,
    remember_trust: bool = True,
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
        remember_trust: Whether to remember for this run that the user trusts the code that it specifies.

    Raises:
        RecipeError, DataError, StoreError: If planning failed; no file is left.
        StoppedError: If planning was stopped.
    """

    def create(should_stop: Callable[[], bool]) -> RunStore:
        store = RunStore.create(path, config, library, synchronous, recipe)
        with ExitStack() as cleanup:
            cleanup.callback(remove, path)
            cleanup.enter_context(store)
            options = recipe.options_type.model_validate(config.options)
            references = [
                *recipe_references(config.recipe, recipe=recipe),
                *(player for models in config.casts for player in cast_references(models)),
                *file_references(options),
                *server_references(list_mcp_servers(recipe, options)),
            ]
            if remember_trust:  # before the plan, because another process may write the plan
                store.trust_specified(references)
            try:
                write_plan(store, recipe, note, should_stop)
            except StoreError as error:
                if isinstance(error.__cause__, sqlite3.Error):  # its message about an existing run is wrong here
                    raise store_error(path, error.__cause__, is_new=True) from error
                raise
            if remember_trust:
                store.remember()
            cleanup.pop_all()  # keep the file
        return store

    with ExitStack() as opened:  # also closes a store that a thread has opened after its caller was cancelled
        yield await run_in_thread(lambda should_stop: opened.enter_context(create(should_stop)), is_stopped)


def write_plan(store: RunStore, recipe: Recipe, note: Note, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Write the plan of a run that has no plan yet.

    Raises:
        RecipeError, DataError, StoreError, StoppedError: If planning failed or was stopped; no plan is written.
        RunError: If no scenario fits the options.
    """
    config = store.config
    notes: list[str] = []
    loads: dict[str, None] = {}
    expected_facets, facets = set(list_used_facets(recipe)), set[str]()
    judging = WithJudging.of(recipe).judging_roles()
    judges = {role: config.models[role] for role in judging if role in config.models}
    own = build_judgement_set(OWN_JUDGEMENTS, store.prompts, judges if len(judges) == len(judging) else {})
    options = recipe.options_type.model_validate(config.options)
    store.ensure_trusted(file_references(options))

    def checked_scenarios(note: Note) -> Iterator[Any]:
        found = recipe.scenarios(options, stream(config.seed, "", "plan"), note)
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

    def iterate_plan(note: Note) -> Iterator[Scenario]:
        for scenario in checked_scenarios(note):
            if is_stopped():
                raise StoppedError("stopped during planning; nothing was written")
            loads.update(dict.fromkeys(scenario.loads))
            if expected_facets - facets:
                facets.update(scenario.facets())
            yield scenario

    scenarios, with_facets = iterate_plan(notes.append), WithFacets.of(recipe)
    sequence = with_facets.sequence_facet
    if config.sample is not None:  # the plan is made twice, because it may not fit into memory
        draw = stream(config.seed, "", "sample")
        chosen, summary = draw_sample(
            iterate_plan(lambda _: None), config.sample, with_facets.split_facet, sequence, draw
        )
        scenarios = (each for place, each in enumerate(scenarios) if place in chosen)
        notes.append(summary)
    if not store.plan(scenarios, notes, own, config.trials, sequence, config.user_models):
        raise RunError("the plan is empty: these options select no scenario", setting="options")
    check_facets(recipe, facets)
    store.ensure_trusted(load_references(loads))
    for text in notes:
        note(text)


def build_judgement_set(name: str, library: PromptLibrary, models: Mapping[str, ModelBinding]) -> JudgementSet:
    """Return a new set of judgements with its name, its judging models and their prompts."""
    return JudgementSet(name, models, {prompt.id: prompt.hash for prompt in select_prompts(library, models).values()})
