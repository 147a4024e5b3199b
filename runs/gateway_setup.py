"""Building the gateway of a run from its configuration, limits and budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dialoom.graphs import Recipe
from dialoom.graphs.capabilities import WithPrompts
from dialoom.prompts import PromptLibrary
from dialoom.roles import Cast, Gateway, ModelBinding
from dialoom.roles.gateway import Caller
from dialoom.roles.gateway.cache import Replies, ResponseCache
from dialoom.roles.gateway.provider_keys import check_keys
from dialoom.roles.gateway.sharing import Sharing
from dialoom.roles.gateway.structure import Shapes
from dialoom.roles.gateway.tracing import open_tracing
from dialoom.roles.players import OwnPlayer

from .config import DEFAULT_CONCURRENCY, DEFAULT_PATIENCE
from .limits import FailOnError, RunLimits
from .store import RunFile, RunStore
from .trust import players_named


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """How calls are made by one process; nothing of it changes what they say.

    Attributes:
        limits: Budget, prices and rates.
        concurrency: How many scenarios are under way at once.
        replay_only: Make no call at all: every reply must be recorded.
        fail_on_error: When failures stop the run.
        patience: Seconds that the work waits for a provider that is away; 0 to let scenarios fail.
        cache: The file in which replies are shared with other runs.
        otel: Whether a span of each call is sent to OpenTelemetry.
        objects: Functions and graphs that play, by the names of their models.
        workers: How many processes play; `None` for this one alone.
        ray: The address of the Ray cluster that they are on; `None` for this machine.
    """

    limits: RunLimits = field(default_factory=RunLimits)
    concurrency: int = DEFAULT_CONCURRENCY
    replay_only: bool = False
    fail_on_error: FailOnError = field(default_factory=FailOnError)
    patience: float = DEFAULT_PATIENCE
    cache: Path | None = None
    otel: bool = False
    objects: Mapping[str, OwnPlayer] = field(default_factory=dict)
    workers: int | None = None
    ray: str | None = None

    @property
    def is_alone(self) -> bool:
        """Whether this process plays by itself."""
        return self.workers is None and self.ray is None


def ensure_keys(models: Mapping[str, ModelBinding], policy: CallPolicy) -> None:
    """Make sure that there are the keys that calls will need; what is recorded or shared already needs none.

    Raises:
        BindingError: Naming what is missing.
    """
    if not policy.replay_only and policy.cache is None:
        check_keys(models)


@contextmanager
def open_gateway(
    store: RunStore,
    policy: CallPolicy,
    patience: float = 0.0,
    sharing: Sharing | None = None,
    replies: Replies | None = None,
    shapes: Shapes | None = None,
) -> Iterator[Gateway]:
    """The way to the models of a run: its ledger, and what bounds it.

    Args:
        store: The run.
        policy: How calls are made.
        patience: Seconds to wait for a provider that is away; somebody who looks on does not want to.
        sharing: What it has in common with gateways of other processes, if there are others.
        replies: Where replies of other runs are found, if somebody else has that file open.
        shapes: What the run knows of the shapes that models can be held to; by default it is read from the file.
    """
    limits = policy.limits.for_gateway(policy.concurrency, policy.replay_only, patience)
    spent = store.taken(limits.prices) if limits.budget.is_bounded and sharing is None else None
    with ExitStack() as opened:
        cache = replies if policy.cache is None else opened.enter_context(ResponseCache(policy.cache))
        tracing = opened.enter_context(open_tracing()) if policy.otel else None
        shapes = shapes or Shapes(store.shapes)
        try:
            yield Gateway(store.ledger, limits, spent, cache, tracing, policy.objects, shapes, sharing)
        finally:
            if shapes.found != store.shapes:
                store.keep_shapes(shapes.found)


def cast_of(store: RunFile, recipe: Recipe, models: Mapping[str, ModelBinding], gateway: Caller) -> Cast:
    """The roles of a run, with its prompts, played by these models: the one place where names become players.

    Raises:
        TrustError: If one is code or at an address that only the run's author has named.
    """
    store.permit(players_named(models))
    return Cast(prompts_of(store.prompts, models), models, gateway, WithPrompts.of(recipe).reply_types)


def prompts_of(library: PromptLibrary, models: Mapping[str, ModelBinding]) -> PromptLibrary:
    """The prompts whose roles have models; a run keeps the others too, so that it can be judged later."""
    return PromptLibrary(prompt for prompt in library.values() if prompt.front.role in models)
