"""A run that is open for writing, and the building blocks of the operations on it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from dialoom.errors import DialoomError
from dialoom.graphs import Recipe, WithFacets
from dialoom.graphs.judge import Graph
from dialoom.graphs.outcome import USER
from dialoom.graphs.study import read_study
from dialoom.graphs.transcript import Transcripts
from dialoom.grouping import group_pairs
from dialoom.roles import ModelBinding
from dialoom.roles.binding import REQUEST_SETTINGS, explain_no_effect, find_changed_objects, is_user_player, rebind
from dialoom.roles.gateway.gateway import describe_changed_parameters
from dialoom.roles.gateway.model_facts import find_missing_keys
from dialoom.roles.players import can_remember_person
from dialoom.runs.configuration.recipes import find_recipe
from dialoom.runs.configuration.trust import (
    Trust,
    cast_references,
    compute_code_hashes,
    find_study_problem,
    player_references,
    recipe_references,
)
from dialoom.runs.control import Control, Ended, Event, Notice, Planned, Retrying, StopRule
from dialoom.runs.engine import Engine, WorkList, run_in_thread
from dialoom.runs.errors import RunError
from dialoom.runs.gateway_setup import (
    CallPolicy,
    RunLimits,
    build_cast,
    check_workers,
    open_gateway,
)
from dialoom.runs.planning import create_run, prepare, write_plan
from dialoom.runs.preflight import check_requests_fit
from dialoom.runs.store import RunStore, Work
from dialoom.runs.workers.messages import merge_leftovers
from dialoom.settings import ModelLike, PathLike, as_mapping

from .operation_settings import CallSettings, PlaySettings, RecipeLike, build_call_policy, resolve_new_run


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that is open for writing, with the players and the policy of its calls."""

    store: RunStore
    recipe: Recipe
    models: Mapping[str, ModelBinding]
    policy: CallPolicy
    tell: Callable[[Event], None]
    control: Control
    allows_longer_requests: bool = False
    """Whether context windows were given to this operation, so that longer requests may be sent."""


@contextlib.asynccontextmanager
async def open_new_run(
    recipe: RecipeLike, path: PathLike, settings: PlaySettings, *, is_played: bool
) -> AsyncIterator[OpenRun]:
    """Yield a new run with its plan; the file is removed if planning fails.

    Args:
        recipe: As for `play`.
        path: The run's file.
        settings: As for `play`.
        is_played: Whether the run is played immediately, so that the providers' keys are required.
    """
    new = await asyncio.to_thread(lambda: resolve_new_run(recipe, is_played, **settings))
    tell, control = get_listener_and_control(settings)
    library = await asyncio.to_thread(prepare, new.recipe, new.config)
    if is_played and not new.policy.settings["replay_only"]:
        options, context = new.config.options, new.policy.limits.context
        for models in new.config.casts:
            await check_requests_fit(new.recipe, options, new.config.seed, library, models, context)
    async with create_run(
        Path(path),
        new.recipe,
        new.config,
        library,
        lambda text: tell(Notice(text)),
        synchronous=settings.get("synchronous", "normal"),
        is_stopped=lambda: control.is_draining,
    ) as store:
        store_limits(store, new.policy.limits)
        report_unknown_models(tell, settings, new.config.casts)
        report_ineffective_settings(tell, settings, new.config.casts)
        _report_missing_memory(tell, new.recipe, new.config.casts, new.policy)
        tell(Planned(store.path, new.config, store.status().total))
        yield OpenRun(store, new.recipe, new.config.models, new.policy, tell, control)


