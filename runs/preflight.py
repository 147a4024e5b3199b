"""Checks and estimates before anything is sent: requests that fit into context windows, and the cost of a run.

Understudies play a few scenarios, and the requests that real models would get are counted. Understudies say little, so
a request that does not fit here would not fit in the run either.
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
from dialoom.graphs import Recipe, Scenario, Stage, stream
from dialoom.graphs.capabilities import WithPrompts
from dialoom.prompts import PromptLibrary
from dialoom.roles import Cast, Completion, Gateway, ModelBinding
from dialoom.roles.cast import NoUnderstudiesError, stand_ins
from dialoom.roles.gateway import Attempt, CallPlace, CallRecord, Request
from dialoom.roles.gateway.gateway import check_model, check_parameters
from dialoom.roles.gateway.prices import Prices
from dialoom.roles.gateway.windows import ServedWindow, counted, served_window
from dialoom.roles.parameters import COUNTER

from .configuration.config import DEFAULT_MODEL, RunConfig
from .configuration.recipe_checks import graph_of
from .engine import Engine, WorkList
from .errors import RunError
from .gateway_setup import CallPolicy, RunLimits, cast_of, open_gateway, prompts_of
from .planning import planned, prepare
from .progress import Control, Event, ScenarioFailed
from .store import RunStore, Usage

EXAMINED, PLAYED = 64, 3
"""The number of scenarios at the beginning of the plan that are examined, and the number of the longest ones played."""

_TOLERANCE = 1.1
"""The tolerance for models whose tokenizers count differently; close cases are left to the server."""

_TIME_LIMIT = 10.0
_NO_LIMIT = 1_000_000


class DiscardingLedger:
    """A ledger that stores nothing, for calls that belong to no run."""

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:  # noqa: ARG002
        """Let the call be made."""
        return 0

    async def find(self, key: str, place: CallPlace) -> Completion | None:  # noqa: ARG002
        """Find nothing."""
        return None

    async def player_state(self, place: CallPlace, player: bytes, marks: Sequence[bytes]) -> None:
        """Find nothing."""

    async def is_open(self, key: str, place: CallPlace) -> bool:  # noqa: ARG002
        """Return false: no earlier process has begun a call."""
        return False

    async def failed(self, id_: int, attempt: Attempt) -> None:
        """Ignore the attempt: only the result counts."""

    async def record(self, id_: int, record: CallRecord) -> None:
        """Ignore the result: the caller gets it."""


class _RequestSizes(DiscardingLedger):
    """A ledger that only tracks the size of each role's largest request, in tokens."""

    def __init__(self) -> None:
        self.by_role: dict[str, int] = {}

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:  # noqa: ARG002
        self.by_role[request.role] = max(counted(request), self.by_role.get(request.role, 0))
        return 0


async def ensure_fits(
    recipe: Recipe,
    options: Mapping[str, object],
    seed: int,
    library: PromptLibrary,
    models: Mapping[str, ModelBinding],
    stated: Mapping[str, int],
) -> None:
    """Refuse a run whose requests exceed the context window that a model's server reports.

    Args:
        recipe: The recipe.
        options: Its options.
        seed: The run's seed.
        library: Its prompts.
        models: The models by role.
        stated: The context windows that the user has stated, by model: the requests of these models are checked one by
            one when they are made, and no server is asked.

    Raises:
        RunError: With both lengths, and advice.
    """
    windows = await asyncio.to_thread(_served_windows, models, stated)
    if not windows:
        return
    largest = await largest_requests(recipe, options, seed, library, models)
    for role, window in windows.items():
        if (reason := misfit(role, models[role], largest.get(role, 0), window)) is not None:
            raise RunError(f"models: {reason}", setting="models")


def misfit(role: str, binding: ModelBinding, request: int, window: ServedWindow) -> str | None:
    """Return the reason why a role's requests do not fit into its model's window; `None` if they fit.

    Args:
        role: The role.
        binding: Its model.
        request: The tokens of its largest request.
        window: The window that its server reports.
    """
    reply = (binding.max_reply or 0) if window.holds_reply else 0
    if request + reply <= window.tokens * _TOLERANCE:
        return None
    size = f"{request:,} tokens by {COUNTER}" + (f", and {reply:,} for the reply" if reply else "")
    return (
        f"{role} is asked with requests of {size}, and {binding.model} reads {window.tokens:,} by what its server "
        f"says: serve it with a longer context, or give {role} another model (context={{{binding.model!r}: "
        f"{window.tokens}}} plays what fits, and fails the rest)"
    )


