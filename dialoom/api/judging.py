"""Judging of finished scenarios: by further judges, again, or by a panel."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dialoom.errors import Advice
from dialoom.graphs import Recipe, WithJudging, WithPrompts
from dialoom.graphs.judge import Graph
from dialoom.graphs.recipe import Review
from dialoom.prompts import PromptLibrary
from dialoom.roles import ModelBinding
from dialoom.roles.binding import OBJECT_PREFIX, Bindings
from dialoom.roles.gateway.gateway import check_model, check_parameters
from dialoom.roles.role import check_understudies
from dialoom.runs.configuration.trust import cast_references
from dialoom.runs.control import Ended, Retrying, Started
from dialoom.runs.errors import RunError
from dialoom.runs.gateway_setup import RunLimits, check_model_access, select_prompts
from dialoom.runs.planning import build_judgement_set
from dialoom.runs.store import OWN_JUDGEMENTS, PANEL, JudgementSet, RunStore
from dialoom.runs.workers.messages import merge_leftovers
from dialoom.settings import PathLike

from .judges import add_counts
from .open_run import (
    OpenRun,
    build_trust,
    carry_out,
    check_study,
    get_listener_and_control,
    load_optional_recipe,
    report_unknown_models,
    retry_failures,
    store_limits,
)
from .operation_settings import CallSettings, RecipeLike, build_call_policy

_BATCH_SIZE = 200
"""Number of outcomes whose faults are written in one transaction."""


@contextlib.contextmanager
def open_for_judging(path: PathLike, recipe: RecipeLike | None, calls: CallSettings) -> Iterator[RunStore]:
    """Open a run whose finished scenarios are to be judged or reviewed."""
    tell, _ = get_listener_and_control(calls)
    with RunStore(
        Path(path), calls.get("synchronous", "normal"), load_optional_recipe(recipe), build_trust(calls, tell)
    ) as store:
        check_study(store, tell)
        merge_leftovers(store)
        yield store


async def judge_scenarios(
    store: RunStore,
    judge: Recipe,
    bindings: Bindings,
    name: str | None,
    retry_failed: bool,
    calls: CallSettings,
    only: Collection[int] | None = None,
) -> Ended:
    """Judge a run's scenarios with the judges of its recipe or of a review, and store the judgements in one set.

    With `retry_failed`, failed judgings of the set are tried again; with `only`, only the scenarios at these positions
    are judged.

    Raises:
        RunError: If the recipe has no judging, or the name belongs to other judgements.
        BindingError, CacheError: If a setting is wrong; the message names it.
    """
    graph = get_judging_graph(judge)
    tell, control = get_listener_and_control(calls)
    policy = build_call_policy(calls, RunLimits.of(store), bindings.objects, judge.roles)
    library = await asyncio.to_thread(WithPrompts.of(judge).library)
    check_understudies(select_prompts(library, bindings.by_role), bindings.by_role)
    if isinstance(judge, Review):
        store.add_prompts(library.values())
        name = name or f"review by {', '.join(binding.model for binding in bindings.by_role.values())}"
    _check_judge_name(store, name, bindings.by_role)
    chosen = open_judgement_set(store, name, bindings.by_role, library)
    store_limits(store, policy.limits)
    report_unknown_models(tell, calls, [*store.config.casts, bindings.by_role])
    store.trust_specified(cast_references(bindings.by_role))
    opened = OpenRun(store, judge, bindings.by_role, policy, tell, control, bool(calls.get("context")))
    if retry_failed:
        retry_failures(opened, chosen.name)
    tell(Started(store.path, "judging", store.queue.count_to_judge(chosen.name, only), chosen.name))
    work = store.queue.to_judge(store.recipe, chosen.name, only)
    return await carry_out(opened, graph, bindings.by_role, work, chosen.name)


def apply_gate(store: RunStore) -> None:
    """Check every finished outcome of a run against the current rules of the gate."""
    recipe, gate = store.recipe, store.gate
    finished = [position for position, _, state, _ in store.listing() if state != "pending"]
    for start in range(0, len(finished), _BATCH_SIZE):
        positions = finished[start : start + _BATCH_SIZE]
        store.results.review(
            {each: gate.add_faults(store.scenario(recipe, each), store.outcome(each)) for each in positions}
        )


async def rejudge_unparsed(opened: OpenRun, name: str | None) -> Ended:
    """Repeat the unparsed judgements of a set.

    Raises:
        RunError: If there are no judgements, or the recipe has no judging of its own.
    """
    store, recipe = opened.store, opened.recipe
    chosen = store.judgement_set(name)
    if chosen is None:
        raise RunError(
            f"{store.path} has no judgements", advice=Advice("judge", "judge the run first", {"path": store.path})
        )
    if chosen.members:
        members = ", ".join(map(repr, chosen.members))
        raise RunError(
            f"judging {chosen.name!r}: a panel only combines its judges' sets; name one of {members}", setting="judging"
        )
    if chosen.is_review:
        recipe = Review(recipe)
        opened = replace(opened, recipe=recipe)
    if WithJudging.of(recipe).judging() is None:
        raise RunError(
            f"recipe {recipe.name!r} judges only while it plays, so its judgements cannot be repeated alone",
            advice=Advice("retry_scenario", "play a scenario again instead", {"path": store.path}),
        )
    models = {role: chosen.models[role] for role in WithJudging.of(recipe).judging_roles()}
    await asyncio.to_thread(check_model_access, [models], opened.policy)
    opened.policy.limits.check_prices(binding.model for binding in models.values())
    count = store.retries.retry_unparsed(chosen.name)
    opened.tell(Retrying(unparsed=count, judging=chosen.name))
    opened.tell(Started(store.path, "judging again", count, chosen.name))
    work = store.queue.to_rejudge(store.recipe, chosen.name)
    return await carry_out(opened, get_judging_graph(recipe), models, work, chosen.name)


async def judge_by_panel(opened: OpenRun, ended: Ended) -> Ended:
    """Let a run's further judges judge all finished scenarios, each into a set named after its models."""
    store = opened.store
    for judges in store.config.panel:
        if not ended.is_complete:
            break
        chosen = open_judgement_set(store, None, judges, store.prompts)
        if count := store.queue.count_to_judge(chosen.name):
            await asyncio.to_thread(check_model_access, [judges], opened.policy)
            opened.tell(Started(store.path, "judging", count, chosen.name))
            work = store.queue.to_judge(opened.recipe, chosen.name)
            ended = add_counts(
                ended, await carry_out(opened, get_judging_graph(opened.recipe), judges, work, chosen.name)
            )
    return ended


