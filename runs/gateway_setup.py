"""Limits of a run, and its gateway to the models: built from the configuration, the limits and the budget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, Unpack, cast

from dialoom.errors import Advice
from dialoom.graphs import Recipe
from dialoom.graphs.capabilities import WithPrompts
from dialoom.prompts import PromptLibrary
from dialoom.roles import Cast, Gateway, ModelBinding
from dialoom.roles.gateway import Caller
from dialoom.roles.gateway.budget import Spend
from dialoom.roles.gateway.cache import Replies, ResponseCache
from dialoom.roles.gateway.gateway import Limits
from dialoom.roles.gateway.provider_keys import check_keys
from dialoom.roles.gateway.sharing import Sharing
from dialoom.roles.gateway.structure import Shapes
from dialoom.roles.gateway.tracing import open_tracing
from dialoom.settings import Budget, LimitSettings, OwnPlayer, ProcessSettings, by_name, checked

from .configuration.trust import cast_references
from .errors import RunError
from .store import RunFile, RunStore
from .store.status import FailedAttempts

_FEW = 20
"""The number of finished scenarios below which the share of failures is ignored."""

Figure = TypeVar("Figure", int, float)


class RunLimits(Limits):
    """The limits that a run's file stores for when it is resumed."""

    def changed(self, given: LimitSettings, roles: Collection[str] = ()) -> RunLimits:
        """Return these limits updated with the given ones; what is not given is kept.

        Args:
            given: The limits, checked.
            roles: The roles that may have a time limit.

        Raises:
            RunError: If a time limit names an unknown role.
        """
        for role in by_name(given["timeout"]):
            if role and role not in roles:
                raise RunError(f"timeout: unknown role {role!r}; the roles are {', '.join(roles)}", setting="timeout")
        return RunLimits(
            budget=self.budget.changed(cast("Budget | None", given["budget"])),
            prices={**self.prices, **by_name(given["prices"])},
            rpm=_updated(self.rpm, given["rpm"]),
            tpm=_updated(self.tpm, given["tpm"]),
            context=_updated(self.context, given["context"]),
            timeouts=_updated(self.timeouts, given["timeout"]),
        )

    @classmethod
    def of(cls, run: RunFile) -> RunLimits:
        """Return the limits that a run's file stores."""
        return cls.model_validate_json(run.limits)

    def check_prices(self, models: Iterable[str]) -> None:
        """Refuse a bound on the cost that cannot be enforced.

        Raises:
            RunError: If a model's price is unknown.
        """
        if self.budget.max_cost is None:
            return
        for model in dict.fromkeys(models):
            if self.stated_prices.price(model) is None:
                raise RunError(
                    f"max_cost cannot be kept to, as the price of {model} is unknown",
                    setting="max_cost",
                    advice=Advice(
                        "price",
                        f"state it, in US dollars for a million tokens: prices={{{model!r}: Price(input, output)}}",
                        {"model": model},
                    ),
                )


@dataclass(frozen=True, slots=True)
class FailOnError:
    """The bound on failures that stops a run: a number of failed scenarios, or a share of those finished.

    Attributes:
        count: The number of failed scenarios.
        percent: The percentage of failed scenarios, once 20 are finished.
    """

    count: int | None = None
    percent: float | None = None

    @classmethod
    def of(cls, value: int | str | None) -> FailOnError:
        """Return the bound of a checked setting: a number of scenarios, or a percentage such as `5%`."""
        if value is None:
            return cls()
        text = str(value)
        return cls(percent=float(text[:-1])) if text.endswith("%") else cls(count=int(text))

    def exceeded(self, failed: int, finished: int) -> str | None:
        """Return the reason to stop the run; `None` while the bound is not reached.

        Args:
            failed: The number of failed scenarios.
            finished: The number of finished scenarios, failed or done.
        """
        if self.count is not None and failed >= self.count:
            return f"{failed:,} scenarios failed (fail_on_error {self.count})"
        if self.percent is not None and finished >= _FEW and failed * 100 > self.percent * finished:
            return f"{failed:,} of {finished:,} scenarios failed (fail_on_error {self.percent:g}%)"
        return None


def _updated(kept: Mapping[str, Figure], given: Figure | Mapping[str, Figure | None] | None) -> dict[str, Figure]:
    """Return figures by name, updated with the given ones; 0 and `None` remove a figure."""
    figures: dict[str, Figure | None] = {**kept, **by_name(given)}
    return {name: figure for name, figure in figures.items() if figure}


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """A run's status against its bounds.

    Attributes:
        limits: The latest limits.
        spend: The spend that counts against the budget; `None` without a budget.
        failed_attempts: The failed attempts by model.
        rejudgings: The number of scenarios whose judgements in a set are yet to be repeated, by set.
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


def check_servers(servers: Collection[str], policy: CallPolicy) -> None:
    """Refuse MCP servers among several processes: a call that was begun would be repeated where another one died.

    Raises:
        RunError: Naming the setting.
    """
    if servers and not policy.is_alone:
        setting = "workers" if policy.settings["workers"] is not None else "ray"
        raise RunError(
            f"{setting}: tools of MCP servers are called from one process only, so that no call is made twice; leave "
            f"out {setting}",
            setting=setting,
        )


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
    store.permit(cast_references(models))
    return Cast(prompts_of(store.prompts, models), models, gateway, WithPrompts.of(recipe).reply_types)


def prompts_of(library: PromptLibrary, models: Mapping[str, ModelBinding]) -> PromptLibrary:
    """Return the prompts whose roles have models; a run stores the others too, so that it can be judged later."""
    return PromptLibrary(prompt for prompt in library.values() if prompt.front.role in models)