@contextlib.asynccontextmanager
async def reopen_run(
    path: PathLike,
    recipe: RecipeLike | None,
    models: Mapping[str, ModelLike] | None,
    calls: CallSettings,
    *,
    is_stepped: bool = False,
) -> AsyncIterator[OpenRun]:
    """Yield a run to resume; it is planned first if it was stopped before its plan was written.

    Args:
        path: The run's file.
        recipe: The recipe, if the run was made with a recipe object.
        models: Functions and graphs given as Python objects, by role.
        calls: How calls are made.
        is_stepped: Whether it is opened for a stepper, which itself refuses to call changed functions of a study.
    """
    tell, control = get_listener_and_control(calls)
    given_recipe = await asyncio.to_thread(load_optional_recipe, recipe)
    with RunStore(Path(path), calls.get("synchronous", "normal"), given_recipe, build_trust(calls, tell)) as store:
        # A resume reads the file in this order: the models, to which the given players are bound; the references to
        # code and addresses, before anything is loaded; the recipe; the study's functions; the limits; the calls that
        # killed workers have left; the plan, which is written if it is missing. So no code is loaded before it is
        # trusted. Keys are checked last, before the first call: until then, at most the plan and the limits have been
        # written, and the same command continues with them once the key is there.
        def prepare_run(is_stopped: Callable[[], bool]) -> tuple[Recipe, CallPolicy]:
            bindings = rebind(stored := store.config.models, models)
            store.report_changed(find_changed_objects(bindings))
            store.trust_specified(named for role in models or {} for named in player_references(stored[role].model))
            players = [named for cast in store.config.casts for named in cast_references(cast)]
            store.ensure_trusted([*([] if recipe else store.recipe_references()), *players])
            loaded_recipe = store.recipe
            if not (is_stepped and store.is_planned):
                check_study(store, tell)
            policy = build_call_policy(calls, RunLimits.of(store), bindings.objects, loaded_recipe.roles)
            casts = store.config.casts
            if policy.cache is not None or not find_missing_keys(casts):  # missing keys are reported later
                policy.limits.check_prices(each.model for cast in casts for each in cast.values())
            merge_leftovers(store)
            if not store.is_planned:
                write_plan(store, loaded_recipe, lambda text: tell(Notice(text)), is_stopped)
            return loaded_recipe, policy

        loaded_recipe, policy = await run_in_thread(prepare_run, lambda: control.is_draining)
        store_limits(store, policy.limits)
        report_unknown_models(tell, calls, [*store.config.casts, *(each.models for each in store.judgement_sets())])
        yield OpenRun(store, loaded_recipe, store.config.models, policy, tell, control, bool(calls.get("context")))


def retry_failures(opened: OpenRun, judging: str | None = None) -> None:
    """Make failed scenarios pending again; those whose request was too long, only if context windows were given."""
    retried, too_long = opened.store.retries.retry_failed(judging, too_long=opened.allows_longer_requests)
    opened.tell(Retrying(failed=retried, too_long=too_long, judging=judging))


async def carry_out(
    opened: OpenRun,
    graph: Graph,
    models: Mapping[str, ModelBinding],
    work: Iterator[Work],
    judging: str | None,
    is_resumed: bool = True,
    servers: Sequence[str] = (),
) -> Ended:
    """Carry out work until it is finished or stopped: in this process, or by workers."""
    store, policy = opened.store, opened.policy
    casts = [models] if judging is not None else store.config.players
    check_workers(servers, casts, policy)
    reported = _find_changes(opened)
    for each in (casts[0], *({USER: cast[USER]} for cast in casts[1:])):
        expected = {} if policy.settings["replay_only"] else await asyncio.to_thread(describe_changed_parameters, each)
        _report_changes(
            opened, [each], {(role, change) for role, text in expected.items() for change in text.split("; ")}, reported
        )
    if policy.is_alone:
        stop_rule = await _play_in_process(opened, graph, casts, work, is_resumed, servers)
    else:
        stop_rule = await _play_by_workers(opened, casts, work, judging)
    _report_changes(opened, casts, _find_changes(opened), reported)  # some occur only in requests with tools
    ended = Ended(store.path, stop_rule.done, stop_rule.failed, not stop_rule.is_draining, stop_rule.stopped, judging)
    opened.tell(ended)
    return ended