async def largest_requests(
    recipe: Recipe,
    options: Mapping[str, object],
    seed: int,
    library: PromptLibrary,
    models: Mapping[str, ModelBinding],
) -> Mapping[str, int]:
    """Return the tokens of each role's largest request in the longest of the first scenarios.

    Understudies play them. Roles that are not reached are left out, because an understudy cannot play the recipe, or it
    takes too long.
    """
    ledger = _RequestSizes()
    played = stand_ins(library)
    players = {
        role: each.model_copy(update={"model": played.get(role, DEFAULT_MODEL), "api_base": None})
        for role, each in models.items()
    }

    def longest() -> list[Scenario]:
        chosen = recipe.options_type.model_validate(options)
        plan = recipe.scenarios(chosen, stream(seed, "", "plan"), lambda _note: None)
        return sorted(islice(plan, EXAMINED), key=lambda each: -len(each.model_dump_json()))[:PLAYED]

    with suppress(Exception):  # whatever it is, the run itself will report it: here it only ends the counting
        cast = Cast(prompts_of(library, players), players, Gateway(ledger), WithPrompts.of(recipe).reply_types)
        graph = graph_of(recipe, options).compile()
        async with asyncio.timeout(_TIME_LIMIT):
            for scenario in await asyncio.to_thread(longest):
                stage = Stage(scenario, cast, scenario.id, seed)
                await graph.ainvoke(recipe.initial(scenario), {"recursion_limit": _NO_LIMIT}, context=stage)
    return ledger.by_role


def _served_windows(models: Mapping[str, ModelBinding], stated: Mapping[str, int]) -> dict[str, ServedWindow]:
    """Return the windows that servers report, by role; each is asked once."""
    asked: dict[str, ServedWindow | None] = {}
    for each in models.values():
        if each.model not in stated and (place := f"{each.model} {each.api_base}") not in asked:
            asked[place] = served_window(each)
    found = {role: asked.get(f"{each.model} {each.api_base}") for role, each in models.items()}
    return {role: window for role, window in found.items() if window is not None}


