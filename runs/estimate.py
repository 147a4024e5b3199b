"""What a run will take, before anything is sent: some of its scenarios are played by the offline model and counted."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialoom.graphs import stream
from dialoom.roles import Gateway, ModelBinding
from dialoom.roles.gateway.gateway import check_model
from dialoom.roles.gateway.prices import Prices

from . import session
from .config import DEFAULT_MODEL, RunConfig
from .errors import Fault, RunError
from .limits import RunLimits
from .store import RunStore, Usage, Work

SAMPLE = 8
"""How many scenarios are played; all of them if there are fewer."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What scenarios take. `cost` in US dollars is `None` if a price is unknown."""

    calls: float
    input_tokens: float
    output_tokens: float
    cost: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run is expected to take.

    Attributes:
        scenarios: How many are planned.
        sampled: How many of them were played to find out.
        by_role: Role, model and what they take, for all scenarios.
        total: Of all roles.
        least: What the run would take if every scenario were like the one that took the fewest tokens; `most` the most.
    """

    scenarios: int
    sampled: int
    by_role: Sequence[tuple[str, str, Expected]]
    total: Expected
    least: Expected
    most: Expected


def estimate(config: RunConfig, overrides: Path | None, limits: RunLimits, tell: Callable[[str], None]) -> Estimate:
    """Plan the run in a file that is removed again, play a sample of it with the offline model, and scale that up.

    Args:
        config: The run as it would be.
        overrides: The user's prompts.
        limits: For the prices.
        tell: Takes what planning has to say.

    Raises:
        RunError: If the offline model cannot play the recipe; and whatever starting the run would raise.
    """
    for model in dict.fromkeys(config.model_names.values()):
        check_model(model)
    with tempfile.TemporaryDirectory(prefix="dialoom-") as folder:
        store = session.start(Path(folder) / "estimate.db", _offline(config), overrides, tell)
        try:
            total = store.status().total
            draw = stream(config.seed, "", "estimate")
            positions = sorted(draw.sample(range(total), min(SAMPLE, total)))
            _play(store, positions, config.recipe)
            taken = list(store.usage_by_scenario().values())
        finally:
            store.close()
    if not taken:
        raise RunError(f"recipe {config.recipe!r} makes no call in the scenarios that were tried: nothing to estimate")
    return _scaled(taken, total, len(positions), config, limits.stated_prices)


def _offline(config: RunConfig) -> RunConfig:
    """The same run, with every role played by the offline model."""
    models = {
        role: ModelBinding(model=DEFAULT_MODEL, temperature=binding.temperature)
        for role, binding in config.models.items()
    }
    return config.model_copy(update={"models": models})


def _play(store: RunStore, positions: Sequence[int], recipe: str) -> None:
    watch = _Failures()

    async def play() -> bool:
        return await session.play(store, SAMPLE, watch, resuming=False, only=frozenset(positions))

    if not asyncio.run(play()):
        raise RunError("the estimate was interrupted; nothing was sent")
    if watch.first is not None:
        raise RunError(
            f"recipe {recipe!r} cannot be estimated, as {DEFAULT_MODEL} cannot play all of its roles: {watch.first}. "
            "Play a few scenarios with the real models instead; 'dialoom status' says what they took"
        )


def _scaled(
    taken: Sequence[Mapping[str, Usage]], total: int, sampled: int, config: RunConfig, prices: Prices
) -> Estimate:
    """From what the scenarios of the sample took to what all take."""
    factor = total / sampled
    by_role = [
        (role, model, _expected([each.get(role, Usage()) for each in taken], factor, model, prices))
        for role, model in config.model_names.items()
    ]
    each_total = [
        _sum([_expected([usage], total, config.model_names[role], prices) for role, usage in scenario.items()])
        for scenario in taken
    ]
    ordered = sorted(each_total, key=lambda expected: expected.input_tokens + expected.output_tokens)
    return Estimate(total, sampled, by_role, _sum([expected for _, _, expected in by_role]), ordered[0], ordered[-1])


def _expected(usages: Sequence[Usage], factor: float, model: str, prices: Prices) -> Expected:
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


class _Failures:
    """Watches for the first scenario that fails."""

    def __init__(self) -> None:
        self.first: str | None = None

    def finished(self, work: Work) -> None:
        """As it should be."""

    def failed(self, work: Work, fault: Fault, error: str) -> None:  # noqa: ARG002
        """The sample says nothing then."""
        self.first = self.first or f"{work.scenario.id} failed ({error})"

    def told(self, work: Work, text: str) -> None:
        """Not of interest."""

    def stopping(self, fault: Fault | None, reason: str) -> None:
        """Nothing bounds the sample."""

    def calling(self, gateway: Gateway) -> None:
        """Not of interest."""
