"""What a user bounds a run by: nothing of it changes what is said, so it is kept beside the frozen configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from dialoom.errors import Advice, first_problem
from dialoom.roles.gateway.budget import Budget
from dialoom.roles.gateway.gateway import Limits
from dialoom.roles.gateway.prices import Price, Prices

from .errors import RunError
from .store import RunFile

_FEW = 20
"""A share of failures says nothing before so many scenarios are finished."""

_FASTEST = 10**12
"""A minute; more is a slip of the hand."""

_WIDEST = 10**9
"""Tokens; more is a slip of the hand."""

_LONGEST = 86_400.0
"""Seconds; a try of more than a day is a slip of the hand."""

BudgetLike: TypeAlias = "Budget | Mapping[str, Any] | None"
"""A budget, or its bounds by name."""

Timeouts: TypeAlias = "float | Mapping[str, float | None] | None"
"""Seconds of a try for every role, or by role; 0 or `None` for a role takes its bound away."""

Rates: TypeAlias = "int | Mapping[str, int | None] | None"
"""A rate for every model, or by model; `None` for a model takes its rate away."""

Context: TypeAlias = "Mapping[str, int | None] | None"
"""Tokens that a model reads, request and reply together, by model; `None` for a model takes what was said away."""


class RunLimits(BaseModel):
    """Budget, prices, rates, time-outs and context windows of a run, as its file keeps them for whoever goes on.

    Attributes:
        budget: The most that the run may take in all.
        prices: Of models whose price LiteLLM does not know.
        rpm: Requests per minute by model; under the empty name, for every model.
        tpm: Tokens per minute, likewise.
        timeouts: Seconds that one try of a call may take, by role; under the empty name, of every role.
        context: Tokens that models read, by model; what is longer is not sent.
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
        """These limits with what is given now, which wins; what is not given stays as it is.

        Args:
            budget: The bounds that it names; one named as `None` is taken away.
            prices: By model.
            rpm: Requests per minute.
            tpm: Tokens per minute.
            timeout: Seconds of a try.
            context: Tokens that models read.
            roles: Those that a time-out may be of.

        Raises:
            RunError: If the budget is none, a rate or a window no whole number from 1, a time-out no number of seconds,
                or of no role that there is.
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
        """Those that a run's file keeps."""
        return cls.model_validate_json(run.limits)

    @property
    def stated_prices(self) -> Prices:
        """The prices, for the gateway."""
        return Prices(self.prices)

    def for_gateway(self, concurrency: int, replay_only: bool = False, patience: float = 0.0) -> Limits:
        """All that the gateway keeps to."""
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
        """Refuse a bound on the cost that nobody can keep to.

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
    """When a run that fails is stopped: after so many failures, or at such a share of them, of what is done at once.

    Attributes:
        count: Failed scenarios.
        percent: Failed ones in a hundred, once 20 are finished.
    """

    count: int | None = None
    percent: float | None = None

    @classmethod
    def of(cls, value: int | str | None) -> FailOnError:
        """Out of a number of scenarios, a text such as `5%`, or `None` for never.

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
        """What is to be said when a run has to stop; `None` as long as it need not.

        Args:
            failed: Scenarios that failed.
            finished: These and the ones that are done.
        """
        if self.count is not None and failed >= self.count:
            return f"{failed:,} scenarios failed (fail_on_error {self.count})"
        if self.percent is not None and finished >= _FEW and failed * 100 > self.percent * finished:
            return f"{failed:,} of {finished:,} scenarios failed (fail_on_error {self.percent:g}%)"
        return None


def budget_of(given: BudgetLike) -> Budget | None:
    """A budget out of its bounds by name, or as it is.

    Raises:
        RunError: If it is neither, or a bound is wrong.
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
