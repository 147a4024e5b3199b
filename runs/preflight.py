"""Checks before anything is sent: whether requests fit into context windows, and what the run will cost.

Understudies play a few scenarios, and the requests that real models would get are counted. Understudies give short
replies, so a request that does not fit here would not fit in the run either.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from dialoom.errors import Advice
from dialoom.graphs import Recipe, Scenario, Stage, WithPrompts, stream
from dialoom.graphs.outcome import USER
from dialoom.prompts import PromptLibrary
from dialoom.roles import Cast, Completion, Gateway, ModelBinding
from dialoom.roles.gateway import Attempt, CallPlace, CallRecord, Request
from dialoom.roles.gateway.gateway import check_model, check_parameters
from dialoom.roles.gateway.model_facts import Prices, ServedWindow, count_request_tokens, fetch_served_window
from dialoom.roles.parameters import TOKENIZER
from dialoom.roles.role import NoUnderstudiesError, select_offline_models

from .configuration.config import DEFAULT_MODEL, RunConfig
from .configuration.recipe_checks import build_graph
from .control import Control, Event, ScenarioFailed
from .engine import Engine, WorkList
from .errors import RunError
from .gateway_setup import CallPolicy, RunLimits, build_cast, open_gateway, select_prompts
from .planning import create_run, prepare
from .store import RunStore, Usage

EXAMINED_SCENARIOS, PLAYED_SCENARIOS = 64, 3
"""The number of scenarios that are examined, from the beginning of the plan, and how many of the longest are played."""

_WINDOW_TOLERANCE = 1.1
"""The factor by which a request may exceed a window, as tokenizers differ; the server decides close cases."""

_TIME_LIMIT_SECONDS = 10.0
_RECURSION_LIMIT = 1_000_000


class DiscardingLedger:
    """A ledger that stores nothing, for calls that belong to no run."""

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:  # noqa: ARG002
        """Return a dummy row number, so that the call is made."""
        return 0

    async def find(self, key: str, place: CallPlace) -> Completion | None:  # noqa: ARG002
        """Return `None`, because nothing is stored."""
        return None

    async def player_state(self, place: CallPlace, player: bytes, marks: Sequence[bytes]) -> None:
        """Return `None`, because nothing is stored."""

    async def is_open(self, key: str, place: CallPlace) -> bool:  # noqa: ARG002
        """Return false: no earlier process has begun a call."""
        return False

    async def record_failed_attempt(self, id_: int, attempt: Attempt) -> None:
        """Ignore the attempt: only the result counts."""

    async def record(self, id_: int, record: CallRecord) -> None:
        """Ignore the result: the caller gets it."""


class _RequestSizes(DiscardingLedger):
    """A ledger that only tracks the size of each role's largest request, in tokens."""

    def __init__(self) -> None:
        self.by_role: dict[str, int] = {}

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:  # noqa: ARG002
        self.by_role[request.role] = max(count_request_tokens(request), self.by_role.get(request.role, 0))
        return 0


async def check_requests_fit(
    recipe: Recipe,
    options: Mapping[str, object],
    seed: int,
    library: PromptLibrary,
    models: Mapping[str, ModelBinding],
    stated: Mapping[str, int],
) -> None:
    """Check that the requests of a run fit into the context windows that the models' servers report.

    Args:
        recipe: The recipe.
        options: Its options.
        seed: The run's seed.
        library: Its prompts.
        models: The models by role.
        stated: The context windows that the user has stated, by model. Servers are not asked about these models, whose
            requests are checked when they are made.

    Raises:
        RunError: If a request does not fit; the message states both lengths, and what to do.
    """
    windows = await asyncio.to_thread(_fetch_served_windows, models, stated)
    if not windows:
        return
    largest = await measure_largest_requests(recipe, options, seed, library, models)
    for role, window in windows.items():
        if (reason := explain_misfit(role, models[role], largest.get(role, 0), window)) is not None:
            raise RunError(f"models: {reason}", setting="models")


def explain_misfit(role: str, binding: ModelBinding, request: int, window: ServedWindow) -> str | None:
    """Return the reason why a role's requests do not fit into its model's window; `None` if they fit.

    Args:
        role: The role.
        binding: Its model.
        request: The number of tokens in its largest request.
        window: The window that its server reports.
    """
    reply = (binding.max_reply or 0) if window.holds_reply else 0
    if request + reply <= window.tokens * _WINDOW_TOLERANCE:
        return None
    size = f"{request:,} tokens by {TOKENIZER}" + (f", and {reply:,} for the reply" if reply else "")
    return (
        f"{role} gets requests of {size}, but the context window of {binding.model} is {window.tokens:,} tokens "
        f"according to its server: serve it with a longer context, or give {role} another model "
        f"(context={{{binding.model!r}: "
        f"{window.tokens}}} plays the scenarios that fit; the others fail)"
    )


