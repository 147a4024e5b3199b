"""What commands do with a run: start it, go on with it, judge it again. The command line is a thin face of this."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dialoom.graphs import Recipe, stream
from dialoom.graphs.recipe import Graph
from dialoom.prompts import PromptLibrary
from dialoom.roles import Cast, Gateway, ModelBinding
from dialoom.roles.binding import bindings
from dialoom.roles.cast import check_cast
from dialoom.roles.gateway import Caller
from dialoom.roles.gateway.cache import ResponseCache
from dialoom.roles.gateway.gateway import check_model
from dialoom.roles.gateway.tracing import open_tracing

from .config import RunConfig
from .engine import Engine, Progress
from .errors import RunError
from .limits import FailOnError, RunLimits
from .recipes import load_recipe
from .store import OWN_JUDGEMENTS, JudgementSet, RunStore, Work
from .store.connections import Synchronous
from .store.store import remove

Tell = Callable[[str], None]


def start(
    path: Path, config: RunConfig, overrides: Path | None, tell: Tell, synchronous: Synchronous = "normal"
) -> RunStore:
    """Check everything, then make the run's file and plan it.

    Raises:
        RunError, RecipeError, BindingError, PromptError, DataError, StoreError: With nothing written.
    """
    recipe = load_recipe(config.recipe)
    options = recipe.options_type.model_validate(config.options)
    library = PromptLibrary.load(recipe.prompts, overrides, recipe.templates)
    check_cast(_prompts_of(library, config.models), config.models, recipe.reply_types)
    for model in dict.fromkeys(config.model_names.values()):
        check_model(model)
    store = RunStore.create(path, config, library, synchronous)
    try:
        _plan(store, recipe, options, config, tell)
    except BaseException:
        store.close()
        remove(path)
        raise
    return store


def reopen(path: Path, tell: Tell, synchronous: Synchronous = "normal") -> RunStore:
    """Open a run to go on with it; plan it first if it was stopped before its plan was written.

    Raises:
        StoreError: If it is no run or another process writes it.
        RunError: If its recipe is not to be had.
    """
    store = RunStore(path, synchronous)
    try:
        if not store.is_planned:
            config = store.config
            recipe = load_recipe(config.recipe)
            _plan(store, recipe, recipe.options_type.model_validate(config.options), config, tell)
    except BaseException:
        store.close()
        raise
    return store


@dataclass(frozen=True, slots=True)
class Conduct:
    """How calls are made in one sitting; nothing of it changes what they say.

    Attributes:
        limits: Budget, prices and rates.
        replay_only: Make no call at all: every reply must be recorded.
        fail_on_error: When failures stop the run.
        cache: The file in which replies are shared with other runs.
        otel: Whether a span of each call is sent to OpenTelemetry.
    """

    limits: RunLimits = field(default_factory=RunLimits)
    replay_only: bool = False
    fail_on_error: FailOnError = field(default_factory=FailOnError)
    cache: Path | None = None
    otel: bool = False


async def play(
    store: RunStore,
    concurrency: int,
    progress: Progress,
    resuming: bool,
    conduct: Conduct | None = None,
    only: Container[int] | None = None,
) -> bool:
    """Play all pending scenarios, or those at some positions of the plan.

    Returns:
        Whether all of them were reached (not when interrupted).
    """
    config = store.config
    recipe = load_recipe(config.recipe)
    graph = recipe.graph(recipe.options_type.model_validate(config.options))
    work = store.queue.pending(recipe, only)
    return await _run(store, recipe, graph, config.models, work, concurrency, progress, resuming, conduct)


async def judge(
    store: RunStore,
    judging: JudgementSet,
    models: Mapping[str, ModelBinding],
    concurrency: int,
    progress: Progress,
    conduct: Conduct | None = None,
    again: bool = False,
) -> bool:
    """Judge finished scenarios into a set of judgements. Returns whether all of them were reached.

    Args:
        store: The run.
        judging: The set.
        models: Who judges.
        concurrency: How many scenarios are under way at once.
        progress: Is told of each result.
        conduct: How calls are made.
        again: Whether to replace what is unparsed in the set, instead of judging what it has not judged yet.
    """
    recipe = load_recipe(store.config.recipe)
    graph = judging_graph(recipe)
    work: Iterator[Work] = (
        store.queue.to_rejudge(recipe, judging.name) if again else store.queue.to_judge(recipe, judging.name)
    )
    return await _run(store, recipe, graph, models, work, concurrency, progress, True, conduct)


def judging_graph(recipe: Recipe) -> Graph:
    """The graph that only judges.

    Raises:
        RunError: If the recipe has none.
    """
    graph = recipe.judging()
    if graph is None:
        raise RunError(f"recipe {recipe.name!r} has no judging of its own")
    return graph


def open_judging(
    store: RunStore, name: str | None, models: Iterable[str], temperatures: Iterable[str]
) -> tuple[JudgementSet, dict[str, ModelBinding]]:
    """A new set of judgements, or the one of that name, to go on with it.

    Args:
        store: The run.
        name: The set's name; by default the judge's model.
        models: `judge=MODEL` options.
        temperatures: `judge=T` options.

    Raises:
        RunError: If the recipe has no judging, or the name belongs to another one.
        BindingError: If a role or model is unknown.
    """
    recipe = load_recipe(store.config.recipe)
    roles = recipe.judging_roles()
    judging_graph(recipe)
    bound = bindings(roles, models, temperatures)
    for binding in bound.values():
        check_model(binding.model)
    judging = _judging(name or ", ".join(binding.model for binding in bound.values()), store.prompts, bound)
    existing = {each.name: each for each in store.judgement_sets()}
    if judging.name == OWN_JUDGEMENTS and judging.name not in existing:
        raise RunError(f"the name {OWN_JUDGEMENTS!r} is kept for the judgements that a run makes itself; give another")
    if judging.name not in existing:
        store.add_judgement_set(judging)
    elif existing[judging.name] != judging:
        theirs = ", ".join(existing[judging.name].model_names.values())
        raise RunError(f"the judgements {judging.name!r} were made by {theirs}; give these another name with --name")
    return judging, bound


async def _run(
    store: RunStore,
    recipe: Recipe,
    graph: Graph,
    models: Mapping[str, ModelBinding],
    work: Iterator[Work],
    concurrency: int,
    progress: Progress,
    resuming: bool,
    conduct: Conduct | None,
) -> bool:
    conduct = conduct or Conduct()
    with open_gateway(store, concurrency, conduct) as gateway:
        progress.calling(gateway)
        cast = cast_of(store, recipe, models, gateway)
        engine = Engine(store, recipe, graph, cast, store.config.seed, concurrency, progress, conduct.fail_on_error)
        with _interrupts(engine):
            await engine.run(work, resuming)
    return not engine.is_draining


@contextmanager
def open_gateway(store: RunStore, concurrency: int, conduct: Conduct) -> Iterator[Gateway]:
    """The way to the models of a run: its ledger, and what bounds it."""
    limits = conduct.limits.for_gateway(concurrency, conduct.replay_only)
    spent = store.taken(limits.prices) if limits.budget.is_bounded else None
    with ExitStack() as opened:
        cache = None if conduct.cache is None else opened.enter_context(ResponseCache(conduct.cache))
        tracing = opened.enter_context(open_tracing()) if conduct.otel else None
        yield Gateway(store.ledger, limits, spent, cache, tracing)


def cast_of(store: RunStore, recipe: Recipe, models: Mapping[str, ModelBinding], gateway: Caller) -> Cast:
    """The roles of a run, with its prompts, played by these models."""
    return Cast(_prompts_of(store.prompts, models), models, gateway, recipe.reply_types)


@contextmanager
def _interrupts(engine: Engine) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) drains the engine, the second stops it."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, lambda: engine.stop() if engine.is_draining else engine.drain())
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def _prompts_of(library: PromptLibrary, models: Mapping[str, ModelBinding]) -> PromptLibrary:
    """The prompts whose roles have models; a run keeps the others too, so that it can be judged later."""
    return PromptLibrary(prompt for prompt in library.values() if prompt.front.role in models)


def _plan(store: RunStore, recipe: Recipe, options: Any, config: RunConfig, tell: Tell) -> None:
    notes: list[str] = []
    judging = None
    if recipe.judging_roles() and all(role in config.models for role in recipe.judging_roles()):
        judging = _judging(
            OWN_JUDGEMENTS, store.prompts, {role: config.models[role] for role in recipe.judging_roles()}
        )
    scenarios = recipe.scenarios(options, stream(config.seed, "", "plan"), notes.append)
    if not store.plan(scenarios, notes, judging):
        raise RunError("the plan is empty: no scenario fits these options")
    for note in notes:
        tell(note)


def _judging(name: str, library: PromptLibrary, models: Mapping[str, ModelBinding]) -> JudgementSet:
    return JudgementSet(name, models, {prompt.id: prompt.hash for prompt in _prompts_of(library, models).values()})
