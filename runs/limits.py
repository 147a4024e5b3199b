"""What a user bounds a run by: nothing of it changes what is said, so it is kept beside the frozen configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from dialoom.roles.gateway.budget import Budget
from dialoom.roles.gateway.gateway import Limits
from dialoom.roles.gateway.prices import Prices, parse_prices

from .errors import RunError
from .store import RunFile

UNBOUNDED = "none"
"""The value that takes a bound away again."""

_FEW = 20
"""A share of failures says nothing before so many scenarios are finished."""


class RunLimits(BaseModel):
    """Budget, prices and rates of a run, as its file keeps them; `resume` goes on with them.

    Attributes:
        budget: The most that the run may take in all.
        prices: By model, as `--price` gives them: `IN,OUT` or `IN,OUT,CACHED`.
        rpm: Requests per minute by model; under the empty name, for every model.
        tpm: Tokens per minute, likewise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    budget: Budget = Budget()
    prices: Mapping[str, str] = {}
    rpm: Mapping[str, int] = {}
    tpm: Mapping[str, int] = {}

    def changed(self, given: Mapping[str, Any]) -> RunLimits:
        """These limits with what was given now, which wins.

        Args:
            given: By the names of the flags (`max_cost`, `price`, `rpm`, ...): what a command line or a YAML file
                says. What is `None` or not there stays as it is; `none` takes a bound away.

        Raises:
            RunError, BindingError: Naming the flag and the value that is wrong.
        """
        bounds = {name: given[name] for name in Budget.model_fields if given.get(name) is not None}
        prices = {**self.prices, **_by_model(given.get("price"))}
        parse_prices(_options(prices))
        return RunLimits(
            budget=_budget(self.budget, bounds),
            prices=prices,
            rpm={**self.rpm, **_rates("--rpm", given.get("rpm"))},
            tpm={**self.tpm, **_rates("--tpm", given.get("tpm"))},
        )

    @classmethod
    def of(cls, run: RunFile) -> RunLimits:
        """Those that a run's file keeps."""
        return cls.model_validate_json(run.limits)

    @property
    def stated_prices(self) -> Prices:
        """The prices, for the gateway."""
        return parse_prices(_options(self.prices))

    def for_gateway(self, concurrency: int, replay_only: bool = False) -> Limits:
        """All that the gateway keeps to."""
        return Limits(
            concurrency=concurrency,
            rpm=self.rpm,
            tpm=self.tpm,
            budget=self.budget,
            prices=self.stated_prices,
            replay_only=replay_only,
        )

    def check_prices(self, models: Iterable[str]) -> None:
        """Refuse a bound on the cost that nobody can keep to.

        Raises:
            RunError: If a model's price is unknown.
        """
        if self.budget.max_cost is None:
            return
        prices = self.stated_prices
        for model in dict.fromkeys(models):
            if prices.price(model) is None:
                raise RunError(
                    f"--max-cost cannot be kept to, as the price of {model} is unknown; give it in US dollars for a "
                    f"million tokens: --price {model}=IN,OUT (0,0 if it costs nothing)"
                )


@dataclass(frozen=True, slots=True)
class FailOnError:
    """When a run that fails is stopped: after so many failures, or at such a share of them, in one sitting."""

    count: int | None = None
    percent: float | None = None

    @classmethod
    def parse(cls, text: str) -> FailOnError:
        """Out of `N` or `P%`.

        Raises:
            RunError: If it is neither.
        """
        number = text.strip().removesuffix("%")
        try:
            if number != text.strip():
                if 0 <= (percent := float(number)) < 100:
                    return cls(percent=percent)
            elif (count := int(number)) > 0:
                return cls(count=count)
        except ValueError:
            pass
        raise RunError(f"--fail-on-error {text!r} is neither a number of scenarios from 1 nor a share such as 5%")

    def exceeded(self, failed: int, finished: int) -> str | None:
        """What is to be said when a run has to stop; `None` as long as it need not.

        Args:
            failed: Scenarios that failed.
            finished: These and the ones that are done.
        """
        if self.count is not None and failed >= self.count:
            return f"{failed:,} scenarios failed (--fail-on-error {self.count})"
        if self.percent is not None and finished >= _FEW and failed * 100 > self.percent * finished:
            return f"{failed:,} of {finished:,} scenarios failed (--fail-on-error {self.percent:g}%)"
        return None


def _budget(kept: Budget, bounds: Mapping[str, Any]) -> Budget:
    values = {name: None if str(value).lower() == UNBOUNDED else value for name, value in bounds.items()}
    try:
        return Budget.model_validate({**kept.model_dump(), **values})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        what = "US dollars" if name == "max_cost" else "a whole number"
        raise RunError(
            f"--{name.replace('_', '-')} {first['input']!r} is no bound: give {what} from 0, or {UNBOUNDED!r}"
        ) from error


def _rates(flag: str, given: Any) -> dict[str, int]:
    rates: dict[str, int] = {}
    for model, text in _by_model(given).items():
        try:
            rates[model] = int(text)
        except ValueError:
            rates[model] = 0
        if rates[model] < 1:
            raise RunError(f"{flag} {text!r} is no whole number from 1; give N, or MODEL=N for one model")
    return rates


def _by_model(given: Any) -> dict[str, str]:
    """`[MODEL=]VALUE` texts, or what YAML makes of them, by model."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(model): _text(value) for model, value in given.items()}
    options = given if isinstance(given, list) else [given]
    parts = [str(option).rpartition("=") for option in options]
    return {model: value for model, _, value in parts}


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _options(prices: Mapping[str, str]) -> list[str]:
    return [f"{model}={figures}" if model else figures for model, figures in prices.items()]