async def measure_largest_requests(
    recipe: Recipe,
    options: Mapping[str, object],
    seed: int,
    library: PromptLibrary,
    models: Mapping[str, ModelBinding],
) -> Mapping[str, int]:
    """Return the number of tokens in each role's largest request, from the longest of the first scenarios.

    Understudies play these scenarios. A role is left out if the understudies do not reach it, because they cannot play
    the recipe or take too long.
    """
    ledger = _RequestSizes()
    played = select_offline_models(library)
    players = {
        role: each.model_copy(update={"model": played.get(role, DEFAULT_MODEL), "api_base": None})
        for role, each in models.items()
    }

    def select_longest() -> list[Scenario]:
        chosen = recipe.options_type.model_validate(options)
        plan = recipe.scenarios(chosen, stream(seed, "", "plan"), lambda _note: None)
        return sorted(islice(plan, EXAMINED_SCENARIOS), key=lambda each: -len(each.model_dump_json()))[
            :PLAYED_SCENARIOS
        ]

    with suppress(Exception):  # the run itself will report any error; here it only ends the counting
        cast = Cast(select_prompts(library, players), players, Gateway(ledger), WithPrompts.of(recipe).reply_types)
        graph = build_graph(recipe, options).compile()
        async with asyncio.timeout(_TIME_LIMIT_SECONDS):
            for scenario in await asyncio.to_thread(select_longest):
                stage = Stage(scenario, cast, scenario.id, seed)
                await graph.ainvoke(recipe.initial(scenario), {"recursion_limit": _RECURSION_LIMIT}, context=stage)
    return ledger.by_role


def _fetch_served_windows(models: Mapping[str, ModelBinding], stated: Mapping[str, int]) -> dict[str, ServedWindow]:
    """Return the context windows that servers report, by role; each server is asked once."""
    servers = {(each.model, each.api_base): each for each in models.values() if each.model not in stated}
    windows = {server: fetch_served_window(each) for server, each in servers.items()}
    found = {role: windows.get((each.model, each.api_base)) for role, each in models.items()}
    return {role: window for role, window in found.items() if window is not None}


MAX_SAMPLE_SIZE = 8
"""The maximum number of scenarios in the sample."""


