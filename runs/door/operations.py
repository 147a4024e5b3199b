"""What is done with a run: it is played, gone on with, judged and tried again. The command line is a face of this."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from dialoom.errors import Advice
from dialoom.graphs import Recipe
from dialoom.graphs.recipe import Graph
from dialoom.roles import ModelBinding
from dialoom.roles.binding import Bindings, ModelLike, bind, rebind
from dialoom.roles.gateway.gateway import check_model
from dialoom.runs.calling import CallPolicy, cast_of, open_gateway
from dialoom.runs.config import DEFAULT_MODEL, RunConfig
from dialoom.runs.control import Control
from dialoom.runs.engine import Engine
from dialoom.runs.errors import RunError
from dialoom.runs.estimate import CostEstimate, estimated
from dialoom.runs.events import Began, Ended, Event, NodeSaid, Noted, Planned, Retrying
from dialoom.runs.limits import RunLimits
from dialoom.runs.planning import judgement_set, planned, prepare, write_plan
from dialoom.runs.recipe_check import graph_of
from dialoom.runs.recipes import find_recipe, parsed_options
from dialoom.runs.stepping import Session
from dialoom.runs.store import OWN_JUDGEMENTS, JudgementSet, RunStore, Work
from dialoom.runs.store.branches import MAIN
from dialoom.runs.threads import in_thread

from .blocking import blocking
from .run import Run
from .settings import CallSettings, Options, PathLike, PlaySettings, RecipeLike, call_policy


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run as it is to be made: everything resolved and checked, nothing written.

    Attributes:
        recipe: The recipe.
        config: All that decides what the run does.
        bindings: Its players, the objects among them.
        policy: How calls are made.
        overrides: A folder of prompts that replace the recipe's own.
    """

    recipe: Recipe
    config: RunConfig
    bindings: Bindings
    policy: CallPolicy
    overrides: Path | None


def resolve(
    recipe: RecipeLike,
    *,
    model: ModelLike | None = None,
    models: Mapping[str, ModelLike] | None = None,
    temperature: float | Mapping[str, float] | None = None,
    api_base: str | Mapping[str, str] | None = None,
    options: Options | None = None,
    seed: int = 0,
    sample: int | None = None,
    prompts: PathLike | None = None,
    **calls: Unpack[CallSettings],
) -> NewRun:
    """The one place where defaults, options and bindings are merged; see `play` for the arguments.

    Raises:
        RunError, RecipeError, BindingError, CacheError: Naming the setting that is wrong.
    """
    spec, found = find_recipe(recipe)
    chosen = parsed_options(found, options)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise RunError(f"seed {seed!r} is no whole number", setting="seed")
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int) or sample < 1):
        raise RunError(f"sample {sample!r} is no whole number from 1", setting="sample")
    bindings = bind(
        found.roles_used(chosen),
        model=DEFAULT_MODEL if model is None else model,
        models={**found.models_named(chosen), **(models or {})},
        temperature=temperature,
        api_base=api_base,
    )
    plain = chosen.model_dump(mode="json")
    config = RunConfig(recipe=spec, options=plain, models=dict(bindings.by_role), seed=seed, sample=sample)
    policy = call_policy(calls, RunLimits(), bindings.objects)
    policy.limits.check_prices(config.model_names.values())
    return NewRun(found, config, bindings, policy, None if prompts is None else Path(prompts))