def check_judges(store: RunStore, judge: Recipe, bindings_list: Sequence[Bindings], calls: CallSettings) -> None:
    """Check that judges can be called with the given settings, and that a cost limit can be enforced.

    Raises:
        BindingError, RunError: If a judge cannot be called, or has no price although the cost is limited.
    """
    policy = build_call_policy(calls, RunLimits.of(store), {}, judge.roles)
    casts = [each.by_role for each in bindings_list]
    check_model_access(casts, policy)  # checked first, because missing keys are found without importing LiteLLM
    models = [binding.model for judges in casts for binding in judges.values()]
    for model in models:
        check_model(model)
    for judges in casts:
        check_parameters(judges)
    policy.limits.check_prices(models)


def get_judging_graph(recipe: Recipe) -> Graph:
    """Return the recipe's graph that judges finished conversations.

    Raises:
        RunError: If the recipe cannot judge finished conversations.
    """
    graph = WithJudging.of(recipe).judging()
    if graph is None:
        raise RunError(f"recipe {recipe.name!r} cannot judge finished conversations")
    return graph


def _check_judge_name(store: RunStore, name: str | None, models: Mapping[str, ModelBinding]) -> None:
    """Check that a function as judge is not confused with an earlier judge, a function with the same name.

    Raises:
        RunError: If there is such a judge, and the new set has no name of its own.
    """
    requested = build_judgement_set("", store.prompts, models)
    same = [each.name for each in store.judgement_sets() if replace(each, name="") == requested]
    function = next((binding.model for binding in models.values() if binding.model.startswith(OBJECT_PREFIX)), None)
    if same and function is not None and function not in same and function == (name or "").partition(" #")[0]:
        raise RunError(
            f"models: {function} has the name of the judge of {same[0]!r} but may be another function; give its "
            "judgements a name",
            setting="models",
        )


def open_judgement_set(
    store: RunStore, name: str | None, models: Mapping[str, ModelBinding], prompt_ids: Container[str]
) -> JudgementSet:
    """Return the set of judgements with this name to continue, or a new set.

    Args:
        store: The run.
        name: The set's name; by default the models.
        models: The judges by role.
        prompt_ids: The ids of the recipe's prompts. A run of transcripts also stores those of former studies.
    """
    prompts = PromptLibrary(prompt for id_, prompt in store.prompts.items() if id_ in prompt_ids)
    requested = build_judgement_set(name or ", ".join(binding.model for binding in models.values()), prompts, models)
    existing = {each.name: each for each in store.judgement_sets()}
    reserved = {OWN_JUDGEMENTS: "the run's own judgements", PANEL: "the panel of several judges"}
    if requested.name in reserved and requested.name not in existing.keys() - {OWN_JUDGEMENTS}:
        raise RunError(
            f"name {requested.name!r} is reserved for {reserved[requested.name]}; give another name", setting="name"
        )
    if existing.get(requested.name) == requested:
        return requested
    if requested.name not in existing or not store.has_judged(requested.name):  # a set may be empty
        store.add_judgement_set(requested)
    else:
        judges = ", ".join(existing[requested.name].model_names.values())
        if existing[requested.name].model_names == requested.model_names:
            judges += " with other prompts, code, temperature, address, reply limits or parameters"
        raise RunError(
            f"name {requested.name!r}: the existing set with that name was made by {judges}; give another name",
            setting="name",
        )
    return requested