async def _play_in_process(
    opened: OpenRun,
    graph: Graph,
    casts: Sequence[Mapping[str, ModelBinding]],
    work: Iterator[Work],
    is_resumed: bool,
    servers: Sequence[str],
) -> StopRule:
    store, policy = opened.store, opened.policy
    with open_gateway(store, policy, policy.settings["patience"]) as gateway:
        cast = build_cast(store, opened.recipe, casts[0], gateway)
        await asyncio.to_thread(gateway.prepare, [each for cast in casts for each in cast.values()])
        engine = Engine(
            store,
            opened.recipe,
            graph,
            cast,
            policy.settings["concurrency"],
            opened.tell,
            policy.settings["fail_on_error"],
            gateway.drain,
            servers,
        )
        gateway.listen(engine.on_provider_event)
        opened.control.attach(engine, gateway)
        try:
            await engine.run(WorkList(work, store), is_resumed)
        finally:
            opened.control.detach()
    return engine.stop_rule


def _find_changes(opened: OpenRun) -> set[tuple[str, str]]:
    """Return the settings that were not sent as configured in calls so far, each with its role."""
    return {
        (role, each) for role, texts in opened.store.changes().items() for text in texts for each in text.split("; ")
    }


def _report_changes(
    opened: OpenRun,
    casts: Sequence[Mapping[str, ModelBinding]],
    changes: set[tuple[str, str]],
    reported: set[tuple[str, str]],
) -> None:
    """Report settings that were not sent as configured and not reported before, with the models of the role."""
    for role, texts in group_pairs(sorted(changes - reported)).items():
        models = ", ".join(dict.fromkeys(cast[role].model for cast in casts if role in cast))
        opened.tell(Notice(f"not sent as configured, {role} ({models}): {'; '.join(texts)}"))
    reported |= changes


async def _play_by_workers(
    opened: OpenRun, casts: Sequence[Mapping[str, ModelBinding]], work: Iterator[Work], judging: str | None
) -> StopRule:
    from dialoom.runs.workers.pool import WorkerPool  # imported here, as a run in a single process does not need it

    pool = WorkerPool(opened.store, opened.recipe, casts[0], opened.policy, opened.tell)
    opened.control.attach(pool)
    try:
        await pool.run(work, judging)
    finally:
        opened.control.detach()
    return pool.stop_rule


def get_listener_and_control(calls: CallSettings) -> tuple[Callable[[Event], None], Control]:
    """Return the listener for events, and the control that can stop the work."""
    return calls.get("on_event") or (lambda _event: None), calls.get("control") or Control()


def build_trust(calls: CallSettings, tell: Callable[[Event], None]) -> Trust:
    """Return the trust in a run's code and addresses; report what is trusted only because of the setting."""
    return Trust(calls.get("trust", False), lambda line: tell(Notice(line)))


def check_study(store: RunStore, tell: Callable[[Event], None]) -> None:
    """Check that the functions of a run's study are unchanged since the run was made; do nothing for other recipes.

    If the study's file has changed, report that the stored study is used.

    Raises:
        RunError: If a file has changed or is missing, or a function that was given as a Python object is not given
            again.
    """
    if problem := find_study_problem(store.path, store.recipe, store.config.recipe, store.config.code):
        raise problem
    stored, path = store.config.study, store.located_recipe
    if stored is None or path is None or not Path(path).is_file():
        return
    with contextlib.suppress(DialoomError):
        if read_study(Path(path)).to_dict() != stored:
            tell(
                Notice(
                    f"{path} has changed since {store.path} was created; the study stored in the run is used. To score "
                    "the recorded conversations by the changed study, export them as dialogues and import them with it"
                )
            )


def check_transcripts(store: RunStore) -> None:
    """Check that a run holds imported conversations.

    Raises:
        RunError: If it is of another recipe.
    """
    if not isinstance(store.recipe, Transcripts):
        raise RunError(
            f"{store.path} is a run of {store.config.recipe!r}; only runs of imported conversations can be extended "
            "or judged by a study"
        )


