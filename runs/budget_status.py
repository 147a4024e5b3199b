"""Progress of a run against its budget, and rejected calls by provider."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dialoom.roles.gateway.budget import Taken

from .limits import RunLimits
from .store import RunFile
from .store.status import Troubles


@dataclass(frozen=True, slots=True)
class RunBounds:
    """A run's status against its bounds.

    Attributes:
        limits: The latest limits.
        taken: The spend that counts against the budget; `None` without a budget.
        troubles: The failed attempts by model.
        rejudgings: The number of scenarios whose judgements in a set are yet to be repeated, by set.
    """

    limits: RunLimits
    taken: Taken | None
    troubles: dict[str, Troubles]
    rejudgings: dict[str, int]

    @classmethod
    def of(cls, run: RunFile) -> RunBounds:
        """Read the status from a run's file, which does not include calls in flight."""
        limits = RunLimits.of(run)
        taken = run.taken(limits.stated_prices) if limits.budget.is_bounded else None
        return cls(limits, taken, run.troubles(), run.rejudgings())

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON-compatible data."""
        budget = self.limits.budget.model_dump(exclude_none=True)
        return {
            "limits": {**self.limits.model_dump(mode="json", exclude={"budget"}), **budget},
            "counted": None if self.taken is None else asdict(self.taken),
            "attempts": {
                model: {"failed": each.attempts, "throttled": each.throttled} for model, each in self.troubles.items()
            },
            "rejudging": self.rejudgings,
        }