async def aplay(
    recipe: RecipeLike,
    *,
    path: PathLike,
    model: ModelLike | None = None,
    models: Mapping[str, ModelLike] | None = None,
    temperature: float | Mapping[str, float] | None = None,
    api_base: str | Mapping[str, str] | None = None,
    options: Options | None = None,
    seed: int = 0,
    sample: int | None = None,
    prompts: PathLike | None = None,
    **calls: Unpack[CallSettings],
) -> Run:
    """Make a new run: plan it, play every scenario, keep every step.

    Args:
        recipe: A registered name (`personalens`), `path/to/file.py:NAME`, a recipe, or its class. A class of an
            imported file is kept as `path/to/file.py:NAME`; one that is in no file (a notebook's) is given again by
            whoever goes on with the run in another process.
        path: The run's file; it must not exist.
        model: Who plays every role that `models` does not name; by default `offline/attentive`, a scripted stand-in.
            A LiteLLM name, an async function from chat messages to text, a compiled LangGraph graph with `messages`, or
            a `Model` with options of its own.
        models: Who plays which role.
        temperature: Sampling temperature (0 to 2) of every role, or by role.
        api_base: Where models are served, for every role or by role.
        options: The recipe's own options, by name.
        seed: Of every random draw.
        sample: Draw so many scenarios with the seed from all that the options give, spread evenly over the recipe's
            facets (people, settings, ...); by default all are planned.
        prompts: A folder of prompts that replace the recipe's own of the same ids.
        **calls: How calls are made; see `CallSettings`.

    Returns:
        The run. Scenarios that failed are rows in it, not exceptions: `run.status()` counts them, and `run.ended` tells
        whether the work was stopped early, and why.

    Raises:
        RunError, RecipeError, BindingError, PromptError, DataError, StoreError, CacheError: With nothing written, if it
            can be known beforehand; what only comes out while a scenario is played (a node that leaves out an input of
            its prompt) leaves a run to go on with. All of them are `DialoomError`.
        StoppedError: If it was stopped while it was planned; nothing is written.
    """
    settings: PlaySettings = {
        "model": model,
        "models": models,
        "temperature": temperature,
        "api_base": api_base,
        "options": options,
        "seed": seed,
        "sample": sample,
        "prompts": prompts,
        **calls,
    }
    async with _new(recipe, path, settings) as task:
        ended = await _play(task, is_resumed=False)
    return _handle(task, recipe, ended)


async def aplan(recipe: RecipeLike, *, path: PathLike, **settings: Unpack[PlaySettings]) -> Run:
    """Make a new run and its plan, and play nothing yet; `resume` plays it, `Run.step` goes through a conversation.

    The arguments, and what is raised, are those of `play`.
    """
    async with _new(recipe, path, settings) as task:
        pass
    return _handle(task, recipe)


async def aresume(
    path: PathLike,
    *,
    recipe: RecipeLike | None = None,
    models: Mapping[str, ModelLike] | None = None,
    retry_failed: bool = False,
    **calls: Unpack[CallSettings],
) -> Run:
    """Go on with a run where it stopped: what is finished stays as it is, what was begun goes on from its last step.

    Args:
        path: The run's file.
        recipe: The recipe, if it was given as an object.
        models: Functions and graphs that were given as objects, by role; no other model can be changed.
        retry_failed: Try failed scenarios again.
        **calls: How calls are made; see `CallSettings`.

    Raises:
        StoreError: If it is no run, or another process writes it.
        RunError, BindingError, CacheError: Naming what is missing or wrong.
    """
    async with _reopened(path, recipe, models, calls) as task:
        if retry_failed:
            task.tell(Retrying(failed=task.store.retries.failed()))
        ended = await _play(task, is_resumed=True)
    return _handle(task, recipe, ended)


async def ajudge(
    path: PathLike,
    model: ModelLike | None = None,
    *,
    models: Mapping[str, ModelLike] | None = None,
    temperature: float | Mapping[str, float] | None = None,
    api_base: str | Mapping[str, str] | None = None,
    name: str | None = None,
    recipe: RecipeLike | None = None,
    retry_failed: bool = False,
    **calls: Unpack[CallSettings],
) -> Run:
    """Judge a run's finished scenarios once more, into a set of judgements of its own; or go on with that set.

    Args:
        path: The run's file.
        model: Who judges, in every judging role that `models` does not name.
        models: Who judges in which role.
        temperature: Of every judging role, or by role.
        api_base: Where the judges are served.
        name: What the set is called; by default the judges' models.
        recipe: The recipe, if it was given as an object.
        retry_failed: Try failed judgings again.
        **calls: How calls are made; see `CallSettings`.

    Raises:
        StoreError: If it is no run, or another process writes it.
        RunError: If the recipe has no judging of its own, or the name belongs to other judgements.
        BindingError, CacheError: Naming what is wrong.
    """
    tell, control = _watched(calls)
    with RunStore(Path(path), calls.get("synchronous", "normal"), _given(recipe)) as store:
        found = store.recipe
        graph = _judging_graph(found)
        bound = bind(found.judging_roles(), model=model, models=models, temperature=temperature, api_base=api_base)
        policy = call_policy(calls, RunLimits.of(store), bound.objects)
        await asyncio.to_thread(_check, [binding.model for binding in bound.by_role.values()], policy.limits)
        chosen = _opened_set(store, name, bound.by_role)
        _keep_limits(store, policy.limits)
        if retry_failed:
            tell(Retrying(failed=store.retries.failed(chosen.name), judging=chosen.name))
        task = _Task(store, found, bound.by_role, policy, tell, control)
        todo = store.queue.count_to_judge(chosen.name)
        tell(Began(store.path, "judging", todo, chosen.name))
        ended = await _work(task, graph, bound.by_role, store.queue.to_judge(found, chosen.name), chosen.name)
    return Run(path, recipe=recipe, ended=ended)