def replace_study(store: RunStore, recipe: Transcripts | None, roles: Iterable[str] = ()) -> None:
    """Replace the study by which a run of transcripts is judged.

    Args:
        store: The run.
        recipe: The recipe with the study; `None` to change nothing.
        roles: Roles that speak in conversations which will be added to the run.

    Raises:
        RunError: If the run is of another recipe.
        DataError: If a metric of the study has the name of a column of the conversations, or its target is not a role.
    """
    if recipe is None:
        return
    check_transcripts(store)
    if recipe.study.to_dict() == store.config.study:
        return
    recipe.check_columns({column for facets in store.planned_facets() for column in facets})
    recipe.check_roles(chain(roles, (line.role for each in store.episodes() for line in each.outcome.messages)))
    references = recipe_references(store.config.recipe, recipe=recipe)
    config = store.config.model_copy(
        update={"study": recipe.study.to_dict(), "code": {**store.config.code, **compute_code_hashes(references)}}
    )
    store.trust_specified(references)
    store.take_study(config, prepare(recipe, config))


@contextlib.contextmanager
def study_transaction(store: RunStore, recipe: Transcripts | None) -> Iterator[None]:
    """Replace the study of a run of transcripts, as `replace_study` does.

    If the `with` block fails before it makes a set of judgements, the run keeps its former study.
    """
    former, prompts, sets = store.config, store.prompts, store.judgement_sets()
    replace_study(store, recipe)
    try:
        yield
    except DialoomError:
        if store.config != former and store.judgement_sets() == sets:
            store.take_study(former, prompts)
        raise


def load_optional_recipe(recipe: RecipeLike | None) -> Recipe | None:
    """Load the recipe, if one was given."""
    return None if recipe is None else find_recipe(recipe)[1]


def report_unknown_models(
    tell: Callable[[Event], None], settings: Mapping[str, object], casts: Iterable[Mapping[str, ModelBinding]]
) -> None:
    """Report settings for a model that plays no role; its name may be mistyped."""
    models = dict.fromkeys(binding.model for cast in casts for binding in cast.values())
    for setting in ("context", "rpm", "tpm", "prices"):
        values = settings.get(setting)
        for name in values if isinstance(values, Mapping) else ():
            if name and name not in models:
                tell(
                    Notice(
                        f"{setting}: no role is played by {name}, so the setting has no effect; the models are "
                        f"{', '.join(models)}"
                    )
                )


def report_ineffective_settings(
    tell: Callable[[Event], None], settings: Mapping[str, Any], casts: Iterable[Mapping[str, ModelBinding]]
) -> None:
    """Report settings of requests that are given for a role with a player of the user's own."""
    models = {role: binding.model for cast in casts for role, binding in cast.items() if is_user_player(binding.model)}
    for setting in REQUEST_SETTINGS:
        for role in models.keys() & as_mapping(settings.get(setting)).keys():
            tell(Notice(f"{setting}: {explain_no_effect(role, models[role])}"))


def _report_missing_memory(
    tell: Callable[[Event], None], recipe: Recipe, casts: Iterable[Mapping[str, ModelBinding]], policy: CallPolicy
) -> None:
    """Report a person's conversations in sequence of which no player knows the earlier ones."""
    players = [binding.model for cast in casts for binding in cast.values() if binding.stateful]
    if WithFacets.of(recipe).sequence_facet and not any(can_remember_person(each, policy.objects) for each in players):
        tell(
            Notice(
                "in_sequence: no player knows a person's earlier conversations; declare the player that should "
                "remember them stateful, compile a graph with a store (each conversation has a thread of its own), and "
                "give a class snapshots (each conversation has an object of its own)"
            )
        )


def store_limits(store: RunStore, limits: RunLimits) -> None:
    """Write the limits of calls to the run's file if they have changed."""
    if limits != RunLimits.of(store):
        store.keep_limits(limits.model_dump_json())