@dataclass(frozen=True, slots=True)
class ExpectedUsage:
    """The expected usage of scenarios. `cost` in US dollars is `None` if a price is unknown."""

    calls: float
    input_tokens: float
    output_tokens: float
    cost: float | None


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The expected usage of a run.

    Attributes:
        scenarios: The number of planned scenarios; with several trials or user models, of conversations.
        units: Which of these are counted: `scenarios` or `conversations`.
        sampled: How many of these were played for the estimate.
        by_role: The usage in all scenarios, as tuples of role, model and usage.
        total: The usage of all roles.
        least: The run's usage if every scenario used as few tokens as the cheapest one of the sample. `most` is the
            same for the most expensive one. Neither includes common calls, which are made once for several scenarios.
        players: The offline models that played the sample.
    """

    scenarios: int
    units: str
    sampled: int
    by_role: Sequence[tuple[str, str, ExpectedUsage]]
    total: ExpectedUsage
    least: ExpectedUsage
    most: ExpectedUsage
    players: Sequence[str]


async def estimate_cost(
    recipe: Recipe,
    config: RunConfig,
    limits: RunLimits,
    note: Callable[[str], None],
    control: Control,
) -> CostEstimate:
    """Plan the run in a temporary file, play a sample of it with understudies, and extrapolate.

    Args:
        recipe: The recipe.
        config: The configuration of the run.
        limits: The limits, for the prices.
        note: Called with each message that planning reports, such as a repair of the source data.
        control: The control, which can stop the estimate.

    Raises:
        RunError: If understudies cannot play the recipe; and any error that starting the run would raise.
    """
    for models in config.casts:
        for model in dict.fromkeys(binding.model for binding in models.values()):
            await asyncio.to_thread(check_model, model)
        await asyncio.to_thread(check_parameters, models)
    offline = _replace_models(config, await asyncio.to_thread(WithPrompts.of(recipe).library))
    try:
        library = await asyncio.to_thread(prepare, recipe, offline)
    except NoUnderstudiesError as error:
        raise _not_playable_error(recipe, error.reason) from error
    with tempfile.TemporaryDirectory(prefix="dialoom-") as folder:
        path = Path(folder) / "estimate.db"
        plan = create_run(
            path, recipe, offline, library, note, is_stopped=lambda: control.is_draining, remember_trust=False
        )
        async with plan as store:
            total = store.status().total
            positions = sorted(stream(config.seed, "", "estimate").sample(range(total), min(MAX_SAMPLE_SIZE, total)))
            await _play_sample(store, recipe, positions, control)
            usages = list(store.usage_by_scenario().values())
            common = store.common_usage()
    if not usages and not any(common):
        raise RunError(
            f"recipe {recipe.name!r} makes no calls in the sampled scenarios, so there is no cost to estimate"
        )
    players = list(dict.fromkeys(binding.model for models in offline.casts for binding in models.values()))
    return _extrapolate(usages, common, total, len(positions), config, limits.stated_prices, players)


def _replace_models(config: RunConfig, library: PromptLibrary) -> RunConfig:
    """Return the same configuration with every role played by an offline model."""
    played = select_offline_models(library)

    def understudy(role: str, binding: ModelBinding) -> ModelBinding:
        model = played.get(role, DEFAULT_MODEL)
        return binding.model_copy(update={"model": model, "api_base": None, "takes_tools": False})

    models = {role: understudy(role, binding) for role, binding in config.models.items()}
    users = tuple(understudy(USER, binding) for binding in config.users)
    return config.model_copy(update={"models": models, "users": users, "panel": ()})


async def _play_sample(store: RunStore, recipe: Recipe, positions: Sequence[int], control: Control) -> None:
    failures: list[ScenarioFailed] = []

    def on_event(event: Event) -> None:
        if isinstance(event, ScenarioFailed):
            failures.append(event)

    graph = build_graph(recipe, store.config.options)
    with open_gateway(store, CallPolicy().with_settings(concurrency=MAX_SAMPLE_SIZE)) as gateway:
        cast = build_cast(store, recipe, store.config.models, gateway)
        engine = Engine(store, recipe, graph, cast, MAX_SAMPLE_SIZE, on_event)
        control.attach(engine, gateway)
        try:
            pending = store.queue.pending(recipe, frozenset(positions))
            # The sample may not contain the predecessor of a conversation.
            await engine.run(WorkList((replace(work, after=None) for work in pending), store), resuming=False)
        finally:
            control.detach()
    if engine.is_draining:
        raise RunError("the estimate was interrupted; nothing was sent")
    if failures:
        raise _not_playable_error(recipe, f"{failures[0].id} failed ({failures[0].error})")


def _not_playable_error(recipe: Recipe, reason: str) -> RunError:
    return RunError(
        f"recipe {recipe.name!r} cannot be estimated, as {DEFAULT_MODEL} cannot play all of its roles: {reason}",
        advice=Advice(
            "status", "play a few scenarios with the real models instead; the run's status shows their usage"
        ),
    )


def _extrapolate(
    usages: Sequence[Mapping[str, Usage]],
    common: tuple[Mapping[str, Usage], Mapping[str, Usage]],
    total: int,
    sampled: int,
    config: RunConfig,
    prices: Prices,
    understudies: Sequence[str],
) -> CostEstimate:
    """Extrapolate from the sample's usage to that of all scenarios.

    The number of common calls is a number of distinct values, estimated from a sample: values that were seen once are
    multiplied by the square root of the factor by which the plan is larger than the sample, and all others count once.
    No estimator that knows only the sample has a better error guarantee (Charikar, Chaudhuri, Motwani, Narasayya,
    "Towards estimation error guarantees for distinct values", PODS 2000, the estimator GEE).
    """
    factor = total / sampled
    seen_once, shared = common
    # A further judge reads as much as the first. Each of several user models plays an equal share of the conversations.
    judges = [(role, each.model, 1.0) for panel in config.panel for role, each in panel.items()]
    part = 1 / len(config.players)
    players = [(role, each.model, part if role == USER else 1.0) for role, each in config.models.items()]
    players += [*((USER, each.model, part) for each in config.users), *judges]
    by_role = [
        (
            role,
            model,
            _add_usages(
                [
                    _estimate_usage([each.get(role, Usage()) for each in usages], factor * share, model, prices),
                    _estimate_usage([seen_once.get(role, Usage())], factor**0.5 * share, model, prices),
                    _estimate_usage([shared.get(role, Usage())], share, model, prices),
                ]
            ),
        )
        for role, model, share in players
    ]
    scenario_totals = [
        _add_usages(
            [
                _estimate_usage([scenario[role]], total * share, model, prices)
                for role, model, share in players
                if role in scenario
            ]
        )
        for scenario in usages
    ]
    ordered = sorted(
        scenario_totals or [ExpectedUsage(0, 0, 0, 0.0)],  # all calls are common
        key=lambda expected: expected.input_tokens + expected.output_tokens,
    )
    return CostEstimate(
        total,
        config.units,
        sampled,
        by_role,
        _add_usages([expected for _, _, expected in by_role]),
        ordered[0],
        ordered[-1],
        understudies,
    )


def _estimate_usage(usages: Sequence[Usage], factor: float, model: str, prices: Prices) -> ExpectedUsage:
    calls, input_tokens, output_tokens = (
        factor * sum(getattr(usage, name) or 0 for usage in usages)
        for name in ("calls", "input_tokens", "output_tokens")
    )
    price = prices.find_price(model)
    cost = None if price is None else price.compute_cost(round(input_tokens), round(output_tokens))
    return ExpectedUsage(calls, input_tokens, output_tokens, cost)


def _add_usages(parts: Sequence[ExpectedUsage]) -> ExpectedUsage:
    costs = [part.cost for part in parts if part.calls]
    return ExpectedUsage(
        sum(part.calls for part in parts),
        sum(part.input_tokens for part in parts),
        sum(part.output_tokens for part in parts),
        None if None in costs else sum(cost for cost in costs if cost is not None),
    )
