"""What `dialoom status` says of a run's bounds, and of what its providers turned away."""

from __future__ import annotations

from dialoom.roles.gateway.prices import Price
from dialoom.runs.budget_status import RunBounds


def bound_lines(bounds: RunBounds, run: str) -> list[str]:
    """For people."""
    told = [*_bounds(bounds)]
    for what, rates in (("requests", bounds.limits.rpm), ("tokens", bounds.limits.tpm)):
        told += [f"{model or 'every model'}: at most {rate:,} {what} a minute" for model, rate in rates.items()]
    told += [f"{role or 'every role'}: at most {seconds:g} s a try" for role, seconds in bounds.limits.timeouts.items()]
    told += [f"{model}: reads {window:,} tokens" for model, window in bounds.limits.context.items()]
    told += [f"{model}: priced {_priced(price)} a million tokens" for model, price in bounds.limits.prices.items()]
    told += [
        f"{model}: {each.attempts:,} attempts failed, {each.throttled:,} of them throttled"
        for model, each in bounds.troubles.items()
    ]
    told += [
        f"{count:,} scenarios are to be judged again in {name!r}: dialoom retry {run} --unparsed --judging {name!r}"
        for name, count in bounds.rejudgings.items()
    ]
    return told


def budget_flags(bounds: RunBounds) -> str:
    """What is put behind `dialoom resume RUN` for a larger budget; in brackets unless all calls are taken."""
    budget, taken = bounds.limits.budget, bounds.taken
    if taken is None:
        return ""
    flags = " ".join(f"--{name.replace('_', '-')} MORE" for name in budget.model_dump(exclude_none=True))
    used_up = budget.max_calls is not None and taken.calls >= budget.max_calls
    return f" {flags}" if used_up else f" [{flags}]"


def _bounds(bounds: RunBounds) -> list[str]:
    budget, taken = bounds.limits.budget, bounds.taken
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
