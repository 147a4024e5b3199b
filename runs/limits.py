"""A run's limits, and its progress against them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar, cast

from dialoom.errors import Advice
from dialoom.roles.gateway.budget import Spend
from dialoom.roles.gateway.gateway import Limits
from dialoom.settings import Budget, LimitSettings, by_name

from .errors import RunError
from .store import RunFile
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
