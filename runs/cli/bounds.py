"""What `dialoom status` says of a run's bounds, and of what its providers turned away."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dialoom.roles.gateway.budget import Taken
from dialoom.roles.gateway.prices import Price
from dialoom.runs.limits import RunLimits
from dialoom.runs.store import RunFile
from dialoom.runs.store.status import Troubles


@dataclass(frozen=True, slots=True)
class RunBounds:
    """How a run stands to its bounds.

    Attributes:
        limits: Those that were given last.
        taken: What counts against the budget; `None` without one.
        troubles: Failed attempts, by model.
        rejudgings: Scenarios whose judgements in a set are yet to be made again.
    """

    limits: RunLimits
    taken: Taken | None
    troubles: dict[str, Troubles]
    rejudgings: dict[str, int]

    @classmethod
    def of(cls, run: RunFile) -> RunBounds:
        """Read from a run's file. What is in flight, only the process that plays it knows."""
        limits = RunLimits.of(run)
        taken = run.taken(limits.stated_prices) if limits.budget.is_bounded else None
        return cls(limits, taken, run.troubles(), run.rejudgings())

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        budget = self.limits.budget.model_dump(exclude_none=True)
        return {
            "limits": {**self.limits.model_dump(mode="json", exclude={"budget"}), **budget},
            "counted": None if self.taken is None else asdict(self.taken),
            "attempts": {
                model: {"failed": each.attempts, "throttled": each.throttled} for model, each in self.troubles.items()
            },
            "rejudging": self.rejudgings,
        }

    def lines(self, run: str) -> list[str]:
        """For people."""
        told = [*self._bounds()]
        for what, rates in (("requests", self.limits.rpm), ("tokens", self.limits.tpm)):
            told += [f"{model or 'every model'}: at most {rate:,} {what} a minute" for model, rate in rates.items()]
        told += [
            f"{role or 'every role'}: at most {seconds:g} s a try" for role, seconds in self.limits.timeouts.items()
        ]
        told += [f"{model}: reads {window:,} tokens" for model, window in self.limits.context.items()]
        told += [f"{model}: priced {_priced(price)} a million tokens" for model, price in self.limits.prices.items()]
        told += [
            f"{model}: {each.attempts:,} attempts failed, {each.throttled:,} of them throttled"
            for model, each in self.troubles.items()
        ]
        told += [
            f"{count:,} scenarios are to be judged again in {name!r}: dialoom retry {run} --unparsed --judging {name!r}"
            for name, count in self.rejudgings.items()
        ]
        return told

    @property
    def budget_flags(self) -> str:
        """What is put behind `dialoom resume RUN` for a larger budget; in brackets unless all calls are taken."""
        budget, taken = self.limits.budget, self.taken
        if taken is None:
            return ""
        flags = " ".join(f"--{name.replace('_', '-')} MORE" for name in budget.model_dump(exclude_none=True))
        used_up = budget.max_calls is not None and taken.calls >= budget.max_calls
        return f" {flags}" if used_up else f" [{flags}]"

    def _bounds(self) -> list[str]:
        budget, taken = self.limits.budget, self.taken
        if taken is None:
            return []
        told = []
        if budget.max_calls is not None:
            told.append(f"{taken.calls:,} of {budget.max_calls:,} calls")
        if budget.max_tokens is not None:
            told.append(f"{taken.tokens:,} of {budget.max_tokens:,} tokens")
        if budget.max_cost is not None:
            told.append(f"${taken.cost:,.4f} of ${budget.max_cost:,.4f}")
        return [f"budget: {', '.join(told)} taken"]


def _priced(price: Price) -> str:
    cached = "" if price.cached_input is None else f", {price.cached_input:g} from the prompt cache"
    return f"{price.input:g} US dollars in, {price.output:g} out{cached}"
