"""The limits of a run, and its gateway to the models, built from the configuration, the limits and the budget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack, cast

from dialoom.errors import Advice
from dialoom.graphs import Recipe, WithPrompts
from dialoom.prompts import PromptLibrary
from dialoom.roles import Cast, Gateway, ModelBinding
from dialoom.roles.binding import OBJECT_PREFIX
from dialoom.roles.gateway import Caller
from dialoom.roles.gateway.budget import Coordinator, Spend
from dialoom.roles.gateway.cache import ReplyStore, ResponseCache
from dialoom.roles.gateway.calls import TOOL_ROLE
from dialoom.roles.gateway.gateway import CallLimits, GatewaySettings, ensure_unchanged
from dialoom.roles.gateway.model_facts import check_keys
from dialoom.roles.gateway.tracing import open_tracing
from dialoom.roles.gateway.wire import RejectedForms
from dialoom.roles.players import has_sqlite_checkpointer, is_restorable
from dialoom.roles.restoring import MCP_TOOLS_WITH_WORKERS, SQLITE_CHECKPOINTER_ON_CLUSTER, UNRESTORABLE_WITH_WORKERS
from dialoom.settings import (
    Budget,
    LimitSettings,
    PlayerObject,
    ProcessSettings,
    as_mapping,
    build_settings_model,
    validate_settings,
)

from .configuration.trust import cast_references
from .errors import RunError
from .store import RunFile, RunStore
from .store.status import FailedAttempts

_FIELD_NAMES = {"timeout": "timeouts"}
"""The fields of `RunLimits` by setting of `LimitSettings`, where their names differ."""

_PROCESS_FIELDS = GatewaySettings.model_fields.keys() - CallLimits.model_fields.keys()
"""The fields of `GatewaySettings` that are not stored; `ProcessSettings` has a setting for each that users can set."""


class RunLimits(CallLimits):
    """The limits of a run, which its file stores so that they apply when the run is resumed."""

    def with_settings(self, settings: LimitSettings, roles: Collection[str] = ()) -> RunLimits:
        """Return a copy of these limits with some of them replaced.

        Args:
            settings: The new limits, already checked.
            roles: The roles that may have a time limit, besides the tools of MCP servers (`tool`).

        Raises:
            RunError: If a time limit names an unknown role.
        """
        for role in as_mapping(settings["timeout"]):
            if role and role not in {*roles, TOOL_ROLE}:
                raise RunError(f"timeout: unknown role {role!r}; the roles are {', '.join(roles)}", setting="timeout")
        values = dict(self) | {"budget": self.budget.with_changes(cast("Budget | None", settings["budget"]))}
        for name in build_settings_model(LimitSettings).model_fields.keys() - {
            "budget"
        }:  # one without a field raises a KeyError
            field, new = _FIELD_NAMES.get(name, name), as_mapping(cast("Mapping[str, Any]", settings)[name])
            values[field] = {key: value for key, value in {**values[field], **new}.items() if value}  # 0: no limit
        return RunLimits(**values)

    @classmethod
    def of(cls, run: RunFile) -> RunLimits:
        """Return the limits that a run's file stores."""
        return cls.model_validate_json(run.limits)

    def check_prices(self, models: Iterable[str]) -> None:
        """Check that a limit on the cost, if there is one, can be enforced.

        Raises:
            RunError: If a model's price is unknown.
        """
        if self.budget.max_cost is None:
            return
        unknown = [model for model in dict.fromkeys(models) if self.stated_prices.find_price(model) is None]
        if unknown:
            prices = ", ".join(f"{model!r}: Price(input, output)" for model in unknown)
            raise RunError(
                f"max_cost cannot be enforced, because the price of {' and of '.join(unknown)} is unknown",
                setting="max_cost",
                advice=Advice(
                    "price",
                    f"state it in US dollars per million tokens: prices={{{prices}}}",
                    {"models": " ".join(unknown)},
                ),
            )


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """The status of a run relative to its limits.

    Attributes:
        limits: The latest limits.
        spend: The calls, tokens and cost that count against the budget; `None` without a budget.
        failed_attempts: The number of failed attempts, by model.
        rejudgings: The number of scenarios whose judgements remain to be repeated, by set of judgements.
    """

    limits: RunLimits
    spend: Spend | None
    failed_attempts: dict[str, FailedAttempts]
    rejudgings: dict[str, int]

    @classmethod
    def of(cls, run: RunFile) -> BudgetStatus:
        """Read the status from a run's file, which does not include calls in flight."""
        limits = RunLimits.of(run)
        spend = run.spend(limits.stated_prices) if limits.budget.is_bounded else None
        return cls(limits, spend, run.failed_attempts(), run.rejudgings())

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON-compatible data."""
        budget = self.limits.budget.model_dump(exclude_none=True)
        return {
            "limits": {**self.limits.model_dump(mode="json", exclude={"budget"}), **budget},
            "counted": None if self.spend is None else asdict(self.spend),
            "attempts": {
                model: {"failed": each.attempts, "throttled": each.throttled}
                for model, each in self.failed_attempts.items()
            },
            "rejudging": self.rejudgings,
        }


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """The policy for the calls of one process; it does not affect what is sent.

    Attributes:
        limits: Budget, prices and rate limits: those stored in the run's file, updated with the given ones.
        settings: The settings of this process, checked.
        objects: Functions and graphs that play roles, by the model names that refer to them.
    """

    limits: RunLimits = field(default_factory=RunLimits)
    settings: ProcessSettings = field(default_factory=lambda: validate_settings(ProcessSettings, ProcessSettings()))
    objects: Mapping[str, PlayerObject] = field(default_factory=dict)

    def with_settings(self, **settings: Unpack[ProcessSettings]) -> CallPolicy:
        """Return a copy of the policy with some settings replaced."""
        return replace(self, settings={**self.settings, **settings})

    @property
    def cache(self) -> Path | None:
        """The file in which replies are shared with other runs."""
        cache = self.settings["cache"]
        return None if cache is None else Path(cache)

    @property
    def is_alone(self) -> bool:
        """Return whether this process plays the run without worker processes."""
        return self.settings["workers"] is None and self.settings["ray"] is None


def check_model_access(casts: Iterable[Mapping[str, ModelBinding]], policy: CallPolicy) -> None:
    """Check that the API keys for the models are set and, with `strict_params`, that the models accept all parameters.

    Neither is checked if replies are only read from a record, and no key is needed if they are only read from the
    cache. All keys are checked before LiteLLM is imported for the parameters, which takes seconds.

    Args:
        casts: The models by role: those of the run, and those of further judges or users.
        policy: The policy for calls.

    Raises:
        BindingError: If keys are missing or parameters are not accepted; the message names them.
    """
    if policy.settings["replay_only"]:
        return
    casts = [*casts]
    if policy.cache is None:
        check_keys(*casts)
    if policy.settings["strict_params"]:
        for models in casts:
            ensure_unchanged(models)


def check_workers(servers: Collection[str], casts: Iterable[Mapping[str, ModelBinding]], policy: CallPolicy) -> None:
    """Check that several processes can play the run. It must have no MCP servers, and all players must be restorable.

    Args:
        servers: The MCP servers.
        casts: The models by role: those of the run, and those of further judges.
        policy: The policy for calls.

    Raises:
        RunError: If several processes cannot play the run; the message names the setting.
    """
    if policy.is_alone:
        return
    setting = "workers" if policy.settings["ray"] is None else "ray"
    if servers:
        raise RunError(MCP_TOOLS_WITH_WORKERS.format(setting=setting), setting=setting)
    for role, binding in (item for models in casts for item in models.items()):
        if not binding.stateful:
            continue
        values = {"setting": setting, "role": role, "model": binding.model.removeprefix(OBJECT_PREFIX)}
        if not is_restorable(binding.model, policy.objects):
            raise RunError(UNRESTORABLE_WITH_WORKERS.format(**values), setting=setting)
        if setting == "ray" and has_sqlite_checkpointer(binding.model, policy.objects):
            raise RunError(SQLITE_CHECKPOINTER_ON_CLUSTER.format(**values), setting=setting)


@contextmanager
def open_gateway(
    store: RunStore,
    policy: CallPolicy,
    patience: float = 0.0,
    sharing: Coordinator | None = None,
    replies: ReplyStore | None = None,
    shapes: RejectedForms | None = None,
) -> Iterator[Gateway]:
    """Open the gateway to the models of a run, with its ledger and limits.

    Args:
        store: The run.
        policy: The policy for calls.
        patience: Seconds to wait for an unavailable provider; 0 is best for interactive use.
        sharing: The state shared with the gateways of other processes; `None` if there are no others.
        replies: The access to the cache of replies, if another process has its file open.
        shapes: The reply formats that models have refused; by default they are read from the run's file.
    """
    limits = policy.limits
    process_settings = {name: value for name, value in policy.settings.items() if name in _PROCESS_FIELDS} | {
        "patience": patience
    }
    settings = GatewaySettings(**dict(limits), **process_settings)
    spent = store.spend(limits.stated_prices) if limits.budget.is_bounded and sharing is None else None
    with ExitStack() as opened:
        cache = replies if policy.cache is None else opened.enter_context(ResponseCache(policy.cache))
        tracing = opened.enter_context(open_tracing()) if policy.settings["otel"] else None
        shapes = shapes or RejectedForms(store.shapes)
        try:
            yield Gateway(store.ledger, settings, spent, cache, tracing, policy.objects, shapes, sharing)
        finally:
            if shapes.by_model != store.shapes:
                store.keep_shapes(shapes.by_model)


def build_cast(store: RunFile, recipe: Recipe, models: Mapping[str, ModelBinding], gateway: Caller) -> Cast:
    """Return the cast of a run: the roles of its prompts, played by these models.

    Raises:
        TrustError: If a model is code or an address that is specified only by the author of the run's file.
    """
    store.ensure_trusted(cast_references(models))
    return Cast(select_prompts(store.prompts, models), models, gateway, WithPrompts.of(recipe).reply_types)


def select_prompts(library: PromptLibrary, models: Mapping[str, ModelBinding]) -> PromptLibrary:
    """Return only the prompts whose roles have models. A run stores all prompts, so that it can be judged later."""
    return PromptLibrary(prompt for prompt in library.values() if prompt.front.role in models)
