"""Making a run's file: everything is checked first, then the plan is written in one piece."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from dialoom.graphs import Recipe, Scenario, stream
from dialoom.graphs.capabilities import WithJudging, WithPrompts
from dialoom.graphs.dialogue import DialogueRecipe
from dialoom.graphs.judge import check_judges
from dialoom.graphs.reporting.facet import split_facet
from dialoom.prompts import PromptLibrary
from dialoom.roles import ModelBinding
from dialoom.roles.cast import check_cast, check_understudies
from dialoom.roles.gateway.gateway import check_model, check_parameters

from .calling import prompts_of
from .config import RunConfig
from .errors import RunError, StoppedError
from .recipe_check import check_facets, facets_named, graph_of
from .sampling import draw_sample
from .store import OWN_JUDGEMENTS, JudgementSet, RunStore
from .store.connections import Synchronous
from .store.errors import StoreError, store_error
from .store.store import remove
from .threads import in_thread
from .trust import files_named, loads_named, players_named, recipe_named

Note = Callable[[str], None]


def prepare(recipe: Recipe, config: RunConfig, overrides: Path | None) -> PromptLibrary:
    """Check everything that can be checked before a file is made; returns the run's prompts.

    Raises:
        RunError, RecipeError, BindingError, PromptError: Naming what is wrong.
    """
    graph_of(recipe, config.options)
    library = WithPrompts.of(recipe).library(overrides)
    check_judges(recipe, library)
    if isinstance(recipe, DialogueRecipe):
        recipe.check_inputs(library)
    for models in config.casts:
        played = prompts_of(library, models)
        check_cast(played, models, WithPrompts.of(recipe).reply_types)
        check_understudies(played, models)
        for model in dict.fromkeys(binding.model for binding in models.values()):
            check_model(model)
        check_parameters(models)
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
    """A new run, open for writing and planned, which happens in a thread. If planning fails, no file is left.

    Args:
        path: The file to be made.
        recipe: The recipe.
        config: All that decides what the run does.
        library: Its prompts, from `prepare`.
        note: Takes what planning has to say.
        synchronous: What commits survive.
        is_stopped: Asked before each scenario whether to give up.
        is_for_good: Whether it is kept in mind what the user has given for this run.

    Raises:
        RecipeError, DataError, StoreError: With nothing left.
        StoppedError: If planning was given up.
    """

    def made(is_given_up: Callable[[], bool]) -> RunStore:
        store = RunStore.create(path, config, library, synchronous, recipe)
        with ExitStack() as unplanned:
            unplanned.callback(remove, path)
            unplanned.enter_context(store)
            options = recipe.options_type.model_validate(config.options)
            players = [named for models in config.casts for named in players_named(models)]
            named = [*recipe_named(config.recipe), *players, *files_named(options)]
            if is_for_good:  # before the plan, as it may be another process that writes it
                store.give(named)
            try:
                write_plan(store, recipe, note, is_given_up)
            except StoreError as error:
                if isinstance(error.__cause__, sqlite3.Error):  # what it says of a run that stays is wrong here
                    raise store_error(path, error.__cause__, is_new=True) from error
                raise
            if is_for_good:
                store.remember()
            unplanned.pop_all()  # it stays
        return store

    with ExitStack() as opened:  # also what a thread has made whose result nobody waits for any more
        yield await in_thread(lambda is_given_up: opened.enter_context(made(is_given_up)), is_stopped)


def write_plan(store: RunStore, recipe: Recipe, note: Note, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Write the plan of a run that has none yet.

    Raises:
        RecipeError, DataError, StoreError, StoppedError: With no plan written.
        RunError: If no scenario fits the options.
    """
    config = store.config
    notes: list[str] = []
    loads: dict[str, None] = {}
    named, facets = set(facets_named(recipe)), set[str]()
    judging = WithJudging.of(recipe).judging_roles()
    judges = {role: config.models[role] for role in judging if role in config.models}
    is_judged = len(judges) == len(judging)
    own = judgement_set(OWN_JUDGEMENTS, store.prompts, judges if is_judged else {})
    options = recipe.options_type.model_validate(config.options)
    store.permit(files_named(options))

    def whole(say: Note) -> Iterator[Scenario]:
        for scenario in _until(is_stopped, recipe.scenarios(options, stream(config.seed, "", "plan"), say)):
            loads.update(dict.fromkeys(scenario.loads))
            if named - facets:
                facets.update(scenario.facets())
            yield scenario

    scenarios = whole(notes.append)
    if config.sample is not None:  # the plan is made twice, as it may be too much to hold
        chances = stream(config.seed, "", "sample")
        drawn = draw_sample(whole(lambda _: None), config.sample, split_facet(recipe.facets), chances)
        chosen = frozenset(drawn.positions)
        scenarios = (each for place, each in enumerate(scenarios) if place in chosen)
        notes.append(drawn.told())
    if not store.plan(scenarios, notes, own):
        raise RunError("the plan is empty: no scenario fits these options", setting="options")
    check_facets(recipe, facets)
    store.permit(loads_named(loads))
    for text in notes:
        note(text)


def judgement_set(name: str, library: PromptLibrary, models: Mapping[str, ModelBinding]) -> JudgementSet:
    """A set of judgements to be: its name, who judges, and with which prompts."""
    return JudgementSet(name, models, {prompt.id: prompt.hash for prompt in prompts_of(library, models).values()})


def _until(is_stopped: Callable[[], bool], scenarios: Iterator[Scenario]) -> Iterator[Scenario]:
    for scenario in scenarios:
        if is_stopped():
            raise StoppedError("stopped while it was planned")
        yield scenario
