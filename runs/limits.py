"""A run's limits, and its progress against them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from dialoom.errors import Advice, first_problem
from dialoom.roles.gateway.budget import Budget, Spend
from dialoom.roles.gateway.gateway import Limits
from dialoom.roles.gateway.prices import Price, Prices

from .errors import RunError
from .store import RunFile
from .store.status import FailedAttempts

_FEW = 20
"""The number of finished scenarios below which the share of failures is ignored."""

_FASTEST = 10**12
"""Per minute; a higher rate is a typing error."""

_WIDEST = 10**9
"""Tokens; a larger window is a typing error."""

_LONGEST = 86_400.0
"""Seconds; an attempt of more than a day is a typing error."""

BudgetLike: TypeAlias = "Budget | Mapping[str, Any] | None"
"""A budget, or its bounds by name."""

Timeouts: TypeAlias = "float | Mapping[str, float | None] | None"
"""The time limit of an attempt in seconds, for every role or by role; 0 or `None` removes a role's limit."""

Rates: TypeAlias = "int | Mapping[str, int | None] | None"
"""A rate limit for every model, or by model; `None` removes a model's limit."""

Context: TypeAlias = "Mapping[str, int | None] | None"
"""The context window in tokens, request and reply together, by model; `None` removes a model's."""


class RunLimits(BaseModel):
    """Budget, prices, rate limits, time limits and context windows of a run, stored in its file for when it is resumed.

    Attributes:
        budget: The budget of the whole run.
        prices: The prices of models that LiteLLM does not know.
        rpm: The maximum number of requests per minute by model; under the empty name, for every model.
        tpm: The maximum number of tokens per minute, likewise.
        timeouts: The time limit of one attempt at a call in seconds, by role; under the empty name, for every role.
        context: The context window in tokens by model; a longer request is not sent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    budget: Budget = Budget()
    prices: Mapping[str, Price] = {}
    rpm: Mapping[str, int] = {}
    tpm: Mapping[str, int] = {}
    timeouts: Mapping[str, float] = {}
    context: Mapping[str, int] = {}

    def changed(
        self,
        *,
        budget: BudgetLike = None,
        prices: Mapping[str, Price] | None = None,
        rpm: Rates = None,
        tpm: Rates = None,
        timeout: Timeouts = None,
        context: Context = None,
        roles: Collection[str] = (),
    ) -> RunLimits:
        """Return these limits updated with the given ones; what is not given is kept.

        Args:
            budget: The bounds to change; one that is `None` is removed.
            prices: Prices by model.
            rpm: Requests per minute.
            tpm: Tokens per minute.
            timeout: The time limit of an attempt in seconds.
            context: Context windows in tokens.
            roles: The roles that may have a time limit.

        Raises:
            RunError: If the budget is invalid, a rate or a window is no integer from 1, or a time limit is no number of
                seconds or names an unknown role.
        """
        return RunLimits(
            budget=self.budget.changed(budget_of(budget)),
            prices={**self.prices, **(prices or {})},
            rpm=_changed("rpm", self.rpm, rpm),
            tpm=_changed("tpm", self.tpm, tpm),
            context=_changed("context", self.context, context, _WIDEST),
            timeouts=_changed_timeouts(self.timeouts, timeout, roles),
        )

    @classmethod
    def of(cls, run: RunFile) -> RunLimits:
        """Return the limits that a run's file stores."""
        return cls.model_validate_json(run.limits)

    @property
    def stated_prices(self) -> Prices:
        """The prices in the gateway's form."""
        return Prices(self.prices)

    def for_gateway(self, concurrency: int, replay_only: bool = False, patience: float = 0.0) -> Limits:
        """Return the limits in the gateway's form."""
        return Limits(
            concurrency=concurrency,
            rpm=self.rpm,
            tpm=self.tpm,
            budget=self.budget,
            prices=self.stated_prices,
            replay_only=replay_only,
            patience=patience,
            timeouts=self.timeouts,
            context=self.context,
        )

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
        """Parse a number of scenarios, a text such as `5%`, or `None` for no bound.

        Raises:
            RunError: If it is neither.
        """
        if value is None:
            return cls()
        text = str(value).strip()
        number = text.removesuffix("%")
        try:
            if number != text:
                if 0 <= (percent := float(number)) < 100:
                    return cls(percent=percent)
            elif (count := int(number)) > 0:
                return cls(count=count)
        except ValueError:
            pass
        raise RunError(
            f"fail_on_error {value!r} is neither a number of scenarios from 1 nor a share such as '5%'",
            setting="fail_on_error",
        )

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


def budget_of(given: BudgetLike) -> Budget | None:
    """Return a budget from its bounds by name, or as given.

    Raises:
        RunError: If it is neither, or a bound is invalid.
    """
    if given is None or isinstance(given, Budget):
        return given
    if not isinstance(given, Mapping):
        raise RunError(
            f"budget must be a Budget or its bounds by name, such as {{'max_calls': 100}}, got {given!r:.80}",
            setting="budget",
        )
    try:
        return Budget.model_validate(dict(given))
    except ValidationError as error:
        problem = first_problem(error)
        known = ", ".join(Budget.model_fields)
        raise RunError(
            f"budget: {problem.place} {problem.value!r:.40}: {problem.message}; a budget has {known}", setting="budget"
        ) from error


def _changed(setting: str, kept: Mapping[str, int], given: Rates, most: int = _FASTEST) -> dict[str, int]:
    if given is None:
        return dict(kept)
    rates: dict[str, int | None] = {**kept, **(given if isinstance(given, Mapping) else {"": given})}
    for rate in rates.values():
        if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int) or not 1 <= rate <= most):
            raise RunError(f"{setting} {rate!r:.40} is no whole number from 1 to {most:,}", setting=setting)
    return {model: rate for model, rate in rates.items() if rate is not None}


def _changed_timeouts(kept: Mapping[str, float], given: Timeouts, roles: Collection[str]) -> dict[str, float]:
    if given is None:
        return dict(kept)
    now = given if isinstance(given, Mapping) else {"": given}
    for role, seconds in now.items():
        if role and role not in roles:
            raise RunError(f"timeout: unknown role {role!r}; the roles are {', '.join(roles)}", setting="timeout")
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and not (is_number and 0 <= seconds <= _LONGEST):
            raise RunError(
                f"timeout {seconds!r:.40} is no number of seconds up to {_LONGEST:,.0f}, nor 0 for the usual one",
                setting="timeout",
            )
    return {role: float(seconds) for role, seconds in {**kept, **now}.items() if seconds}


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