async def aretry(
    path: PathLike,
    *,
    failed: bool | None = None,
    scenarios: Collection[str | int] = (),
    unparsed: bool = False,
    judging: str | None = None,
    recipe: RecipeLike | None = None,
    models: Mapping[str, ModelLike] | None = None,
    **calls: Unpack[CallSettings],
) -> Run:
    """Try again what did not come out well, and nothing else: what is pending stays so (`resume` plays it).

    Args:
        path: The run's file.
        failed: Failed scenarios, from their last step; by default if neither `scenarios` nor `unparsed` is given.
        scenarios: Scenarios to be played anew, from their beginning and with replies of their own: ids, beginnings of
            ids, or places in the plan (from 1).
        unparsed: Judgements whose replies could not be read: other replies are asked for.
        judging: Of which set; by default the run's own.
        recipe: The recipe, if it was given as an object.
        models: Functions and graphs that were given as objects, by role.
        **calls: How calls are made; see `CallSettings`.

    Raises:
        StoreError: If it is no run, another process writes it, or it has no such scenario or set.
        RunError, BindingError, CacheError: Naming what is missing or wrong.
    """
    if judging is not None and not unparsed:
        raise RunError(
            f"judging {judging!r}: it names the set whose unparsed judgements are made again; ask for these too",
            setting="judging",
        )
    is_failed = failed if failed is not None else not scenarios and not unparsed
    async with _reopened(path, recipe, models, calls) as task:
        ended = None
        if unparsed:
            ended = await _rejudge(task, judging)
        if (is_failed or scenarios) and (ended is None or (ended.is_complete and not ended.failed)):
            ended = await _replay(task, is_failed, scenarios)
    return _handle(task, recipe, ended)


async def aestimate(recipe: RecipeLike, **settings: Unpack[PlaySettings]) -> CostEstimate:
    """What a run would take, before anything is sent: a few of its scenarios are played by understudies and counted.

    Args:
        recipe: As for `play`.
        **settings: As for `play`.

    Raises:
        RunError: If understudies cannot play the recipe; and whatever `play` would raise.
    """
    new = await asyncio.to_thread(lambda: resolve(recipe, **settings))
    tell, control = _watched(settings)
    return await estimated(
        new.recipe, new.config, new.overrides, new.policy.limits, lambda text: tell(Noted(text)), control
    )


async def stream(
    recipe: RecipeLike | None = None, *, path: PathLike, is_new: bool | None = None, **settings: Unpack[PlaySettings]
) -> AsyncGenerator[Event, None]:
    """What happens while a run is played, as it happens; without a recipe, while it is gone on with.

    Leaving the loop early stops the work; what was committed is kept, and `resume` goes on from there. In the same
    coroutine that wants `contextlib.aclosing`, as an event loop closes what was left a moment later.

    Args:
        recipe: As for `play`; `None` to go on with the run at `path`.
        path: The run's file.
        is_new: Whether the run is to be made; by default if there is a recipe. One that was given as an object is given
            again to go on.
        **settings: As for `play`; to go on, only `models` and how calls are made.

    Yields:
        Events; the last one is `Ended`.

    Raises:
        DialoomError: As `play` and `resume`.
    """
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    listener, control = settings.get("on_event"), settings.get("control") or Control()

    def on_event(event: Event) -> None:
        if listener is not None:
            listener(event)
        loop.call_soon_threadsafe(queue.put_nowait, event)  # planning speaks from another thread

    loop = asyncio.get_running_loop()
    told: Any = {**settings, "on_event": on_event, "control": control}
    if recipe is None or is_new is False:
        work = asyncio.create_task(aresume(path, recipe=recipe, **told))
    else:
        work = asyncio.create_task(aplay(recipe, path=path, **told))
    work.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        await work
    finally:
        if not work.done():
            control.stop()
            with contextlib.suppress(Exception):
                await work