SAMPLE = 8
"""The maximum number of scenarios in the sample."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected usage of scenarios. `cost` in US dollars is `None` if a price is unknown."""

    calls: float
    input_tokens: float
    output_tokens: float
    cost: float | None


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The expected usage of a run.

    Attributes:
        scenarios: The number of planned scenarios.
        sampled: The number of these that were played for the estimate.
        by_role: The role, the model and their usage, for all scenarios.
        total: The usage of all roles.
        least: The run's usage if every scenario used as few tokens as the cheapest one of the sample, `most` as the
            most expensive one; without common calls, which belong to no scenario.
    """

    scenarios: int
    sampled: int
    by_role: Sequence[tuple[str, str, Expected]]
    total: Expected
    least: Expected
    most: Expected


async def estimate_cost(
    recipe: Recipe,
    config: RunConfig,
    overrides: Path | None,
    limits: RunLimits,
    note: Callable[[str], None],
    control: Control,
) -> CostEstimate:
    """Plan the run in a temporary file, play a sample of it with understudies, and extrapolate.

    Args:
        recipe: The recipe.
        config: The configuration of the run.
        overrides: The user's prompts.
        limits: The limits, for the prices.
        note: Called with each note that planning leaves.
        control: Stops the estimate.

    Raises:
        RunError: If understudies cannot play the recipe; and any error that starting the run would raise.
    """
    for models in config.casts:
        for model in dict.fromkeys(binding.model for binding in models.values()):
            await asyncio.to_thread(check_model, model)
        await asyncio.to_thread(check_parameters, models)
    shipped = await asyncio.to_thread(WithPrompts.of(recipe).library)
    played = _with_understudies(config, shipped)
    try:
        library = await asyncio.to_thread(prepare, recipe, played, overrides)
    except NoUnderstudiesError as error:
        raise _not_playable(recipe, error.reason) from error
    with tempfile.TemporaryDirectory(prefix="dialoom-") as folder:
        path = Path(folder) / "estimate.db"
        plan = planned(path, recipe, played, library, note, is_stopped=lambda: control.is_draining, is_for_good=False)
        async with plan as store:
            total = store.status().total
            draw = stream(config.seed, "", "estimate")
            positions = sorted(draw.sample(range(total), min(SAMPLE, total)))
            await _play_sample(store, recipe, positions, control)
            taken = list(store.usage_by_scenario().values())
            common = store.common_usage()
    if not taken and not any(common):
        raise RunError(f"recipe {recipe.name!r} makes no call in the scenarios that were tried: nothing to estimate")
    return _extrapolated(taken, common, total, len(positions), config, limits.stated_prices)


def _with_understudies(config: RunConfig, library: PromptLibrary) -> RunConfig:
    """Return the same configuration with every role played by an offline model."""
    played = stand_ins(library)
    models = {
        role: binding.model_copy(
            update={"model": played.get(role, DEFAULT_MODEL), "api_base": None, "takes_tools": False}
        )
        for role, binding in config.models.items()
    }
    return config.model_copy(update={"models": models, "panel": ()})


async def _play_sample(store: RunStore, recipe: Recipe, positions: Sequence[int], control: Control) -> None:
    failures: list[ScenarioFailed] = []

    def on_event(event: Event) -> None:
        if isinstance(event, ScenarioFailed):
            failures.append(event)

    config = store.config
    graph = graph_of(recipe, config.options)
    with open_gateway(store, CallPolicy().changed(concurrency=SAMPLE)) as gateway:
        cast = cast_of(store, recipe, config.models, gateway)
        engine = Engine(store, recipe, graph, cast, config.seed, SAMPLE, on_event)
        control.attach(engine, gateway)
        try:
            pending = store.queue.pending(recipe, frozenset(positions))
            drawn = (replace(work, after=None) for work in pending)  # the sample need not hold its predecessor
            await engine.run(WorkList(drawn, store), resuming=False)
        finally:
            control.detach()
    if engine.is_draining:
        raise RunError("the estimate was interrupted; nothing was sent")
    if failures:
        raise _not_playable(recipe, f"{failures[0].id} failed ({failures[0].error})")


def _not_playable(recipe: Recipe, why: str) -> RunError:
    return RunError(
        f"recipe {recipe.name!r} cannot be estimated, as {DEFAULT_MODEL} cannot play all of its roles: {why}",
        advice=Advice(
            "status", "play a few scenarios with the real models instead; a run's status says what they took"
        ),
    )


def _extrapolated(
    taken: Sequence[Mapping[str, Usage]],
    common: tuple[Mapping[str, Usage], Mapping[str, Usage]],
    total: int,
    sampled: int,
    config: RunConfig,
    prices: Prices,
) -> CostEstimate:
    """Extrapolate from the sample's usage to that of all scenarios.

    The number of common calls is the number of distinct values, estimated from a sample: those that were seen once are
    multiplied by the square root of the factor, all others count once. No estimator that knows only the sample has a
    better error guarantee (Charikar, Chaudhuri, Motwani, Narasayya, "Towards estimation error guarantees for distinct
    values", PODS 2000, the estimator GEE).
    """
    factor = total / sampled
    seen_once, shared = common
    judges = [(role, each.model) for panel in config.panel for role, each in panel.items()]
    players = [*config.model_names.items(), *judges]  # a further judge reads as much as the first
    by_role = [
        (
            role,
            model,
            _sum(
                [
                    _expected_usage([each.get(role, Usage()) for each in taken], factor, model, prices),
                    _expected_usage([seen_once.get(role, Usage())], factor**0.5, model, prices),
                    _expected_usage([shared.get(role, Usage())], 1, model, prices),
                ]
            ),
        )
        for role, model in players
    ]
    each_total = [
        _sum([_expected_usage([scenario[role]], total, model, prices) for role, model in players if role in scenario])
        for scenario in taken
    ]
    each_total = each_total or [Expected(0, 0, 0, 0.0)]  # all calls are common
    ordered = sorted(each_total, key=lambda expected: expected.input_tokens + expected.output_tokens)
    return CostEstimate(
        total, sampled, by_role, _sum([expected for _, _, expected in by_role]), ordered[0], ordered[-1]
    )


def _expected_usage(usages: Sequence[Usage], factor: float, model: str, prices: Prices) -> Expected:
    calls, input_tokens, output_tokens = (
        factor * sum(getattr(usage, name) or 0 for usage in usages)
        for name in ("calls", "input_tokens", "output_tokens")
    )
    price = prices.price(model)
    cost = None if price is None else price.of(round(input_tokens), round(output_tokens))
    return Expected(calls, input_tokens, output_tokens, cost)


def _sum(parts: Sequence[Expected]) -> Expected:
    costs = [part.cost for part in parts if part.calls]
    return Expected(
        sum(part.calls for part in parts),
        sum(part.input_tokens for part in parts),
        sum(part.output_tokens for part in parts),
        None if None in costs else sum(cost for cost in costs if cost is not None),
    )
