"""Building the gateway of a run from its configuration, limits and budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

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
from dialoom.settings import OwnPlayer, ProcessSettings, checked

from .limits import FailOnError, RunLimits
from .store import RunFile, RunStore
from .trust import players_named


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """The policy for one process's calls; it does not affect their content.

    Attributes:
        limits: Budget, prices and rate limits: those that the run's file keeps, updated with the given ones.
        settings: The settings of this process, checked.
        objects: Functions and graphs that play roles, by the names of their models.
    """

    limits: RunLimits = field(default_factory=RunLimits)
    settings: ProcessSettings = field(default_factory=lambda: checked(ProcessSettings, ProcessSettings()))
    objects: Mapping[str, OwnPlayer] = field(default_factory=dict)

    def changed(self, **settings: Unpack[ProcessSettings]) -> CallPolicy:
        """Return the policy with some settings replaced."""
        return replace(self, settings={**self.settings, **settings})

    @property
    def cache(self) -> Path | None:
        """The file in which replies are shared with other runs."""
        cache = self.settings["cache"]
        return None if cache is None else Path(cache)

    @property
    def fail_on_error(self) -> FailOnError:
        """The bound on failures that stops the run."""
        return FailOnError.of(self.settings["fail_on_error"])

    @property
    def is_alone(self) -> bool:
        """Return whether this process plays by itself."""
        return self.settings["workers"] is None and self.settings["ray"] is None


def ensure_keys(models: Mapping[str, ModelBinding], policy: CallPolicy) -> None:
    """Check that the keys that calls need are set; recorded and cached replies need none.

    Raises:
        BindingError: Naming the missing keys.
    """
    if not policy.settings["replay_only"] and policy.cache is None:
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
    """Open the gateway to the models of a run, with its ledger and limits.

    Args:
        store: The run.
        policy: The policy for calls.
        patience: Seconds to wait for a provider that is unreachable; in interactive use there should be no wait.
        sharing: The state shared with gateways of other processes, if there are any.
        replies: The access to other runs' replies, if another process has that file open.
        shapes: The reply formats that models have refused; by default they are read from the file.
    """
    own = {name: policy.settings[name] for name in ("concurrency", "replay_only")}
    limits = policy.limits.model_copy(update={**own, "patience": patience})
    spent = store.spend(limits.stated_prices) if limits.budget.is_bounded and sharing is None else None
    with ExitStack() as opened:
        cache = replies if policy.cache is None else opened.enter_context(ResponseCache(policy.cache))
        tracing = opened.enter_context(open_tracing()) if policy.settings["otel"] else None
        shapes = shapes or Shapes(store.shapes)
        try:
            yield Gateway(store.ledger, limits, spent, cache, tracing, policy.objects, shapes, sharing)
        finally:
            if shapes.found != store.shapes:
                store.keep_shapes(shapes.found)


def cast_of(store: RunFile, recipe: Recipe, models: Mapping[str, ModelBinding], gateway: Caller) -> Cast:
    """Return the cast of a run: its prompts' roles, played by these models. Only here names become players.

    Raises:
        TrustError: If a model is code or at an address that only the run's author has named.
    """
    store.permit(players_named(models))
    return Cast(prompts_of(store.prompts, models), models, gateway, WithPrompts.of(recipe).reply_types)


def prompts_of(library: PromptLibrary, models: Mapping[str, ModelBinding]) -> PromptLibrary:
    """Return the prompts whose roles have models; a run stores the others too, so that it can be judged later."""
    return PromptLibrary(prompt for prompt in library.values() if prompt.front.role in models)