@contextlib.asynccontextmanager
async def step(
    path: PathLike,
    scenario: str | int,
    *,
    branch: str = MAIN,
    recipe: RecipeLike | None = None,
    models: Mapping[str, ModelLike] | None = None,
    **calls: Unpack[CallSettings],
) -> AsyncIterator[Session]:
    """One conversation of a run step by step; see `Run.step`."""
    async with _reopened(path, recipe, models, calls) as task:
        tell = task.tell

        def told(text: str) -> None:
            tell(NodeSaid(str(scenario), text))

        opened = Session.open(task.store, scenario, branch=branch, policy=task.policy, tell=told)
        async with opened as session:
            yield session


play = blocking("play", aplay)
plan = blocking("plan", aplan)
resume = blocking("resume", aresume)
judge = blocking("judge", ajudge)
retry = blocking("retry", aretry)
estimate = blocking("estimate", aestimate)


@dataclass(frozen=True, slots=True)
class _Task:
    """A run that is open for writing, and how its calls are made."""

    store: RunStore
    recipe: Recipe
    models: Mapping[str, ModelBinding]
    policy: CallPolicy
    tell: Callable[[Event], None]
    control: Control


def _handle(task: _Task, recipe: RecipeLike | None, ended: Ended | None = None) -> Run:
    """What the caller gets of a task that is over; it keeps what was given as an object."""
    objects = task.policy.objects
    models = {role: objects[each.model] for role, each in task.models.items() if each.model in objects}
    return Run(task.store.path, recipe, models=models, ended=ended)


@contextlib.asynccontextmanager
async def _new(recipe: RecipeLike, path: PathLike, settings: PlaySettings) -> AsyncIterator[_Task]:
    """A new run, planned; nothing is left of it if that fails."""
    new = await asyncio.to_thread(lambda: resolve(recipe, **settings))
    tell, control = _watched(settings)
    library = await asyncio.to_thread(prepare, new.recipe, new.config, new.overrides)
    plan = planned(
        Path(path),
        new.recipe,
        new.config,
        library,
        lambda text: tell(Noted(text)),
        synchronous=settings.get("synchronous", "normal"),
        is_stopped=lambda: control.is_draining,
    )
    async with plan as store:
        _keep_limits(store, new.policy.limits)
        tell(Planned(store.path, new.config, store.status().total))
        yield _Task(store, new.recipe, new.config.models, new.policy, tell, control)


@contextlib.asynccontextmanager
async def _reopened(
    path: PathLike, recipe: RecipeLike | None, models: Mapping[str, ModelLike] | None, calls: CallSettings
) -> AsyncIterator[_Task]:
    """A run to go on with; it is planned first if it was stopped before its plan was written."""
    tell, control = _watched(calls)
    with RunStore(Path(path), calls.get("synchronous", "normal"), await asyncio.to_thread(_given, recipe)) as store:

        def checked(is_given_up: Callable[[], bool]) -> tuple[Recipe, CallPolicy]:
            found = store.recipe
            bound = rebind(store.config.models, models)
            policy = call_policy(calls, RunLimits.of(store), bound.objects)
            policy.limits.check_prices(store.config.model_names.values())
            if not store.is_planned:
                write_plan(store, found, lambda text: tell(Noted(text)), is_given_up)
            return found, policy

        found, policy = await in_thread(checked, lambda: control.is_draining)
        _keep_limits(store, policy.limits)
        yield _Task(store, found, store.config.models, policy, tell, control)


async def _play(task: _Task, is_resumed: bool, only: Collection[int] | None = None) -> Ended:
    """Play what is pending; of that only the scenarios of some positions, if these are given."""
    store, recipe = task.store, task.recipe
    task.tell(Began(store.path, "playing", store.status().pending if only is None else len(only)))
    graph = graph_of(recipe, store.config.options)
    return await _work(task, graph, store.config.models, store.queue.pending(recipe, only), None, is_resumed)


async def _replay(task: _Task, is_failed: bool, scenarios: Collection[str | int]) -> Ended:
    store = task.store
    anew = {store.resolve(str(name)) for name in scenarios}
    failed = set(store.positions("failed")) if is_failed else set()
    if is_failed:
        task.tell(Retrying(failed=store.retries.failed()))
    for position in sorted(anew):
        store.retries.scenario(position)
    if anew:
        task.tell(Retrying(anew=len(anew)))
    return await _play(task, is_resumed=True, only=anew | failed)


async def _rejudge(task: _Task, name: str | None) -> Ended:
    store, recipe = task.store, task.recipe
    chosen = store.judgement_set(name)
    if chosen is None:
        raise RunError(f"{store.path} has no judgements", advice=_judging_advice(store.path))
    if recipe.judging() is None:
        raise RunError(
            f"recipe {recipe.name!r} has no judging of its own, so its judgements cannot be made again alone",
            advice=Advice("retry_scenario", "play a scenario anew instead", {"path": store.path}),
        )
    models = {role: chosen.models[role] for role in recipe.judging_roles()}
    task.policy.limits.check_prices(binding.model for binding in models.values())
    count = store.retries.unparsed(chosen.name)
    task.tell(Retrying(unparsed=count, judging=chosen.name))
    task.tell(Began(store.path, "judging again", count, chosen.name))
    work = store.queue.to_rejudge(recipe, chosen.name)
    return await _work(task, _judging_graph(recipe), models, work, chosen.name)


async def _work(
    task: _Task,
    graph: Graph,
    models: Mapping[str, ModelBinding],
    work: Iterator[Work],
    judging: str | None,
    is_resumed: bool = True,
) -> Ended:
    """Carry out work to its end, or until it is stopped."""
    store, policy = task.store, task.policy
    with open_gateway(store, policy) as gateway:
        await asyncio.to_thread(gateway.prepare, [binding.model for binding in models.values()])
        engine = Engine(
            store,
            task.recipe,
            graph,
            cast_of(store, task.recipe, models, gateway),
            store.config.seed,
            policy.concurrency,
            task.tell,
            policy.fail_on_error,
            gateway.drain,
        )
        task.control.attach(engine, lambda: gateway.states)
        try:
            await engine.run(work, is_resumed)
        finally:
            task.control.detach()
    ended = Ended(store.path, engine.done, engine.failed, not engine.is_draining, engine.stopped, judging)
    task.tell(ended)
    return ended


def _watched(calls: CallSettings) -> tuple[Callable[[Event], None], Control]:
    return calls.get("on_event") or (lambda _event: None), calls.get("control") or Control()


def _given(recipe: RecipeLike | None) -> Recipe | None:
    return None if recipe is None else find_recipe(recipe)[1]


def _check(models: Collection[str], limits: RunLimits) -> None:
    for model in models:
        check_model(model)
    limits.check_prices(models)


def _judging_graph(recipe: Recipe) -> Graph:
    graph = recipe.judging()
    if graph is None:
        raise RunError(f"recipe {recipe.name!r} has no judging of its own")
    return graph


def _opened_set(store: RunStore, name: str | None, models: Mapping[str, ModelBinding]) -> JudgementSet:
    """A new set of judgements, or the one of that name, to go on with it."""
    wanted = judgement_set(name or ", ".join(binding.model for binding in models.values()), store.prompts, models)
    existing = {each.name: each for each in store.judgement_sets()}
    if wanted.name == OWN_JUDGEMENTS:
        raise RunError(
            f"name {OWN_JUDGEMENTS!r} is kept for the judgements that a run makes itself; give another", setting="name"
        )
    if wanted.name not in existing:
        store.add_judgement_set(wanted)
    elif existing[wanted.name] != wanted:
        theirs = ", ".join(existing[wanted.name].model_names.values())
        raise RunError(
            f"name {wanted.name!r}: the judgements of that name were made by {theirs}; give these another",
            setting="name",
        )
    return wanted


def _judging_advice(path: Path) -> Advice:
    return Advice("judge", "judge the run first", {"path": path})


def _keep_limits(store: RunStore, limits: RunLimits) -> None:
    """Keep budget, prices and rates in the run's file, if they are other ones than before."""
    if limits != RunLimits.of(store):
        store.keep_limits(limits.model_dump_json())
